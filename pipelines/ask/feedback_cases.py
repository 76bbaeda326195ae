"""Judged turns as evaluation cases, in the form that `docs/evaluation.md` documents.

A case of a thumb down holds its question and no expectation: what the right answer is, a person has to write in. One
whose thumbs are all up has to end as it did, on the same documents.
"""

from collections.abc import Iterable, Iterator, Mapping

from components.language.texts import LOCALES
from tenants.audit import search
from tenants.errors import NotFound
from tenants.feedback import Feedback


def cases(judged: Iterable[Feedback]) -> Iterator[dict[str, object]]:
    """One case for each turn, in the order given. For the tenant in context."""
    by_turn: dict[str, list[Feedback]] = {}
    for one in judged:
        by_turn.setdefault(one.turn_id, []).append(one)
    for turn_id, given in by_turn.items():
        try:
            content = search.get(turn_id).content
        except NotFound:
            continue
        # Between the two readings a turn can be pruned or erased, and its verdicts with it.
        if content is not None:
            yield _case(turn_id, given, content)


def _case(turn_id: str, given: Iterable[Feedback], content: Mapping[str, object]) -> dict[str, object]:
    request, answer, history = _object(content["request"]), _object(content["answer"]), content["history"]
    thumbs = sorted({one.thumb for one in given})
    reasons = sorted({one.reason for one in given if one.reason})
    case: dict[str, object] = {"id": turn_id, "question": request["question"]}
    if answer.get("locale") in LOCALES:
        case["locale"] = answer["locale"]
    if isinstance(history, list) and history:
        case["history"] = [said[0] for said in history]
    if thumbs == ["up"]:
        case["expected_outcome"] = answer["outcome"]
        if cited := _cited(answer["citations"]):
            case["gold_doc_ids"] = cited
    return case | {"tags": ["feedback", *thumbs, *reasons]}


def _cited(citations: object) -> list[str]:
    """The documents that the answer cites, each once."""
    listed = map(_object, citations) if isinstance(citations, list) else ()
    return list(dict.fromkeys(str(one["doc_id"]) for one in listed if one["cited"]))


def _object(value: object) -> Mapping[str, object]:
    return value if isinstance(value, dict) else {}
