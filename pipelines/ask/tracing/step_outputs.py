"""Outputs of a step as JSON values, for any component."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import lru_cache
from typing import Any, TypeAlias

from haystack import Document
from haystack.dataclasses import GeneratedAnswer
from pydantic_core import to_json

from components.answer.drafts import to_draft
from components.language.personal import mask
from components.passages import to_passage
from components.turn import Draft, Passage, Turn

Words: TypeAlias = Callable[[str], str | None]
"""Maps a text to its form in a trace; None when it must not appear."""

MAX_LENGTH = 2_000
"""Characters of one text in a trace; chunks are rarely longer."""

_CODES = frozenset(
    {"kind", "status", "intent", "risk", "route", "name", "recovery", "answerability", "factuality_status", "outcome"}
)
"""Fields whose text is one of a fixed set of words, never a person's."""
_LISTS_OF_CODES = frozenset({"reasons"})
_PLAIN = frozenset({"complexity", "blocked"})


def withheld(text: str) -> None:
    """No text at all: the tenant has not enabled it."""


@lru_cache(maxsize=4_096)
def masked(text: str) -> str:
    """Return the text without personal data; cached, because most texts are passages that repeat."""
    return mask(text[:MAX_LENGTH])


def as_json(value: object) -> str:
    return to_json(value).decode()


def described(outputs: Mapping[str, Any], words: Words) -> dict[str, object]:
    """Return the outputs of a step by socket; documents by their ids and scores, texts as `words` allows them."""
    parts = {name: _value(name, value, words) for name, value in outputs.items()}
    return {name: part for name, part in parts.items() if part not in (None, [], {})}


def _value(name: str, value: object, words: Words) -> object:
    if isinstance(value, bool | int) or value is None:
        return value
    if isinstance(value, float):
        return round(value, 4)
    if isinstance(value, str):
        return value if name in _CODES | _PLAIN else words(value)
    if isinstance(value, Document):
        return _document(value, words)
    if isinstance(value, GeneratedAnswer):
        return _draft(to_draft(value), words)
    if isinstance(value, Passage):
        return value.chunk_id
    if isinstance(value, Turn):
        ending = {"outcome": value.outcome, "reason": value.reason, "route": value.verdict.route}
        return ending | _present(text=words(value.reply.text), reasons=value.verdict.reasons or None)
    if isinstance(value, Mapping):
        return {str(key): _value(str(key), part, words) for key, part in value.items()}
    if isinstance(value, Sequence | frozenset):
        if name in _LISTS_OF_CODES:
            return list(value)
        return [part for item in value if (part := _value(name, item, words)) is not None]
    if is_dataclass(value):
        return described({field.name: getattr(value, field.name) for field in fields(value)}, words)
    return type(value).__name__


def _document(document: Document, words: Words) -> dict[str, object]:
    passage, meta = to_passage(document), document.meta
    relevance = meta.get("relevance")
    return _present(
        chunk_id=passage.chunk_id,
        title=words(passage.title),
        score=round(passage.score, 4),
        relevance=None if relevance is None else round(float(relevance), 4),
        verdict=None if "graded" not in meta else "YES" if meta["graded"] else "NO",
    )


def _draft(draft: Draft, words: Words) -> dict[str, object]:
    claims = [
        _present(
            text=words(claim.text), status=claim.status, citations=claim.citations, quote=words(claim.quote) or None
        )
        for claim in draft.claims
    ]
    scores = {
        name: getattr(draft, name)
        for name in ("factuality", "factuality_status", "quality", "relevance", "confidence", "answerability")
    }
    return _present(text=words(draft.text), claims=claims or None, missing=_each(draft.missing, words), **scores)


def _each(texts: Sequence[str], words: Words) -> list[str] | None:
    return [text for item in texts if (text := words(item))] or None


def _present(**values: object) -> dict[str, object]:
    return {name: value for name, value in values.items() if value is not None}
