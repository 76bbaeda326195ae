"""Administration of an installation: adding tenants, inviting their first admins, suspension and removal."""

from collections.abc import Callable, Iterator, Mapping

import httpx
import pytest
from lxml import html

from pipelines import desk_gate
from tenants.access import issued_tokens
from tenants.accounts.registry import Registry
from tenants.chats import sites
from tenants.core.context import Tenant, acting_as
from tenants.desk import operators
from tests import desk
from tests.browser.payloads import PAYLOADS
from tests.service.serving import Server, problem

ALL = "/desk/tenants"
LOGIN = "anna@daisy.example"


class Root(desk.Browser):
    """An admin of the installation at a browser."""

    def act(self, name: str, form: Mapping[str, str]) -> httpx.Response:
        return self.post(f"{ALL}/{name}", form)


@pytest.fixture
def root(server: Server) -> Iterator[Root]:
    with httpx.Client(base_url=server.url, timeout=60) as client:
        yield Root(client, desk.secret_of(desk.root()))


@pytest.fixture
def added(root: Root) -> Iterator[Callable[[str], httpx.Response]]:
    """Add tenants by the page; remove the remaining ones at the end."""
    names: list[str] = []

    def add(tenant_id: str, name: str = "") -> httpx.Response:
        names.append(tenant_id)
        return root.act("add", {"tenant_id": tenant_id, "name": name, "locale": "ru"})

    yield add
    for name in names:
        root.act("remove", {"id": name, "typed": name})


def link_in(response: httpx.Response) -> str:
    assert response.status_code == 200, response.text
    page: html.HtmlElement = html.document_fromstring(response.content)
    return str(page.get_element_by_id("invitation-link").text)


def test_a_new_tenants_first_admin_signs_in_by_a_one_time_link(
    root: Root, added: Callable[..., httpx.Response]
) -> None:
    page = added("daisy", "Ромашка")
    path = link_in(page).removeprefix(str(root.client.base_url).rstrip("/"))
    again = added("daisy")
    assert (again.status_code, "идентификатором уже есть" in again.text) == (422, True)
    renewed = root.act("invite", {"id": "daisy"})
    assert root.client.get(path).status_code == 404
    path = link_in(renewed).removeprefix(str(root.client.base_url).rstrip("/"))
    assert "Ромашка" in root.client.get(path).text

    def accept(password: str, login: str = LOGIN) -> httpx.Response:
        form = {"login": login, "name": "Анна", "password": password}
        return root.client.post(path, data=form, headers=desk.SAME_ORIGIN)

    short = accept("x")
    assert (short.status_code, LOGIN in short.text) == (422, True)
    assert accept(desk.PASSWORD, login="x").status_code == 422
    taken = accept(desk.PASSWORD)
    assert (taken.status_code, taken.headers["location"]) == (303, "/desk/welcome")
    assert root.client.get(path).status_code == accept(desk.PASSWORD).status_code == 404
    with acting_as(Tenant("daisy", LOGIN)):
        assert [(one.login, one.role) for one in operators.all()] == [(LOGIN, "admin")]
    assert root.act("invite", {"id": "daisy"}).status_code == 409


def test_a_suspended_tenant_is_let_in_nowhere_until_it_is_resumed(
    root: Root, added: Callable[..., httpx.Response]
) -> None:
    added("daisy", "Ромашка")
    with acting_as(Tenant("daisy", "admin")):
        _, token = issued_tokens.issue(subject="crm", scopes=["admin"], ttl_seconds=600)
        site = sites.add("Магазин", ["https://shop.example"])
        admin = operators.add(LOGIN, desk.PASSWORD, role="admin")
    secret = desk.secret_of(admin)

    def answers() -> list[httpx.Response]:
        origin = {"Origin": "https://shop.example"}
        return [
            root.client.get("/tools", headers={"Authorization": f"Bearer {token}"}),
            root.client.get("/desk", headers={"Cookie": f"{desk_gate.COOKIE}={secret}"}),
            root.client.post("/widget/sessions", json={"site": site.key}, headers=origin),
        ]

    assert [one.status_code for one in answers()] == [200, 200, 200]
    assert "Организация приостановлена." in root.act("suspend", {"id": "daisy"}).text
    by_token, page, widget = answers()
    for one in (by_token, widget):
        problem(one, 403, "tenant_suspended")
    assert (page.status_code, "Организация приостановлена" in page.text) == (403, True)
    assert "приостановлена" in root.get(ALL).text
    assert root.act("resume", {"id": "daisy"}).status_code == 200
    assert [one.status_code for one in answers()] == [200, 200, 200]


def test_a_tenant_goes_only_when_its_id_is_typed(root: Root, added: Callable[..., httpx.Response]) -> None:
    added("daisy", "Ромашка")
    mistyped = root.act("remove", {"id": "daisy", "typed": "Ромашка"})
    assert (mistyped.status_code, 'value="Ромашка"' in mistyped.text) == (422, True)
    assert Registry().exists("daisy")
    gone = root.act("remove", {"id": "daisy", "typed": "daisy"})
    assert (gone.status_code, gone.headers["location"]) == (303, f"{ALL}?done=removed")
    assert "daisy" not in {one.tenant_id for one in Registry().list()}
    assert root.get(f"{ALL}/one?id=daisy").status_code == 404


def test_a_hostile_name_stays_text(root: Root, added: Callable[..., httpx.Response]) -> None:
    name = "".join(PAYLOADS).replace("\0", "")[:500]
    for response in (added("hostile-tenant", name), root.get(ALL), root.get(f"{ALL}/one?id=hostile-tenant")):
        assert response.status_code == 200
        made = {str(one.tag) for one in html.fromstring(response.content).iter("body", *BAD)}
        assert made == {"body"}


BAD = ("img", "svg", "iframe", "object", "embed", "style", "video", "base")
