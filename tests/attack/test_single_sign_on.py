"""Sign-ins by identity providers, of which each belongs to one tenant."""

from urllib.parse import parse_qsl, urlsplit

import httpx
import pytest

from settings import Settings
from tenants.core.context import Tenant, acting_as
from tenants.desk import providers
from tests.attack.attacking import ATTACKER, VICTIM
from tests.provider import CLIENT, SECRET, providing
from tests.service.serving import Server, in_force


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
                providers.put(providers.parsed({**given, "domains": ["shop.example"]}))
        of_attacker = httpx.get(f"{server.url}/desk/sso/{VICTIM}").headers["location"]
        of_person = httpx.get(f"{server.url}/desk/sso/{ATTACKER}")
        state = dict(parse_qsl(urlsplit(of_person.headers["location"]).query))["state"]
        back = httpx.get(httpx.URL(of_attacker).copy_merge_params({"state": state})).headers["location"]
        cookie = of_person.headers["set-cookie"].partition(";")[0]
        assert httpx.get(back, headers={"Cookie": cookie}).status_code == 403
        for tenant_id in (VICTIM, ATTACKER):
            with acting_as(Tenant(tenant_id, "admin")):
                providers.remove()
    assert stolen == []
