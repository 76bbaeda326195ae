"""From an empty data folder to a tenant with an admin, and the walk through the product by keyboard."""

import asyncio
import re
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import httpx
import pytest
from playwright.sync_api import Browser, expect

import app
from pipelines import desk_gate
from settings import Settings, get_settings
from tenants.accounts.registry import Registry
from tenants.audit import search
from tenants.chats import sites
from tenants.core.context import Tenant, acting_as
from tenants.core.errors import NotFound
from tenants.desk import first_run, operator_sessions, operators
from tenants.storage import database
from tests import desk, desk_views
from tests.desk import PASSWORD, SAME_ORIGIN
from tests.service.serving import Server, environment, in_force, serving
from tests.service.walk import walk

FORM = {
    "tenant_id": "acme",
    "tenant_name": "Магазин",
    "locale": "ru",
    "origin": "https://shop.example",
    "login": "anna@shop.example",
    "name": "Анна",
    "password": PASSWORD,
}


@pytest.fixture
def empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> httpx.AsyncClient:
    """A client of a service on an empty data folder."""
    monkeypatch.setenv("OPORA_DATA_DIR", str(tmp_path))
    get_settings.cache_clear()
    database.close_all()
    transport = httpx.ASGITransport(app.create_app(get_settings()))
    return httpx.AsyncClient(transport=transport, base_url="http://opora")


async def test_the_link_leads_once_to_a_tenant_an_admin_and_a_site(empty: httpx.AsyncClient) -> None:
    older, secret = first_run.open_link(), first_run.open_link()
    assert older is not None
    path = f"/desk/first-run/{secret}"
    assert (await empty.get(f"/desk/first-run/{older}")).status_code == 404
    assert 'name="tenant_id"' in (await empty.get(path)).text
    assert (await empty.post(path, data=FORM, headers={"Sec-Fetch-Site": "cross-site"})).status_code == 403
    for wrong in ({"password": "short"}, {"login": "!"}, {"origin": "shop"}, {"tenant_id": "a\nb"}):
        refused = await empty.post(path, data={**FORM, **wrong}, headers=SAME_ORIGIN)
        assert refused.status_code == 422
        assert 'role="alert"' in refused.text
        assert PASSWORD not in refused.text
    assert Registry().list() == ()
    done = await empty.post(path, data=FORM, headers=SAME_ORIGIN)
    assert (done.status_code, done.headers["location"]) == (303, "/desk/welcome")
    found = re.match(rf"{desk_gate.COOKIE}=([^;]+)", done.headers["set-cookie"])
    assert found is not None
    welcome = await empty.get("/desk/welcome", headers={"Cookie": f"{desk_gate.COOKIE}={found[1]}"})
    with acting_as(Tenant("acme", "anna")):
        (site,) = sites.own()
        assert site.origins == ("https://shop.example",)
        assert operators.get("anna@shop.example").role == "admin"
    assert site.key in welcome.text
    assert (await empty.get(path)).status_code == 404
    assert (await empty.post(path, data={**FORM, "tenant_id": "b"}, headers=SAME_ORIGIN)).status_code == 404
    assert first_run.open_link() is None


async def test_a_link_is_dead_once_somebody_is_there(empty: httpx.AsyncClient) -> None:
    secret = first_run.open_link()
    assert secret is not None
    Registry().add("acme")
    assert (await empty.get(f"/desk/first-run/{secret}")).status_code == 404
    with pytest.raises(NotFound, match="link_used"):
        first_run.check(secret)
    hint = "Учётных записей пока нет"
    assert hint in (await empty.get(desk_gate.SIGN_IN, headers={"Accept-Language": "ru"})).text
    with acting_as(Tenant("acme", "anna")):
        operators.add("anna@shop.example", PASSWORD, role="admin")
    assert hint not in (await empty.get(desk_gate.SIGN_IN, headers={"Accept-Language": "ru"})).text


async def test_the_next_steps_add_the_first_site_and_explain_masks(
    empty: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    Registry().add("acme", name="Магазин")
    with acting_as(Tenant("acme", "anna")):
        anna = operators.add("anna@shop.example", PASSWORD, role="admin")
    secret = desk.secret_of(anna)
    headers = {"Cookie": f"{desk_gate.COOKIE}={secret}", **SAME_ORIGIN}

    async def add(origin: str) -> httpx.Response:
        form = {"csrf": operator_sessions.verify(secret).csrf, "key": "", "origin": origin}
        return await empty.post("/desk/welcome/site", data=form, headers=headers)

    assert 'action="/desk/welcome/site' in (await empty.get("/desk/welcome", headers=headers)).text
    refused = await add("shop")
    assert (refused.status_code, 'role="alert"' in refused.text) == (422, True)
    twice = await asyncio.gather(add("https://shop.example"), add("https://shop.example"))
    assert [one.status_code for one in twice] == [303, 303]
    with acting_as(Tenant("acme", "anna")):
        (site,) = sites.own()
    assert (site.name, site.origins) == ("Магазин", ("https://shop.example",))
    assert f'data-site="{site.key}"' in (await empty.get("/desk/welcome", headers=headers)).text

    for answer, is_masked in (("Пишите нам.", False), ("Пишите на [email].", True)):
        record = SimpleNamespace(question="Куда писать?", content={"answer": desk.evidence(answer)})
        monkeypatch.setattr(search, "find", lambda *_, record=record, **__: [record])
        page = (await empty.get("/desk/welcome", headers=headers)).text
        assert (answer in page, 'id="masked"' in page) == (True, is_masked)


@pytest.fixture
def begun(tmp_path: Path) -> Iterator[tuple[Server, str]]:
    """A service on an empty data folder, and the path of its one-time link."""
    settings = Settings(data_dir=tmp_path / "data", default_locale="ru", rate_limit_per_minute=0)
    with in_force(settings):
        secret = first_run.open_link()
        with serving(environment(settings)) as server:
            yield server, f"/desk/first-run/{secret}"


def test_the_whole_walk_works_by_keyboard_only(browser: Browser, begun: tuple[Server, str], tmp_path: Path) -> None:
    server, link = begun
    with browser.new_context(bypass_csp=True, locale="ru-RU") as context:
        page = context.new_page()
        page.goto(f"{server.url}{link}")
        expect(page.locator('[name="tenant_id"]')).to_be_visible()
        assert desk_views.faults(page) == []
    walk(browser, server, link, tmp_path)
    assert not [line for line in server.log if " ERROR " in line]
