"""Sign-ins by identity providers, of which each belongs to one tenant."""

from collections.abc import Iterator
from urllib.parse import parse_qsl, urlsplit

import httpx
import pytest

from settings import Settings
from tenants.core.context import Tenant, acting_as
from tenants.desk import operators, sso_providers
from tests.attack.attacking import ATTACKER, VICTIM
from tests.provider import CLIENT, SECRET, IdentityProvider, providing
from tests.service.serving import Server, in_force

PERSON = "vera@shop.example"


@pytest.fixture
def honest(installation: Settings) -> Iterator[IdentityProvider]:
    """The victim's provider."""
    with in_force(installation), acting_as(Tenant(VICTIM, "admin")), providing() as running:
        running.person = {"email": PERSON, "email_verified": True}
        given = {"issuer": running.issuer, "client_id": CLIENT, "client_secret": SECRET, "default_role": "operator"}
        sso_providers.put(sso_providers.parsed({**given, "domains": ["shop.example"]}))
        yield running
        if PERSON in {one.login for one in operators.all()}:
            operators.remove(PERSON, even_last=True)
        sso_providers.remove()


def come_back(server: Server, **given: str) -> int:
    """Sign in at the provider and come back with more parameters; return the status: 303 if signed in."""
    begun = httpx.get(f"{server.url}/desk/sso/{VICTIM}")
    back = httpx.URL(httpx.get(begun.headers["location"]).headers["location"]).copy_merge_params(given)
    return httpx.get(back, headers={"Cookie": begun.headers["set-cookie"].partition(";")[0]}).status_code


@pytest.mark.usefixtures("victim")
def test_a_callback_of_another_issuer_is_refused(server: Server, honest: IdentityProvider) -> None:
    """RFC 9207: a code that another provider has issued is not sent to this one."""
    assert come_back(server) == come_back(server, iss=honest.issuer) == 303
    assert come_back(server, iss="https://evil.example") == come_back(server, iss="") == 403


@pytest.mark.usefixtures("victim")
def test_a_provider_that_names_itself_does_so_always(server: Server, honest: IdentityProvider) -> None:
    honest.says = {"authorization_response_iss_parameter_supported": True}
    assert come_back(server) == 403
    assert come_back(server, iss=honest.issuer) == 303


@pytest.mark.usefixtures("attacker", "victim")
def test_a_code_reaches_no_provider_of_another_tenant(
    server: Server, installation: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Threat: the attacker's provider sends a person on to the victim's, whose code comes back to the attacker's."""
    stolen = list[object]()
    with in_force(installation), providing() as honest, providing() as hostile:
        monkeypatch.setattr(hostile, "token", lambda _, form: stolen.append(form["code"]))
        for tenant_id, provider in ((VICTIM, honest), (ATTACKER, hostile)):
            with acting_as(Tenant(tenant_id, "admin")):
                given = {"issuer": provider.issuer, "client_id": CLIENT, "client_secret": SECRET}
                sso_providers.put(sso_providers.parsed({**given, "domains": ["shop.example"]}))
        of_attacker = httpx.get(f"{server.url}/desk/sso/{VICTIM}").headers["location"]
        of_person = httpx.get(f"{server.url}/desk/sso/{ATTACKER}")
        state = dict(parse_qsl(urlsplit(of_person.headers["location"]).query))["state"]
        back = httpx.get(httpx.URL(of_attacker).copy_merge_params({"state": state})).headers["location"]
        cookie = of_person.headers["set-cookie"].partition(";")[0]
        assert httpx.get(back, headers={"Cookie": cookie}).status_code == 403
        for tenant_id in (VICTIM, ATTACKER):
            with acting_as(Tenant(tenant_id, "admin")):
                sso_providers.remove()
    assert stolen == []
