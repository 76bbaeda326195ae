"""From a gap to an article that closes it: customers get what the preview has shown."""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from threading import Barrier, Event
from typing import Any, TypeVar

import pytest

from components.language.words import stems
from evaluation.datasets.fixture import DEMO
from pipelines.ask.answering import answer_of
from pipelines.ask.articles import closing, gap_meanings, preview
from pipelines.ask.articles.closing import Closing
from pipelines.ask.articles.preview import Preview
from pipelines.ask.articles.usecase import Articles, drafted
from pipelines.ask.contract import AskRequest
from pipelines.ask.runner import Runner
from pipelines.ask.usecase import Ask
from pipelines.ingest.usecase import Ingest, read_path
from settings import get_settings
from tenants.accounts.registry import Registry
from tenants.audit import search, store
from tenants.audit.search import TurnQuery
from tenants.audit.store import TurnOwner
from tenants.core.context import SCOPES, Tenant, acting_as
from tenants.core.errors import Busy, Conflict, Invalid, NotFound, TimedOut, TryAgain
from tenants.desk import articles
from tenants.desk.articles import Article, Draft
from tenants.knowledge import documents, gaps
from tenants.knowledge.gaps import Miss
from tests.audits import entry
from tests.installations import installed
from tests.webhooks import wait_until

T = TypeVar("T")

FEW = ("returns.md", "delivery.md", "payment.md", "warranty.md")
QUESTION = "Можно ли оплатить заказ криптовалютой?"
BOTH = (QUESTION, "Чем кормить попугая?")
DRAFT = drafted(
    "Оплата криптовалютой",
    "# Оплата криптовалютой\n\nОплатить заказ криптовалютой нельзя. Мы принимаем карты и СБП.\n",
    [QUESTION, " Принимаете  биткоины? ", QUESTION],
)
ANNA = Tenant("acme", "anna", SCOPES)


@pytest.fixture(scope="module")
def stocked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A closed installation: a tenant with a few articles and recorded questions."""
    folder = tmp_path_factory.mktemp("stocked")
    with installed(folder):
        Registry().add("acme")
        with acting_as(ANNA):
            Ingest().run([document for document in read_path(DEMO / "ru") if document.doc_id in FEW])
            ask = Ask()
            for question in (QUESTION, "Есть оплата криптовалютой?", "Чем кормить попугая?", "Как вернуть товар?"):
                ask.answer(AskRequest(question=question))
            ask.recorder.collect()
            ask.close()
    return folder


@pytest.fixture
def shop(stocked: Path, tmp_path: Path) -> Iterator[Ask]:
    """A copy of the stocked tenant, in context."""
    with installed(tmp_path / "data", stocked), acting_as(ANNA):
        ask = Ask()
        yield ask
        ask.close()


@pytest.fixture
def written(shop: Ask) -> Iterator[Articles]:
    runner = Runner(shop, workers=1, budget=30)
    service = Articles(Ingest(), runner)
    yield service
    service.close()
    runner.close()


def gap_of(question: str) -> gaps.Gap:
    return next(gap for gap in gaps.all(None) if gap.question == question)


def test_a_gap_becomes_an_article_and_is_closed_by_it(written: Articles, shop: Ask) -> None:
    # What it was kept with before the encoder was taken away counts no more.
    gaps.put_vectors({gap_of(QUESTION).gap_id: (bytes(8), "another encoder's")})
    group = gap_meanings.group_of(gap_of(QUESTION))
    assert {gap.question for gap in group.gaps} == {QUESTION, "Есть оплата криптовалютой?"}
    article = articles.add(DRAFT, [gap.gap_id for gap in group.gaps])
    assert article.draft.questions == (QUESTION, "Принимаете биткоины?")
    reported: list[Preview] = []
    result = written.preview(article.article_id, reported.append)
    assert (result.state, result.asked) == ("done", result.total)
    assert [one.asked for one in reported] == list(range(result.total + 1))
    of_gaps = [one for one in result.questions if one.kind == "gap"]
    assert len(of_gaps) == 2
    assert {one.gap_id for one in of_gaps} == {gap.gap_id for gap in group.gaps}
    assert all(one.effect(article.doc_id) in ("answers", "offers") for one in of_gaps)
    assert not any(one.effect(article.doc_id) == "worse" for one in result.questions)
    # It is not visible yet.
    assert documents.get(article.doc_id) is None
    assert preview.stored(articles.get(article.article_id)) == result
    published = written.publish(article.article_id, article.version)
    assert published.state == "published"
    assert documents.find([article.doc_id])[article.doc_id].title == DRAFT.title
    for one in of_gaps:
        record = search.get(one.turn_id)
        now = answer_of(shop.turn(AskRequest(question=record.question or "")))
        assert (now.outcome, now.refusal_reason) == (one.after.outcome, one.after.reason)
        assert now.answer.text == one.after.text
    closed = gap_of(QUESTION)
    assert (closed.status, closed.article_id, closed.decided_by) == ("closed", article.article_id, "anna")
    note = list(search.links())[-1]
    assert (note.kind, "published" in (note.note or "")) == ("article", True)
    assert search.verify().faults == ()


def test_gap_stays_open_if_the_article_does_not_answer(written: Articles) -> None:
    parrot, crypto = gap_of("Чем кормить попугая?"), gap_of(QUESTION)
    article = articles.add(DRAFT, [parrot.gap_id, crypto.gap_id])
    written.publish(article.article_id, 1)
    assert (gap_of(parrot.question).status, gap_of(QUESTION).status) == ("open", "closed")
    with pytest.raises(Conflict, match="gap_unanswered"):
        written.close_gap(parrot.gap_id)
    closing = written.close_gaps([parrot.gap_id, crypto.gap_id])
    assert [gap.gap_id for gap in closing.unanswered] == [parrot.gap_id]
    assert [gap.gap_id for gap in closing.closed] == [crypto.gap_id]


def test_questions_of_gaps_are_asked_in_seats(written: Articles, monkeypatch: pytest.MonkeyPatch) -> None:
    in_background, seated = Runner.in_background, Counter[str]()

    def counted(runner: Runner, work: Callable[[], T]) -> T:
        seated["questions"] += 1
        return in_background(runner, work)

    monkeypatch.setattr(Runner, "in_background", counted)
    assert written.close_gaps([gap_of(QUESTION).gap_id]).closed == ()
    assert seated["questions"] == 1


async def test_gaps_are_asked_for_few_requests_of_a_tenant(written: Articles, monkeypatch: pytest.MonkeyPatch) -> None:
    at_once: list[int] = [0]

    def counted(*_: object) -> Closing:
        at_once.append(at_once[-1] + 1)
        Event().wait(0.02)
        at_once.append(at_once[-1] - 1)
        return Closing((), ())

    monkeypatch.setattr(closing, "close", counted)
    await asyncio.gather(*(written.in_turn(lambda: written.close_gaps(["g"])) for _ in range(8)))
    assert (max(at_once) <= 4, len(at_once)) == (True, 17)


@pytest.fixture
def unhurried(written: Articles, monkeypatch: pytest.MonkeyPatch) -> Article:
    """An article for two gaps that it answers, with time to ask the first one only."""
    monkeypatch.setattr(closing, "SECONDS", 0.0)
    monkeypatch.setattr(closing, "_is_answered", lambda *_: True)
    return articles.add(DRAFT, [gap_of(question).gap_id for question in BOTH])


async def test_publication_asks_gaps_later_that_it_has_no_time_for(written: Articles, unhurried: Article) -> None:
    assert (await written.publish_in_turn(unhurried.article_id, 1)).state == "published"
    assert sorted(gap_of(question).status for question in BOTH) == ["closed", "open"]
    await asyncio.gather(*written._later)
    assert [gap_of(question).status for question in BOTH] == ["closed", "closed"]


async def test_gap_that_is_dismissed_meanwhile_stays_dismissed(written: Articles, unhurried: Article) -> None:
    published, left = written._publish(unhurried.article_id, 1)
    gaps.decide([gap.gap_id for gap in left], "dismissed")
    assert written._close_open(published.article_id, left) == ()
    assert sorted(gap_of(question).status for question in BOTH) == ["closed", "dismissed"]


def test_gap_with_one_unanswered_wording_stays_open(written: Articles, shop: Ask) -> None:
    article = articles.add(DRAFT)
    written.publish(article.article_id, 1)
    gap = gap_of(QUESTION)
    missed = Miss(gap.reason, "Чем кормить попугая, есть корм?", " ".join(stems(QUESTION)), gap.stems, ())
    other = entry("other", question="Чем кормить попугая, есть корм?", misses=[missed])
    store.append([other], get_settings())
    assert gaps.get(gap.gap_id).count == 2
    assert written.close_gaps([gap.gap_id]).closed == ()


def test_a_dismissed_gap_is_counted_and_stays_dismissed(written: Articles, shop: Ask) -> None:
    gap = gap_of("Чем кормить попугая?")
    assert gaps.decide([gap.gap_id], "dismissed")[0].decided_by == "anna"
    shop.answer(AskRequest(question=gap.question))
    shop.recorder.collect()
    again = gap_of(gap.question)
    assert (again.status, again.count) == ("dismissed", 2)


def test_withdrawing_takes_it_back_and_opens_its_gaps(written: Articles) -> None:
    gap = gap_of(QUESTION)
    article = articles.add(DRAFT, [gap.gap_id])
    written.publish(article.article_id, 1)
    with pytest.raises(Conflict, match="article_published"):
        articles.remove(article.article_id)
    assert written.withdraw(article.article_id).published_version is None
    assert documents.get(article.doc_id) is None
    assert gap_of(QUESTION).status == "open"
    articles.remove(article.article_id)
    assert gap_of(QUESTION).article_id is None
    with pytest.raises(NotFound, match="article_unknown"):
        articles.get(article.article_id)


def test_a_new_version_is_published_over_the_old_one(written: Articles) -> None:
    article = articles.add(DRAFT)
    written.publish(article.article_id, 1)
    changed = articles.put(article.article_id, drafted("Криптовалюта", DRAFT.text), 1)
    assert (changed.version, changed.state) == (2, "changed")
    with pytest.raises(Conflict, match="article_changed"):
        written.publish(article.article_id, 1)
    assert written.publish(article.article_id, 2).state == "published"
    record = documents.get(article.doc_id)
    assert record is not None
    assert (record.title, record.version, len(documents.all())) == ("Криптовалюта", 2, len(FEW) + 1)


def test_an_article_outlives_a_run_that_prunes(written: Articles) -> None:
    article = articles.add(DRAFT)
    written.publish(article.article_id, 1)
    Ingest().run([document for document in read_path(DEMO / "ru") if document.doc_id == FEW[0]], prune=True)
    assert {record.doc_id for record in documents.all()} == {FEW[0], article.doc_id}


def test_what_the_ingest_pipeline_would_refuse_changes_nothing(written: Articles) -> None:
    article = articles.add(Draft("x", "y", trust="holy"))
    with pytest.raises(Invalid, match="metadata_invalid"):
        written.publish(article.article_id, 1)
    with pytest.raises(Invalid, match="metadata_invalid"):
        written.begin_preview(article.article_id)
    assert articles.get(article.article_id).published_version is None
    with pytest.raises(Invalid, match="text_missing"):
        written.publish(articles.add(Draft("x", "")).article_id, 1)


def test_a_draft_that_cannot_be_kept_is_refused(shop: Ask, subtests: pytest.Subtests) -> None:
    for draft in (
        Draft("", "x"),
        Draft("x" * 301, ""),
        Draft("x", "\0"),
        Draft("x", "\ud800"),
        Draft("x", "", ("y",) * 21),
    ):
        with subtests.test(draft=draft), pytest.raises(Invalid, match="article_invalid"):
            articles.add(draft)


def test_a_preview_goes_on_by_itself_one_at_a_time(written: Articles, monkeypatch: pytest.MonkeyPatch) -> None:
    article = articles.add(DRAFT, [gap_of(QUESTION).gap_id])

    def unavailable(article_id: str, preview: Mapping[str, object]) -> None:
        raise TryAgain

    with monkeypatch.context() as patch:
        patch.setattr(articles, "put_preview", unavailable)
        with pytest.raises(TryAgain):
            written.begin_preview(article.article_id)
    begun = written.begin_preview(article.article_id)
    state = preview.stored(begun)
    assert state is not None
    written.close()
    finished = preview.stored(articles.get(article.article_id))
    assert finished is not None
    assert finished.state in ("done", "stopped")
    monkeypatch.setitem(written._running, "acme", 1)
    with pytest.raises(Busy, match="preview_busy"):
        written.begin_preview(article.article_id)


def test_previews_of_two_tenants_run_at_once(written: Articles, monkeypatch: pytest.MonkeyPatch) -> None:
    Registry().add("mallory")
    run, both = preview.run, Barrier(2)

    def after_the_other_has_begun(*args: Any, **options: Any) -> Preview:  # noqa: ANN401 - those of `run`
        both.wait(30)
        return run(*args, **options)

    monkeypatch.setattr(preview, "run", after_the_other_has_begun)
    article = articles.add(DRAFT, [gap_of(QUESTION).gap_id])
    written.begin_preview(article.article_id)
    with acting_as(replace(ANNA, tenant_id="mallory")):
        written.begin_preview(articles.add(DRAFT, []).article_id)
    wait_until(lambda: _state_of(article) == "done")


def test_a_preview_leaves_out_a_question_that_takes_too_long(
    written: Articles, monkeypatch: pytest.MonkeyPatch
) -> None:
    def late(runner: Runner, work: Callable[[], T]) -> T:
        raise TimedOut

    monkeypatch.setattr(Runner, "in_background", late)
    article = written.begin_preview(articles.add(DRAFT, [gap_of(QUESTION).gap_id]).article_id)
    wait_until(lambda: _state_of(article) == "late")


def _state_of(article: Article) -> str:
    stored = preview.stored(articles.get(article.article_id))
    return stored.state if stored is not None else ""


def test_erasing_a_person_leaves_nothing_of_them_in_gaps_and_previews(written: Articles) -> None:
    article = articles.add(DRAFT, [gap_of(QUESTION).gap_id])
    written.preview(article.article_id, lambda _preview: None)
    person = search.find(TurnQuery(), limit=1)[0].person
    store.erase(TurnOwner(person=person), get_settings())
    assert gaps.all(None) == ()
    assert articles.get(article.article_id).preview is None
