"""Links to the help centre: sites, sections, and documents without a page."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from urllib.parse import unquote

import pytest

from components.ingest.document import SourceDocument
from components.turn import Article, DocumentStatus, Passage
from pipelines.ask import help_links
from pipelines.ask.help_links import article_key
from pipelines.ask.outlines import anchor
from pipelines.ingest.usecase import Ingest
from tenants.accounts.registry import Registry
from tenants.chats import sites
from tenants.chats.sites import SiteConfig
from tenants.core.context import Tenant, acting_as
from tests.installations import installed

PUBLIC = "https://help.example"


def passage(doc_id: str, heading: str = "", status: DocumentStatus = "active") -> Passage:
    return Passage("c", doc_id, "", heading, "", (), status=status)


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("OPORA_PUBLIC_URL", PUBLIC)
    with installed(tmp_path):
        Registry().add("acme")
        with acting_as(Tenant("acme", "admin")):
            sites.add("A", [], SiteConfig(help_centre="off"), key="site-off")
            sites.add("B", [], key="site-on")
        yield


def _links(site: str = "") -> help_links.HelpLinks:
    with acting_as(Tenant("acme", "anna", site=site)):
        links = help_links.of_caller()
    assert links is not None
    return links


@pytest.mark.usefixtures("shop")
def test_an_offered_article_lists_its_other_sections() -> None:
    headings = [
        "Сроки",
        "Условия",
        "Деньги",
        "Обмен",
        "Стоимость",
        "Гарантия",
        "Этапы",
        "Адреса",
        "Как вернуть технику",
    ]
    text = "# Возврат\n\n" + "\n\n".join(f"## {one}\n\nПодробности о том, что сказано выше." for one in headings)
    with acting_as(Tenant("acme", "anna")):
        Ingest().run([SourceDocument("returns.md", "Возврат", text, "returns.md")])
        offered = Article(passage("returns.md", "Сроки"), "", 0.3)
        links = _links().sections(offered, "вернуть технику")
        of_unknown = _links().sections(Article(passage("unknown.md"), "", 0.3), "вернуть")
    assert [one.heading for one in links] == [
        "Условия",
        "Деньги",
        "Обмен",
        "Стоимость",
        "Гарантия",
        "Как вернуть технику",
    ]
    assert unquote(links[-1].url) == f"{PUBLIC}/help/site-on/returns.md#как-вернуть-технику"
    assert of_unknown == ()


@pytest.mark.usefixtures("shop")
def test_api_links_lead_to_the_first_site_with_a_help_centre() -> None:
    with acting_as(Tenant("acme", "anna")):
        links = _links()
        address = links.to(passage("returns.md", "Возврат › Сроки"))
        assert address is not None
        assert address.isascii()
        assert unquote(address) == f"{PUBLIC}/help/site-on/returns.md#возврат-сроки"
        assert links.to(passage("old.md", status="archived")) is None
        assert links.to(passage("tool:orders")) is None
        merged = replace(passage("shop.md"), text="Оплата\n\nКартой или\nналичными.\n\nСамовывоз\n\nЗавтра с 9:00.")
        assert unquote(links.to(merged, "Завтра с 9:00.") or "").endswith("/shop.md#самовывоз")
        assert unquote(links.to(merged, "Картой или наличными.") or "").endswith("/shop.md#оплата")
        assert (links.to(merged) or "").endswith("/shop.md")


@pytest.mark.usefixtures("shop")
def test_chat_of_a_site_without_a_help_centre_has_no_links() -> None:
    with acting_as(Tenant("acme", "v:1", site="site-off")):
        assert help_links.of_caller() is None


def test_unsafe_ids_are_replaced_by_a_digest() -> None:
    assert article_key("errors.md") == "errors.md"
    keys = {article_key(doc_id) for doc_id in ("a/b.md", "..", "https://a.example/?q#x", "~x", "статья", "")}
    assert len(keys) == 6
    assert all(key[0] == "~" and key[1:].isalnum() for key in keys)


def test_anchor_is_made_of_words() -> None:
    assert anchor("E20 — вода не сливается › Что делать?") == "e20-вода-не-сливается-что-делать"
    assert anchor("") == ""
