"""What the project ships for measuring itself: the twelve cases of the demo shop, and codes that it does not know."""

import json
from pathlib import Path

import yaml
from pipelines.ingest.usecase import read_path

from components.language.identifiers import codes
from evaluation.cases import Case, Corpus, QuestionSet
from evaluation.noise import near_misses

DEMO = Path(__file__).parent / "demo"
NEAR_MISSES = 200
_QUESTIONS = Path(__file__).with_name("questions.yaml")
_SEED = 20


def demo_corpus(locale: str) -> Corpus:
    """The demo shop's knowledge base, Russian or English."""
    return Corpus(f"demo-{locale}", locale, lambda: read_path(DEMO / locale))


def fixture() -> QuestionSet:
    """Twelve questions in six categories with the outcome that each must have."""
    lines = (DEMO / "fixture.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for line in lines if line.strip()]
    cases = tuple(
        Case(
            case_id=row["id"],
            question=row["question"],
            locale=row["locale"],
            answerable=True if row["expected_outcome"] == "answered" else None,
            gold_docs=tuple(row["gold_doc_ids"]),
            category=row["category"],
            outcome=row["expected_outcome"],
            reason=row["expected_reason"] or "",
            must_contain=tuple(row["must_contain"]),
            must_not_contain=tuple(row["must_not_contain"]),
        )
        for row in rows
    )
    return QuestionSet("fixture", demo_corpus("ru"), cases)


def near_miss_codes() -> QuestionSet:
    """Questions about codes close to those of the demo shop, none of which it has. `category` is the code asked for."""
    corpus = demo_corpus("ru")
    known = {code for article in corpus.documents() for code in codes(f"{article.title}\\n{article.text}")}
    pairs = near_misses(known, questions("near_misses"), NEAR_MISSES, _SEED)
    cases = tuple(
        Case(f"code-{n:03d}", question, answerable=False, category=code) for n, (code, question) in enumerate(pairs)
    )
    return QuestionSet("codes", corpus, cases)


def showcase() -> tuple[Case, ...]:
    """What the demo asks and how each question has to end; `locale` says which demo tenant is asked."""
    return tuple(
        Case(
            case_id=f"showcase-{number}",
            question=row["question"],
            locale=row["tenant"],
            outcome=row["outcome"],
            reason=row.get("reason", ""),
        )
        for number, row in enumerate(_questions()["showcase"], 1)
    )


def questions(kind: str) -> tuple[str, ...]:
    """Our own questions of one kind: `near_misses` (with a `{code}` in them), `fixed`, `refused`."""
    return tuple(row["question"] for row in _questions()[kind])


def _questions() -> dict[str, list[dict[str, str]]]:
    loaded: dict[str, list[dict[str, str]]] = yaml.safe_load(_QUESTIONS.read_text(encoding="utf-8"))
    return loaded
