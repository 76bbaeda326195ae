"""The help centre: search where an encoder returns the nearest sections to any query, and pages of many groups."""

from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from threading import current_thread

import pytest

from components.ingest.document import SourceDocument
from components.retrieve.retriever import TenantRetriever
from pipelines.ask.help_centre import Found, Group, HelpCentre
from pipelines.ask.help_links import article_key
from pipelines.ask.runner import Runner
from pipelines.ask.usecase import Ask
from pipelines.fair_requests import Reads
from pipelines.ingest.usecase import Ingest
from settings import get_settings
from tenants.access.quotas import RateLimiter
from tenants.accounts.registry import Registry
from tenants.chats import sites
from tenants.core.context import Tenant, acting_as
from tenants.core.errors import NotFound
from tenants.knowledge import documents, published
from tenants.knowledge.published import Listed
from tests.installations import installed
from tests.unit.pipelines.ask.test_ask_usecase import FakeEngine, answered
from ui.help import pages


def test_search_for_unrelated_words_finds_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with installed(tmp_path):
        Registry().add("acme")
        with acting_as(Tenant("acme", "anna")):
            Ingest().run([SourceDocument("refund", "Возврат", "Возврат товара возможен за 14 дней.", "refund.md")])
            documents = TenantRetriever().run(query="возврат")["documents"]
            scores = {"cosine": 0.78}
            near = [replace(one, meta=one.meta | {"scores": one.meta["scores"] | scores}) for one in documents]
            monkeypatch.setattr(TenantRetriever, "run", lambda *_, **__: {"documents": near})
            centre = HelpCentre()
            assert [one.doc_id for one in centre.search("возврат")] == ["refund"]
            assert centre.search("qwerty") == ()


def test_the_first_page_shows_fifty_groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    groups = tuple(Group(f"g{number:03}", (Listed("refund", "Refund", "refund.md", ()),)) for number in range(101))
    monkeypatch.setattr(HelpCentre, "groups", lambda _: groups)
    with installed(tmp_path):
        Registry().add("acme")
        with acting_as(Tenant("acme", "anna")):
            runner = Runner(Ask(FakeEngine(answered)), workers=1, budget=30)
            shown = pages._Pages(RateLimiter(get_settings()), runner, Reads())
            site = sites.add("Shop", ["*"])
            first, last = (bytes(shown.listed(None, page, site).body).decode() for page in (1, 3))
    assert (first.count("<section>"), last.count("<section>")) == (50, 1)
    assert ("?page=2" in first, 'rel="prev"' in first) == (True, False)
    assert ("?page=2" in last, 'rel="next"' in last) == (True, False)


def test_pages_share_the_list_until_a_document_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    list_documents, reads = published.list_documents, list[int]()

    def counted() -> tuple[Listed, ...]:
        reads.append(1)
        return list_documents()

    monkeypatch.setattr(published, "list_documents", counted)
    with installed(tmp_path):
        Registry().add("acme")
        with acting_as(Tenant("acme", "anna")):
            Ingest().run([SourceDocument("the refund", "Возврат", "Возврат возможен за 14 дней.", "refund.md")])
            centre = HelpCentre()
            for _ in range(3):
                assert [len(group.articles) for group in centre.groups()] == [1]
                assert centre.article(article_key("the refund")).record.title == "Возврат"
                with pytest.raises(NotFound):
                    centre.article("~0123456789abcdef0123")
            assert len(reads) == 1
            documents.put(replace(documents.find(["the refund"])["the refund"], status="archived"))
            with pytest.raises(NotFound):
                centre.article(article_key("the refund"))
            assert centre.groups() == ()
            documents.put(replace(documents.find(["the refund"])["the refund"], status="active"))
            assert len(centre.groups()) == 1
            documents.remove("the refund")
            assert centre.groups() == ()


async def test_a_search_has_a_seat_of_questions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with installed(tmp_path), ExitStack() as closing:
        Registry().add("acme")
        with acting_as(Tenant("acme", "anna")):
            runner = Runner(Ask(FakeEngine(answered)), workers=1, budget=30)
            closing.callback(runner.close)
            seated = list[str]()

            def counted(words: str) -> tuple[Found, ...]:
                seated.append(current_thread().name)
                return ()

            shown = pages._Pages(RateLimiter(get_settings()), runner, Reads())
            monkeypatch.setattr(shown._centre, "search", counted)
            page = await shown.search("возврат", "127.0.0.1", sites.add("Shop", ["*"]))
            assert page.status_code == 200
    assert seated[0].startswith("seat")
