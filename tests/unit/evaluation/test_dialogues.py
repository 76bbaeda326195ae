"""Written dialogues: a follow-up finds the same article as the complete question."""

import json

import pytest

from components.turn import Exchange, Turn
from evaluation.datasets.fixture import DEMO
from pipelines.ask.engine import AskEngine
from pipelines.ingest.usecase import Ingest
from settings import Settings
from tenants.accounts.registry import Registry
from tenants.core.context import Tenant, acting_as

DIALOGUES = [json.loads(line) for line in (DEMO / "dialogues.jsonl").read_text(encoding="utf-8").splitlines()]


@pytest.fixture
def engine(installation: Settings) -> AskEngine:
    for locale in ("ru", "en"):
        Registry().add(locale, locale=locale)
        with acting_as(Tenant(locale, "test")):
            Ingest().run_path(DEMO / locale)
    ask_engine = AskEngine()
    ask_engine.warm_up()
    return ask_engine


def first_document(engine: AskEngine, locale: str, question: str, history: tuple[Exchange, ...] = ()) -> str:
    with acting_as(Tenant(locale, "test")):
        turn = engine.run(Turn("t", question, locale=locale, history=history))
    result = turn.evidence.relevant_passages() or turn.evidence.passages
    return result[0].doc_id if result else ""


def test_follow_ups_retrieve_as_well_as_complete_questions(engine: AskEngine) -> None:
    standalone = alone = leaning = 0
    for one in DIALOGUES:
        locale, gold = one["locale"], one["gold_doc_id"]
        if first_document(engine, locale, one["standalone"]) != gold:
            continue
        standalone += 1
        history = tuple(Exchange(earlier, "answered") for earlier in one["history"])
        leaning += first_document(engine, locale, one["follow_up"], history) == gold
        alone += first_document(engine, locale, one["follow_up"]) == gold
    # Measured by words alone: 35 of 40.
    assert standalone >= 0.87 * len(DIALOGUES)
    assert leaning >= 0.83 * standalone
    assert leaning > alone
