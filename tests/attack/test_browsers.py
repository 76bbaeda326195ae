"""Cookies and links of other sites in the browser of an operator."""

from collections.abc import Iterator
from urllib.parse import urlsplit

import httpx
import pytest

from pipelines import desk_gate
from settings import Settings
from tenants.core.context import Tenant, acting_as
from tenants.desk import sso_providers
from tests import desk
from tests.attack.attacking import ATTACKER, VICTIM
from tests.provider import CLIENT, SECRET, IdentityProvider, providing
from tests.service.serving import Server, in_force


@pytest.mark.parametrize("blank", [b"\xa0", b"\x85", b"\x1f"])
def test_no_neighbour_plants_a_session(server: Server, installation: Settings, blank: bytes) -> None:
    """Chromium 156 lets each host of a domain set such a cookie for all of them: its name has no prefix for it."""
    with in_force(installation):
        own, planted = (desk.secret_of(desk.staff(tenant, {"anna": "admin"})["anna"]) for tenant in (VICTIM, ATTACKER))
    name = desk_gate.COOKIE.encode()
    cookie = b"%s=%s" % (name, own.encode())
    foreign = b"%s%s=%s" % (blank, name, planted.encode())
    with httpx.Client(base_url=server.url, timeout=60) as client:
        account = client.get("/desk/account", headers=[(b"Cookie", cookie + b"; " + foreign)])
        assert f"anna@{VICTIM}" in account.text
        nobody = client.get("/desk/account", headers=[(b"Cookie", foreign)])
        assert nobody.headers["location"].startswith(desk_gate.SIGN_IN)


@pytest.fixture
def provider(installation: Settings) -> Iterator[IdentityProvider]:
    with in_force(installation), acting_as(Tenant(ATTACKER, "admin")), providing() as running:
        running.person = {"email": "vera@shop.example", "email_verified": True}
        given = {"issuer": running.issuer, "client_id": CLIENT, "client_secret": SECRET}
        sso_providers.put(sso_providers.parsed({**given, "domains": ["shop.example"], "default_role": "operator"}))
        yield running
        sso_providers.remove()


def test_no_foreign_page_signs_an_operator_in(server: Server, provider: IdentityProvider) -> None:
    with httpx.Client(base_url=server.url, timeout=60) as client:

        def led_to(site: str) -> str:
            return str(client.get(f"/desk/sso/{ATTACKER}", headers={"Sec-Fetch-Site": site}).headers["location"])

        for site in ("cross-site", "same-site"):
            asked = led_to(site)
            assert asked == f"/desk/sso?tenant={ATTACKER}"
            assert f'href="/desk/sso/{ATTACKER}"' in client.get(asked).text
        for site in ("same-origin", "none"):
            assert urlsplit(led_to(site)).netloc == urlsplit(provider.issuer).netloc


@pytest.mark.usefixtures("provider")
@pytest.mark.parametrize(("blank", "status"), [(b"", 303), (b"\xa0", 403)], ids=["own", "planted"])
def test_no_neighbour_plants_an_attempt_to_sign_in(server: Server, blank: bytes, status: int) -> None:
    with httpx.Client(base_url=server.url, timeout=60) as client:
        begun = client.get(f"/desk/sso/{ATTACKER}")
        attempt = begun.headers["set-cookie"].partition(";")[0].encode()
        back = urlsplit(httpx.get(begun.headers["location"]).headers["location"])
        client.cookies.clear()
        returned = client.get(f"{back.path}?{back.query}", headers=[(b"Cookie", blank + attempt)])
    assert returned.status_code == status


def test_no_browser_keeps_the_data_of_a_tenant(attacker: httpx.Client) -> None:
    for path in ("/documents", "/chats", "/audit"):
        headers = attacker.get(path).headers
        assert headers["cache-control"] == "no-store"
        assert headers["x-content-type-options"] == "nosniff"
