"""Pages of a website become documents like any others, under their addresses."""

from functools import partial

import pytest
from typer.testing import CliRunner

import cli
from components.ingest.crawl import Crawl
from components.ingest.fetch import Fetcher
from pipelines.ingest import usecase
from pipelines.ingest.usecase import Ingest
from tenants import documents
from tenants.context import Tenant
from tenants.errors import CallerError
from tests.unit.components.ingest.site import page, serving


def test_a_site_becomes_documents_with_their_addresses(tenant: Tenant, ingest: Ingest) -> None:
    crawl = Crawl(Fetcher(permitted=lambda address: address == "127.0.0.1"), pause=0)
    first = page('<h1>Возврат</h1><p>Вернуть товар можно за 7 дней.</p><a href="/help/b">Гарантия</a>')
    with serving({"/help/": first, "/help/b": page("<h1>Гарантия</h1><p>Гарантия два года.</p>")}) as site:
        report = ingest.run_site(site.url + "/help/", crawl=crawl)
        again = ingest.run_site(site.url + "/help/", crawl=crawl)
        found = {record.doc_id.removeprefix(site.url): record for record in documents.all()}
    assert (report.added, report.errors, again.unchanged) == (2, (), 2)
    assert {path: record.title for path, record in found.items()} == {"/help/": "Возврат", "/help/b": "Гарантия"}
    assert all(record.url == record.doc_id for record in found.values())


def test_an_inner_address_is_not_ingested(tenant: Tenant, ingest: Ingest) -> None:
    with serving({"/": page("secret")}) as site, pytest.raises(CallerError, match="url_forbidden"):
        ingest.run_site(site.url)
    assert not documents.all()


def test_the_command_takes_the_address_of_a_site(tenant: Tenant, monkeypatch: pytest.MonkeyPatch) -> None:
    own_network = partial(Crawl, Fetcher(permitted=lambda address: address == "127.0.0.1"), pause=0)
    monkeypatch.setattr(usecase, "Crawl", own_network)
    with serving({"/help/": page("<h1>Возврат</h1><p>Вернуть товар можно за 7 дней.</p>")}) as site:
        done = CliRunner().invoke(cli.app, ["ingest", f"{site.url}/help/", "--tenant", tenant.tenant_id])
    assert done.exit_code == 0
    assert [record.doc_id for record in documents.all()] == [f"{site.url}/help/"]


def test_a_site_cannot_be_watched(tenant: Tenant) -> None:
    done = CliRunner().invoke(cli.app, ["ingest", "https://example.com/", "--watch", "--tenant", tenant.tenant_id])
    assert done.exit_code == 2
    assert "https://example.com/" in done.stderr
