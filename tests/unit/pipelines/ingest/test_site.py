"""Pages of a website become documents like any others, under their addresses."""

import json
import ssl
from datetime import UTC, datetime, timedelta
from functools import partial
from ipaddress import ip_address
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from typer.testing import CliRunner

import cli
from components.ingest.crawl import Crawl
from components.ingest.fetch import Fetcher
from pipelines.ingest import usecase
from pipelines.ingest.usecase import Ingest
from tenants.core.context import Tenant
from tenants.core.errors import CallerError
from tenants.knowledge import documents
from tests.unit.components.ingest.site import page, serving


def test_a_site_becomes_documents_with_their_addresses(
    tenant: Tenant, ingest: Ingest, monkeypatch: pytest.MonkeyPatch
) -> None:
    crawl = Crawl(Fetcher(permitted=lambda address: address == "127.0.0.1"), pause=0)
    monkeypatch.setattr(usecase, "Crawl", lambda: crawl)
    first = page('<h1>Возврат</h1><p>Вернуть товар можно за 7 дней.</p><a href="/help/b">Гарантия</a>')
    with serving({"/help/": first, "/help/b": page("<h1>Гарантия</h1><p>Гарантия два года.</p>")}) as site:
        report = ingest.run_site(site.url + "/help/")
        again = ingest.run_site(site.url + "/help/")
        found = {record.doc_id.removeprefix(site.url): record for record in documents.all()}
    assert (report.added, report.errors, again.unchanged) == (2, (), 2)
    assert {path: record.title for path, record in found.items()} == {"/help/": "Возврат", "/help/b": "Гарантия"}
    assert all(record.url == record.doc_id for record in found.values())


def test_an_inner_address_is_not_ingested(tenant: Tenant, ingest: Ingest) -> None:
    with serving({"/": page("secret")}) as site, pytest.raises(CallerError, match="url_forbidden"):
        ingest.run_site(site.url)
    assert not documents.all()


def certified(folder: Path, monkeypatch: pytest.MonkeyPatch) -> ssl.SSLContext:
    """A certificate for 127.0.0.1 that this process trusts."""
    key, name, now = ec.generate_private_key(ec.SECP256R1()), x509.Name([]), datetime.now(UTC)
    address = x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))])
    builder = x509.CertificateBuilder().issuer_name(name).subject_name(name).public_key(key.public_key())
    builder = builder.serial_number(x509.random_serial_number()).add_extension(address, critical=True)
    builder = builder.not_valid_before(now - timedelta(days=1)).not_valid_after(now + timedelta(days=1))
    certificate = builder.sign(key, hashes.SHA256())
    file = folder / "site.pem"
    unencrypted = serialization.NoEncryption()
    file.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, unencrypted)
        + certificate.public_bytes(serialization.Encoding.PEM)
    )
    monkeypatch.setenv("SSL_CERT_FILE", str(file))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)
    return context


def test_the_command_takes_the_address_of_a_site_and_its_pages_answer(
    tenant: Tenant, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    own_network = partial(Crawl, Fetcher(permitted=lambda address: address == "127.0.0.1"), pause=0)
    monkeypatch.setattr(usecase, "Crawl", own_network)
    code = page("<h1>Код E20</h1><p>Код E20 означает, что вода не сливается. Очистите фильтр насоса.</p>")
    with serving({"/help/": code}, certified(tmp_path, monkeypatch)) as site:
        done = CliRunner().invoke(cli.app, ["ingest", f"{site.url}/help/", "--tenant", tenant.tenant_id])
    assert (done.exit_code, site.url.startswith("https://")) == (0, True), done.output
    asked = CliRunner().invoke(cli.app, ["ask", "Что значит код E20?", "--tenant", tenant.tenant_id, "--json"])
    answer = json.loads(asked.stdout)
    assert (answer["outcome"], answer["citations"][0]["url"]) == ("answered", f"{site.url}/help/")
    assert "Очистите фильтр насоса" in answer["answer"]["text"]
