"""Answers for human review: every turn of an answer key with its text, its citations and its grade."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from evaluation.cases import AnswerKey, Record
from evaluation.metrics.answer_key import GradedTurn, certainty, grade_turn


@dataclass(frozen=True, slots=True)
class ReadAnswer:
    """A turn beside its key. `sections` are the labelled passages that answer, best first, as title and heading."""

    record: Record
    key: AnswerKey
    graded: GradedTurn
    sections: tuple[str, ...]


def answers_to_read(records: Sequence[Record]) -> list[ReadAnswer]:
    """Return the turns of questions with a key: claimed answers first, most certain first."""
    keyed = [(record, key) for record in records if (key := record.case.key)]
    keyed.sort(key=lambda pair: certainty(pair[0]), reverse=True)
    return [ReadAnswer(record, key, grade_turn(record, key), tuple(_sections(key))) for record, key in keyed]


def write_answers(path: Path, records: Sequence[Record]) -> None:
    """Write one JSON object a line, in the order of the questions.

    `turn` holds the input of a scorer of turns.
    """
    read = {answer.record.case.case_id: answer for answer in answers_to_read(records)}
    lines = (json.dumps(_line(read[record.case.case_id]), ensure_ascii=False) for record in records)
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def _line(answer: ReadAnswer) -> dict[str, object]:
    record = answer.record
    return {
        "id": record.case.case_id,
        "question": record.case.question,
        "type": answer.key.kind,
        "answerable": answer.key.answerable,
        "facts": list(answer.key.facts),
        "tier": answer.graded.tier,
        "claimed": answer.graded.claimed,
        "right": answer.graded.right,
        "offered_right": answer.graded.offered_right,
        "unjudged": answer.graded.unjudged,
        "grade": answer.graded.best,
        "recall": round(answer.graded.recall, 3),
        "confidence": round(record.confidence, 4),
        "shown": record.text,
        "turn": _turn(record),
    }


def _turn(record: Record) -> dict[str, object]:
    cited = record.cited if record.shown else ()
    return {
        "outcome": record.outcome,
        "refusal_reason": record.reason or None,
        "answer": {"text": record.text},
        "citations": [{"doc_id": page.doc_id, "title": page.title, "heading": page.heading} for page in cited],
        "sources": [{"page_content": page.text} for page in cited],
        "articles": [asdict(offer) for offer in record.offered],
    }


def _sections(key: AnswerKey) -> Iterator[str]:
    for passage in sorted(key.passages, key=lambda passage: -passage.grade):
        if passage.grade:
            yield " › ".join(filter(None, (passage.title, passage.heading))) + f" ({passage.grade})"
