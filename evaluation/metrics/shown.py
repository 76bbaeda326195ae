"""Comparison of the visible answer with its sources by words and numbers, independent of the pipeline."""

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache

from components.judge.claims import is_unfit
from components.language.marks import ITEM
from components.language.texts import LOCALES
from components.language.texts import text as said_in
from components.language.words import stems
from components.passages import from_payload, to_passage
from components.turn import SHOWN, Passage
from pipelines.ask.contract import CitationPart, TurnAnswer
from tenants.index import open_collection

_SHARED = 0.5
"""Of a claim's content words, the minimum share that its sources or the question hold."""

_MARK = re.compile(r"\[(\d+)\]")
_AROUND = re.compile(rf"(?:\[\d+\]|^\s*{ITEM}(?=\s)|[\s|])+", re.MULTILINE)


def passages() -> Mapping[str, Passage]:
    stored = (to_passage(from_payload(hit.payload, 0.0, {})) for hit in open_collection().scan())
    return {passage.chunk_id: passage for passage in stored}


def unentailed(question: str, answer: TurnAnswer, passages_by_id: Mapping[str, Passage]) -> list[str]:
    """Return the visible content that the sources do not support: claims, dangling marks, uncited text.

    A claim must share half of its content words with the sections that it cites, and hold no number or identifier that
    neither they nor the question hold. A source must be made of stored passages.
    """
    if answer.outcome not in SHOWN:
        return []
    pages = [(one, source.page_content) for one, source in zip(answer.citations, answer.sources, strict=True)]
    cited = {one.index: page for one, page in pages if one.cited}
    faults = [f"not stored: {one.chunk_id}" for one, page in pages if not _is_stored(one, page, passages_by_id)]
    for claim in answer.claims:
        supporting = [cited[index] for index in claim.citations if index in cited]
        if len(supporting) != len(claim.citations) or not (supporting or claim.text.endswith(":")):
            faults.append(f"cites nothing: {claim.text}")
        elif supporting and not _supported(_removed().sub("", claim.text), question, "\n".join(supporting)):
            faults.append(f"not supported: {claim.text}")
    if loose := unclaimed(answer.answer.text, [claim.text for claim in answer.claims]):
        faults.append(f"beside the claims: {loose}")
    marks = {int(mark) for mark in _MARK.findall(answer.answer.text)}
    return [*faults, *(f"leads nowhere: [{mark}]" for mark in sorted(marks - cited.keys()))]


def _supported(claim: str, question: str, page: str) -> bool:
    said = set(stems(claim))
    shared = said & set(stems(f"{page}\n{question}"))
    return len(shared) >= _SHARED * len(said) and not is_unfit(claim, [question, page])


def _is_stored(citation: CitationPart, page: str, passages_by_id: Mapping[str, Passage]) -> bool:
    """Whether the stored passage matches the citation; the answer of a tool is not stored."""
    if citation.doc_id.startswith("tool:"):
        return True
    passage = passages_by_id.get(citation.chunk_id)
    return passage is not None and set(stems(passage.text)) <= set(stems(page))


def unclaimed(text: str, claims: Sequence[str]) -> str:
    """Return the text without its claims, each removed once, and without marks and bullets."""
    for claim in sorted(claims, key=len, reverse=True):
        text = text.replace(claim, "", 1)
    return _AROUND.sub("", text)


@lru_cache(maxsize=1)
def _removed() -> re.Pattern[str]:
    """Return a pattern for the placeholders of external links, in any language."""
    kinds = ("link_removed", "link_in_article")
    return re.compile("|".join(re.escape(said_in(f"outcomes.guard.{kind}", one)) for kind in kinds for one in LOCALES))
