"""Built-in data sets: the twelve cases of the demo shop, and codes that it does not know."""

import json
from functools import lru_cache
from pathlib import Path

from components.language.identifiers import codes
from components.language.yaml_files import read_yaml
from components.turn import Outcome, Reason
from evaluation.cases import Case, Corpus, QuestionSet
from evaluation.datasets.casefile import read_cases
from evaluation.datasets.noise import near_misses
from pipelines.ingest.usecase import read_path
from settings import ROOT
from tenants.core.validation import FrozenModel

DEMO = ROOT / "evaluation" / "demo"
NEAR_MISSES = 200
_QUESTIONS = Path(__file__).with_name("questions.yaml")
_SEED = 20


def demo_corpus(locale: str) -> Corpus:
    return Corpus(f"demo-{locale}", locale, lambda: read_path(DEMO / locale))


def fixture() -> QuestionSet:
    """Return twelve questions in six categories with the required outcome of each."""
    return QuestionSet("fixture", demo_corpus("ru"), read_cases(DEMO / "fixture.jsonl"))


def dialogues(locale: str) -> QuestionSet:
    """Return follow-up questions ("and if it is E10?"); each names the article that answers."""
    lines = (DEMO / "dialogues.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    cases = tuple(
        Case(
            row["id"],
            row["follow_up"],
            locale,
            answerable=True,
            gold_docs=(row["gold_doc_id"],),
            history=tuple(row["history"]),
        )
        for row in rows
        if row["locale"] == locale
    )
    return QuestionSet(f"dialogues-{locale}", demo_corpus(locale), cases)


def near_miss_codes() -> QuestionSet:
    """Return questions about unknown codes similar to those of the demo shop. `category` is the code asked for."""
    corpus = demo_corpus("ru")
    existing = {code for article in corpus.documents() for code in codes(f"{article.title}\n{article.text}")}
    pairs = near_misses(existing, questions().near_misses, NEAR_MISSES, _SEED)
    cases = tuple(
        Case(f"code-{n:03d}", question, answerable=False, category=code) for n, (code, question) in enumerate(pairs)
    )
    return QuestionSet("codes", corpus, cases)


class ShowcaseQuestion(FrozenModel):
    """A question that the demo asks, and the required outcome. `note` explains the question to the reader."""

    question: str
    outcome: Outcome
    reason: Reason | None = None
    note: str = ""


class Shop(FrozenModel):
    """The demo shop as a tenant.

    `operator` is the name of the person at its desk, as customers see it. `offers` are the assistant's offers to
    customers on a handoff, by risk; `contact` is how they reach people directly.
    """

    name: str
    operator: str
    offers: dict[str, str]
    contact: str
    welcome: str
    suggested: tuple[str, ...]
    showcase: tuple[ShowcaseQuestion, ...]


class Questions(FrozenModel):
    """Our own questions; near misses have a `{code}` in them."""

    shops: dict[str, Shop]
    near_misses: tuple[str, ...]
    fixed: tuple[str, ...]
    refused: tuple[str, ...]


@lru_cache(maxsize=1)
def questions() -> Questions:
    return Questions.model_validate(read_yaml(_QUESTIONS))
