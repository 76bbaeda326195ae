"""Curated answers: which questions they answer word for word."""

from pathlib import Path

import pytest
from haystack import Document

from components.answer import curated
from components.answer.curated import CuratedAnswers
from components.turn import Turn
from pipelines.ask.engine import AskEngine
from pipelines.ingest.usecase import Ingest
from settings import Settings
from tenants.accounts.registry import Registry
from tenants.core.context import Tenant, acting_as

TEXT = "You can return it within 14 days. It costs nothing.\n\n### Can I return a gift?\n\nYes, with the gift receipt."
ACME = Tenant("acme", "test")


@pytest.fixture
def alike(monkeypatch: pytest.MonkeyPatch, installation: Settings) -> None:
    Registry().add("acme", locale="en")
    monkeypatch.setattr(curated, "_cosine", lambda text, other: 0.95)


def reply(query: str, trust: str = "curated", status: str = "active") -> str:
    meta = {"title": "Returns", "heading": "How do I return a dress?", "trust": trust, "status": status}
    with acting_as(ACME):
        found = CuratedAnswers().run(query, [Document(content=TEXT, meta=meta)])
    return found["answers"][0].data if "answers" in found else ""


@pytest.mark.usefixtures("alike")
def test_a_question_that_a_heading_asks_gets_its_section() -> None:
    assert reply("how do I return a dress").startswith("You can return it within 14 days.")
    assert reply("Can I return a gift?") == "Yes, with the gift receipt. [1]"
    assert reply("Can I return a gift with a receipt?") == "Yes, with the gift receipt. [1]"


@pytest.mark.usefixtures("alike")
@pytest.mark.parametrize(
    "query",
    [
        "How do I return a bicycle?",
        "How do I return 2 dresses?",
        "Can I not return a gift?",
        "How do I return a dress with code AB-12?",
        "return",
        "hi",
    ],
)
def test_other_questions_are_left_to_the_pipeline(query: str) -> None:
    assert reply(query) == ""


@pytest.mark.usefixtures("alike")
def test_only_documents_in_force_that_are_curated_count() -> None:
    assert reply("Can I return a gift?", trust="accepted") == ""
    assert reply("Can I return a gift?", status="superseded") == ""


def test_a_curated_article_answers_before_the_judge(installation: Settings, tmp_path: Path) -> None:
    section = "## Are you open on Sunday?\n\nSundays are for baking, come on Monday."
    article = f"---\ntrust: curated\n---\n# Opening hours\n\n{section}"
    (tmp_path / "hours.md").write_text(article, encoding="utf-8")
    Registry().add("acme", locale="en")
    with acting_as(ACME):
        Ingest().run_path(tmp_path)
        turn = AskEngine().run(Turn("t", "are you open on sunday", locale="en"))
    assert (turn.outcome, turn.verdict.route, turn.evidence.adequacy) == ("answered", "auto", 1.0)
    assert turn.reply.text == "Sundays are for baking, come on Monday. [1]"
    assert [passage.doc_id for passage in turn.evidence.relevant_passages()] == ["hours.md"]
