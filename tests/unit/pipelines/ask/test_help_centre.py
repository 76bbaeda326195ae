"""The help centre: search where an encoder returns the nearest sections to any query, and pages of many groups."""

from dataclasses import replace
from pathlib import Path

import pytest

from components.ingest.document import SourceDocument
from components.retrieve.retriever import TenantRetriever
from pipelines.ask.help_centre import Group, HelpCentre
from pipelines.ingest.usecase import Ingest
from settings import get_settings
from tenants.access.quotas import RateLimiter
from tenants.accounts.registry import Registry
from tenants.chats import sites
from tenants.core.context import Tenant, acting_as
from tenants.knowledge.published import Listed
from tests.installations import installed
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
            shown = pages._Pages(RateLimiter(get_settings()))
            site = sites.add("Shop", ["*"])
            first, last = (bytes(shown.listed(None, page, site).body).decode() for page in (1, 3))
    assert (first.count("<section>"), last.count("<section>")) == (50, 1)
    assert ("?page=2" in first, 'rel="prev"' in first) == (True, False)
    assert ("?page=2" in last, 'rel="next"' in last) == (True, False)
