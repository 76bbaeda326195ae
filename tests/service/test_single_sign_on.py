"""Signing in by a tenant's identity provider, normally and under attack."""

import re
from collections.abc import Iterator
from time import time
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest
from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key
from playwright.sync_api import expect, sync_playwright

from pipelines import desk_gate
from settings import Settings
from tenants.accounts import settings_history
from tenants.accounts.registry import Registry
from tenants.core.context import Tenant, acting_as
from tenants.desk import operator_sessions, operators, sso_providers
from tenants.storage import database
from tests import desk
from tests.browser.conftest import launched
from tests.provider import CLIENT, SECRET, IdentityProvider, providing
from tests.service.serving import Server, environment, in_force, serving
from ui.desk.sso import COOKIE

ADMIN = Tenant("signed", "admin")
EMAIL = "vera@shop.example"
CALLBACK = "/desk/sso-callback/signed"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """An installation that may connect to this machine's own addresses, with an empty tenant."""
    folder = tmp_path_factory.mktemp("single-sign-on")
    settings = Settings(data_dir=folder, tool_networks="127.0.0.0/8", sign_ins_per_minute=0, default_locale="ru")
    Registry(settings).add("signed", locale="ru")
    Registry(settings).add("other", locale="ru")
    return settings


@pytest.fixture(scope="module")
def service(place: Settings) -> Iterator[Server]:
    with serving(environment(place)) as running:
        yield running


@pytest.fixture
def provider(place: Settings) -> Iterator[IdentityProvider]:
    with in_force(place), acting_as(ADMIN), providing() as running:
        running.person = {"email": EMAIL, "email_verified": True, "name": "Вера"}
        given = {"issuer": running.issuer, "client_id": CLIENT, "client_secret": SECRET}
        rules = {"domains": ["shop.example"], "default_role": "operator", "role_claim": "groups"}
        sso_providers.put(sso_providers.parsed({**given, **rules, "roles": {"editors": "editor", "admins": "admin"}}))
        yield running
        if EMAIL in {one.login for one in operators.all()}:
            operators.remove(EMAIL, even_last=True)


@pytest.fixture
def client(service: Server) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=service.url, timeout=60, headers={"Accept-Language": "ru"}) as client:
        yield client


def begin(client: httpx.Client, next: str = "") -> tuple[str, str]:
    """Begin signing in; return the redirect address and the cookie."""
    begun = client.get("/desk/sso/signed", params={"next": next} if next else {})
    assert begun.status_code == 303, begun.text
    cookie = begun.headers["set-cookie"]
    for part in ("Secure", "HttpOnly", "SameSite=lax", "Path=/"):
        assert part in cookie
    return begun.headers["location"], cookie.partition(";")[0]


def come_back(client: httpx.Client, target: str, *cookies: str) -> httpx.Response:
    """Return the service's response when the browser comes back from the provider."""
    back = httpx.get(target).headers["location"]
    parts = urlsplit(back)
    assert parts.path == CALLBACK
    return client.get(f"{CALLBACK}?{parts.query}", headers={"Cookie": "; ".join(cookies)})


def signed_in(response: httpx.Response) -> str:
    """Return the secret of the new session."""
    assert response.status_code == 303, response.text
    found = re.search(rf"{desk_gate.COOKIE}=([^;]+)", response.headers["set-cookie"])
    assert found is not None
    return found.group(1)


def refused(response: httpx.Response, title: str, status: int = 403) -> None:
    assert (response.status_code, title in response.text) == (status, True), response.text
    assert desk_gate.COOKIE not in response.headers.get("set-cookie", "")
    assert EMAIL not in {one.login for one in operators.all()}


def test_a_new_person_of_the_domain_gets_the_role_of_the_token(
    client: httpx.Client, provider: IdentityProvider
) -> None:
    provider.person["groups"] = ["cooks", "editors"]
    target, cookie = begin(client, "/desk/replies")
    asked = parse_qs(urlsplit(target).query)
    assert asked["code_challenge_method"] == ["S256"]
    assert asked["scope"] == ["openid email profile"]
    response = come_back(client, target, cookie)
    assert response.headers["location"] == "/desk/replies"
    operator = operator_sessions.verify(signed_in(response)).operator
    assert (operator.login, operator.tenant_id, operator.role, operator.name) == (EMAIL, "signed", "editor", "Вера")
    assert f"{COOKIE}=" in response.headers["set-cookie"]
    assert settings_history.latest("person")[0].about == EMAIL
    # Without a password there is no sign-in by password.
    for password in ("", "x", desk.PASSWORD):
        form = {"login": EMAIL, "password": password}
        assert client.post(desk_gate.SIGN_IN, data=form, headers=desk.SAME_ORIGIN).status_code == 401
    provider.person["groups"] = "admins"
    assert operator_sessions.verify(signed_in(come_back(client, *begin(client)))).operator.role == "admin"
    del provider.person["groups"]
    assert operator_sessions.verify(signed_in(come_back(client, *begin(client)))).operator.role == "admin"


def test_keys_may_rotate(client: httpx.Client, provider: IdentityProvider) -> None:
    signed_in(come_back(client, *begin(client)))
    provider.rotate()
    signed_in(come_back(client, *begin(client)))


@pytest.mark.parametrize(
    "changed",
    [
        {"nonce": "another"},
        {"nonce": None},
        {"iss": "https://evil.example"},
        {"aud": "another-client"},
        {"aud": [CLIENT, "another-client"]},
        {"azp": "another-client"},
        {"exp": int(time()) - 3_600},
        {"iat": int(time()) + 3_600},
        {"sub": None},
    ],
    ids=lambda changed: next(iter(changed)),
)
def test_a_token_that_is_not_for_this_sign_in_is_refused(
    client: httpx.Client, provider: IdentityProvider, changed: dict[str, object]
) -> None:
    provider.changed = changed
    refused(come_back(client, *begin(client)), "Служба входа ответила неверно")


def test_a_foreign_signature_and_an_unsigned_token_are_refused(
    client: httpx.Client, provider: IdentityProvider
) -> None:
    provider.signs_with = generate_private_key(65537, 2048)
    refused(come_back(client, *begin(client)), "Служба входа ответила неверно")


@pytest.mark.parametrize(
    "person",
    [
        *({"email": EMAIL, "email_verified": verified} for verified in (False, 1, "True", "false", [True])),
        {"email": EMAIL},
        {"email_verified": True},
        {"email": "vera@evil.example", "email_verified": True},
        {"email": "vera@evil.example@shop.example", "email_verified": True},
        {"email": "vera@sub.shop.example", "email_verified": True},
        {"email": "\uff56era@shop.example", "email_verified": True},
        {"email": "vera@\u017fhop.example", "email_verified": True},
    ],
    ids=str,
)
def test_whoever_is_not_of_the_domain_or_not_verified_stays_outside(
    client: httpx.Client, provider: IdentityProvider, person: dict[str, object]
) -> None:
    provider.person = person
    refused(come_back(client, *begin(client)), "Доступ закрыт")


def test_an_address_is_verified_by_the_word_true(client: httpx.Client, provider: IdentityProvider) -> None:
    provider.person["email_verified"] = "true"
    signed_in(come_back(client, *begin(client)))


def test_login_of_another_tenant_stays_theirs(client: httpx.Client, provider: IdentityProvider) -> None:
    with acting_as(Tenant("other", "admin")):
        theirs = operators.add("boss@shop.example", desk.PASSWORD, role="admin")
    provider.person["email"] = "Boss@Shop.Example"
    boss = operator_sessions.verify(signed_in(come_back(client, *begin(client)))).operator
    assert (boss.login, boss.tenant_id, boss.role) == (theirs.login, "signed", "operator")
    operators.remove(boss.login, even_last=True)
    with acting_as(Tenant("other", "admin")):
        assert operators.get(theirs.login) == theirs
        operators.remove(theirs.login, even_last=True)


def test_only_those_who_were_added_come_in_where_nobody_else_may(
    client: httpx.Client, provider: IdentityProvider
) -> None:
    known = sso_providers.own()
    assert known is not None
    sso_providers.put(known.model_copy(update={"default_role": None, "client_secret": None}))
    refused(come_back(client, *begin(client)), "Доступ закрыт")
    provider.person["email"] = "guest@elsewhere.example"
    operators.add("guest@elsewhere.example", desk.PASSWORD, role="operator")
    signed_in(come_back(client, *begin(client)))
    operators.remove("guest@elsewhere.example", even_last=True)


def test_a_callback_that_this_browser_has_not_begun_is_refused(
    client: httpx.Client, provider: IdentityProvider
) -> None:
    mine, cookie = begin(client)
    other, _ = begin(client)
    back = httpx.get(mine).headers["location"].partition("?")[2]
    for cookies in ("", f"{COOKIE}=forged", f"{COOKIE}="):
        refused(client.get(f"{CALLBACK}?{back}", headers={"Cookie": cookies}), "Время на вход истекло")
    refused(come_back(client, other, cookie), "Время на вход истекло")
    refused(client.get(f"{CALLBACK}?error=access_denied&state=x", headers={"Cookie": cookie}), "Время на вход истекло")
    state = parse_qs(urlsplit(mine).query)["state"][0]
    denied = client.get(f"{CALLBACK}?error=access_denied&state={state}", headers={"Cookie": cookie})
    refused(denied, "Служба входа отказала")
    # The code is still good, and works once.
    signed_in(client.get(f"{CALLBACK}?{back}", headers={"Cookie": cookie}))
    operators.remove(EMAIL, even_last=True)
    refused(client.get(f"{CALLBACK}?{back}", headers={"Cookie": cookie}), "Служба входа ответила неверно")


def test_a_planted_session_ends_and_another_begins(client: httpx.Client, provider: IdentityProvider) -> None:
    planted = desk.secret_of(operators.add("mallory", desk.PASSWORD, role="operator"))
    target, cookie = begin(client)
    secret = signed_in(come_back(client, target, cookie, f"{desk_gate.COOKIE}={planted}"))
    assert secret != planted
    assert client.get("/desk/account", headers={"Cookie": f"{desk_gate.COOKIE}={planted}"}).status_code == 303
    operators.remove("mallory", even_last=True)


@pytest.mark.parametrize(
    "says",
    [
        {"issuer": "https://evil.example"},
        {"authorization_endpoint": "javascript:alert(1)"},
        {"authorization_endpoint": None},
    ],
    ids=str,
)
def test_a_provider_that_names_somebody_elses_places_is_not_followed(
    client: httpx.Client, provider: IdentityProvider, says: dict[str, object]
) -> None:
    provider.says = says
    assert client.get("/desk/sso/signed").status_code == 403


def test_where_there_is_no_single_sign_on_the_page_says_so(client: httpx.Client, provider: IdentityProvider) -> None:
    pages_of = [client.get(f"/desk/sso/{tenant}") for tenant in ("other", "nobody")]
    assert [page.status_code for page in pages_of] == [404, 404]
    assert pages_of[0].text == pages_of[1].text
    sso_providers.put(sso_providers.parsed({"issuer": "https://id.invalid", "client_id": CLIENT}))
    assert client.get("/desk/sso/signed").status_code == 503


def test_the_secret_is_encrypted_and_does_not_follow_to_another_address(provider: IdentityProvider) -> None:
    with database.reading() as session:
        stored = session.connection().exec_driver_sql("SELECT client_secret FROM sign_in_providers").scalars().all()
    assert stored
    assert not [one for one in stored if SECRET in one]
    known = sso_providers.own()
    assert known is not None
    assert known.secret == SECRET
    elsewhere = {"issuer": "https://evil.example", "client_id": CLIENT}
    assert sso_providers.put(sso_providers.parsed(elsewhere)).secret == ""
    assert SECRET not in str([(one.before, one.after) for one in settings_history.latest("sign_in")])


@pytest.mark.browser
def test_somebody_signs_in_with_a_real_browser(service: Server, provider: IdentityProvider) -> None:
    with sync_playwright() as playwright:
        chromium = launched(playwright)
        with chromium.new_context(locale="ru-RU") as context:
            context.set_default_timeout(20_000)
            page = context.new_page()
            page.goto(f"{service.url}/desk")
            page.get_by_role("link", name="Войти через организацию").click()
            page.get_by_label("Короткое имя организации").fill("signed")
            page.get_by_role("button", name="Дальше").click()
            page.get_by_role("link", name="Перейти ко входу").click()
            expect(page).to_have_url(f"{service.url}/desk")
            expect(page.locator(".me")).to_contain_text("Вера")
            page.get_by_role("button", name="Выйти").click()
            expect(page.get_by_role("heading", name="Вход для сотрудников")).to_be_visible()
        chromium.close()
