"""Pages of a website become documents like any others, under their addresses."""

import pytest

from components.ingest.crawl import Crawl
from components.ingest.fetch import Fetcher
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
