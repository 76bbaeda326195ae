"""Access to the pages of the desk by role and session, and attacks on sessions. Generated from the routes."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from operator import itemgetter
from urllib.parse import unquote, urlencode

import httpx
import pytest
from lxml import html
from sqlalchemy import select

import app
from pipelines import desk_gate
from settings import Settings
from tenants.core.context import Tenant, acting_as
from tenants.desk import operator_sessions, operators
from tenants.desk.operators import TENANT_ROLES, Operator, TenantRole
from tenants.desk.tables import OperatorRow
from tenants.storage import database
from tenants.storage.mapping import record_of
from tests import desk
from tests.desk import SAME_ORIGIN
from tests.service.desk_cases import ENDLESS, FOREIGN, PAGES, PASSWORD, SPARE, PageCase
from tests.service.serving import ALL_SCOPES, Server, in_force, problem

ROLES: Mapping[str, frozenset[str]] = {
    "operator": frozenset({"operate", desk_gate.SIGNED_IN}),
    "editor": frozenset({"operate", "ingest", desk_gate.SIGNED_IN}),
    "admin": frozenset({"operate", "ingest", "admin", desk_gate.SIGNED_IN}),
    "installation": frozenset({desk_gate.INSTALLATION, desk_gate.SIGNED_IN}),
}


@dataclass(frozen=True)
class Browser(desk.Browser):
    """A browser that opens any route."""

    def send(self, route: tuple[str, str], case: PageCase, ids: Mapping[str, str]) -> httpx.Response:
        method, path = route
        for name, value in ids.items():
            path = path.replace(f"{{{name}}}", value)
        if route in ENDLESS:
            with self.client.stream(method, path, headers=self.cookie) as response:
                first = next(response.iter_text()) if response.is_success else ""
            return httpx.Response(response.status_code, headers=response.headers, text=first)
        if method == "POST":
            return self.post(path, {**case.form, **ids}, case.files)
        named = {name: value for name, value in ids.items() if f"{{{name}}}" not in route[1]}
        return self.get(f"{path}?{urlencode(named)}" if named else path)


@pytest.fixture(scope="module")
def staff(installation: Settings) -> Mapping[str, str]:
    """Operators of acme by role, and an admin of the installation; their logins. Their passwords are hashed once."""
    logins = {role: f"{role}.of.acme" for role in ROLES}
    with in_force(installation):
        operators.add_installation_admin(logins["installation"], PASSWORD)
        with acting_as(Tenant("acme", "admin")):
            for role in ("operator", "editor", "admin"):
                operators.add(logins[role], PASSWORD, role=_role(role), name=role)
    return logins


@pytest.fixture(scope="module", autouse=True)
def _documents(acme: httpx.Client, ingest: Callable[..., httpx.Response]) -> None:
    """A document of acme's and one of globex's."""
    for tenant_id, doc_id in (("acme", SPARE), ("globex", FOREIGN)):
        assert ingest(tenant_id, [{"doc_id": doc_id, "title": "Дверца", "text": "Открывается наружу."}]).is_success


def _role(role: str) -> TenantRole:
    return next(one for one in TENANT_ROLES if one == role)


@pytest.fixture
def signed_in(server: Server, staff: Mapping[str, str]) -> Iterator[Callable[[str], Browser]]:
    """A browser signed in with a role."""
    with httpx.Client(base_url=server.url, timeout=60) as client:

        def sign_in(role: str) -> Browser:
            with database.across_tenants() as session:
                row = session.scalars(select(OperatorRow).where(OperatorRow.login == staff[role])).one()
            return Browser(client, operator_sessions.begin(record_of(Operator, row), address="", browser="test"))

        yield sign_in


def _sign_in(
    client: httpx.Client, login: str, password: str, *, company: str = "acme", **headers: str
) -> httpx.Response:
    form = {"login": login, "password": password, "company": company}
    return client.post(desk_gate.SIGN_IN, data=form, headers={**SAME_ORIGIN, **headers})


def _secret(response: httpx.Response) -> str:
    cookie = response.headers["set-cookie"]
    for part in ("Secure", "HttpOnly", "Path=/", "SameSite=lax"):
        assert part in cookie
    assert "Domain" not in cookie
    found = re.match(rf"{desk_gate.COOKIE}=([^;]+)", cookie)
    assert found is not None
    return found.group(1)


def test_every_page_has_its_case(installation: Settings) -> None:
    assert {
        (route.method, route.path): route.scope
        for route in app.create_app(installation).state.open_routes
        if route.page
    } == {route: case.scope for route, case in PAGES.items()}


@pytest.mark.parametrize("role", ROLES)
def test_a_role_opens_its_own_pages_only(
    signed_in: Callable[[str], Browser], role: str, subtests: pytest.Subtests
) -> None:
    for route, case in sorted(PAGES.items(), key=itemgetter(0)):
        with subtests.test(route=route):
            # A session for each page: some of them end it.
            response = signed_in(role).send(route, case, case.own)
            allowed = case.scope is None or case.scope in ROLES[role]
            assert response.status_code in (case.answers if allowed else (403,)), response.text
            assert "frame-ancestors 'none'" in response.headers["content-security-policy"]
            assert "script-src 'self'" in response.headers["content-security-policy"]
            assert response.headers["x-frame-options"] == "DENY"
            assert response.headers["cache-control"].startswith("no-store")
            if response.headers.get("content-type", "").startswith("text/html") and response.content:
                for one in html.fromstring(response.content).iter("*"):
                    assert one.tag not in ("style", "iframe", "object")
                    assert one.tag != "script" or one.get("src")
                    assert not [name for name in one.attrib if str(name).startswith(("on", "style"))]


def test_what_belongs_to_another_tenant_is_missing(
    signed_in: Callable[[str], Browser], subtests: pytest.Subtests
) -> None:
    admin = signed_in("admin")
    for route in sorted(route for route, case in PAGES.items() if case.foreign):
        with subtests.test(route=route):
            case = PAGES[route]
            foreign = admin.send(route, case, case.foreign)
            missing = admin.send(route, case, dict.fromkeys(case.foreign, "no-such-thing"))
            assert (foreign.status_code, missing.status_code) == (404, 404)
            assert foreign.text == missing.text


def test_a_page_needs_a_session_and_takes_no_token(
    anybody: httpx.Client, token: Callable[..., str], subtests: pytest.Subtests
) -> None:
    bearer = {"Authorization": f"Bearer {token('acme', *ALL_SCOPES)}"}
    for method, path in sorted(route for route, case in PAGES.items() if case.scope):
        with subtests.test(route=(method, path)):
            named = re.sub(r"{\w+}", "x", path)
            for headers in ({}, bearer, {"Cookie": f"{desk_gate.COOKIE}=x"}):
                response = anybody.request(method, named, headers=headers, data={} if method == "POST" else None)
                assert (response.status_code, response.headers["location"].split("?")[0]) == (303, desk_gate.SIGN_IN)


FORMS = {route: case for route, case in sorted(PAGES.items(), key=itemgetter(0)) if route[0] == "POST"}


ELSEWHERE: list[dict[str, str]] = [
    {"Sec-Fetch-Site": "cross-site"},
    {"Sec-Fetch-Site": "same-site"},
    {"Sec-Fetch-Site": "none"},
    {"Origin": "https://evil.example"},
    {"Origin": "null"},
    {},
]


def test_no_form_is_taken_from_another_site(signed_in: Callable[[str], Browser], subtests: pytest.Subtests) -> None:
    roles = {role: signed_in(role) for role in ("admin", "installation")}
    # Every form from one other place, and one form from each of them.
    tried = [(route, ELSEWHERE[0]) for route in FORMS] + [(next(iter(FORMS)), headers) for headers in ELSEWHERE]
    for route, headers in tried:
        with subtests.test(route=route, headers=headers):
            case = FORMS[route]
            role = roles["installation" if case.scope == desk_gate.INSTALLATION else "admin"]
            sent = {"csrf": role.csrf, **case.form, **case.own}
            assert _submit(role, route, case, sent, headers).status_code == 403
    assert all(operator_sessions.verify(role.secret) for role in roles.values())


def test_no_form_is_taken_without_the_sessions_own_token(
    signed_in: Callable[[str], Browser], subtests: pytest.Subtests
) -> None:
    roles = {role: signed_in(role) for role in ("admin", "installation")}
    closed, foreign = [route for route, case in FORMS.items() if case.scope is not None], signed_in("admin").csrf
    for route, csrf in [(route, foreign) for route in closed] + [(closed[0], wrong) for wrong in ("", "x")]:
        with subtests.test(route=route, csrf=csrf):
            case = FORMS[route]
            role = roles["installation" if case.scope == desk_gate.INSTALLATION else "admin"]
            sent = {"csrf": csrf, **case.form, **case.own}
            assert _submit(role, route, case, sent, SAME_ORIGIN).status_code == 403
    assert all(operator_sessions.verify(role.secret) for role in roles.values())


def _submit(
    role: Browser, route: tuple[str, str], case: PageCase, sent: Mapping[str, str], headers: Mapping[str, str]
) -> httpx.Response:
    path, known = re.sub(r"{\w+}", "x", route[1]), {**role.cookie, **headers}
    return role.client.post(path, data=sent, files=case.files or None, headers=known)


def test_a_session_opens_the_api_of_its_role_with_a_csrf_token_only(
    signed_in: Callable[[str], Browser],
) -> None:
    operator, admin = signed_in("operator"), signed_in("admin")
    assert operator.get("/desk/chats").is_success
    problem(operator.get("/operators"), 403, "scope_missing")
    assert admin.get("/operators").is_success
    body = {"text": "Здравствуйте!"}
    path = "/desk/chats/chat-of-acme/note"
    problem(operator.client.post(path, json=body, headers={**operator.cookie, **SAME_ORIGIN}), 403, "form_expired")
    known = {**operator.cookie, "X-CSRF-Token": operator.csrf}
    problem(operator.client.post(path, json=body, headers=known), 403, "foreign_request")
    assert operator.client.post(path, json=body, headers={**known, **SAME_ORIGIN}).is_success
    problem(operator.get("/documents"), 401, "token_missing")
    problem(signed_in("installation").get("/desk/chats"), 403, "scope_missing")
    page = operator.get("/desk/people")
    assert (page.status_code, "Ваша роль этого не позволяет." in page.text, "admin" in page.text) == (403, True, False)


def test_signing_in_takes_no_session_that_somebody_has_planted(
    signed_in: Callable[[str], Browser], staff: Mapping[str, str]
) -> None:
    victim = signed_in("operator")
    planted = signed_in("editor").secret
    response = _sign_in(victim.client, staff["operator"], PASSWORD, Cookie=f"{desk_gate.COOKIE}={planted}")
    assert (response.status_code, response.headers["location"]) == (303, "/desk")
    assert (secret := _secret(response)) != planted
    assert operator_sessions.verify(secret).operator.login == staff["operator"]
    assert Browser(victim.client, planted).get("/desk/account").status_code == 303


def test_two_tenants_use_one_login(server: Server, staff: Mapping[str, str]) -> None:
    login = staff["operator"]
    with acting_as(Tenant("globex", "admin")):
        added = operators.add(login, "дождь шёл всю ночь", role="admin")
    try:
        with httpx.Client(base_url=server.url, timeout=60) as client:
            assert 'name="company"' in client.get(desk_gate.SIGN_IN).text
            assert 'value="globex"' in client.get(desk_gate.SIGN_IN, params={"company": "globex"}).text
            ours, theirs = (
                _sign_in(client, login, password, company=company)
                for company, password in (("acme", PASSWORD), (" globex", "дождь шёл всю ночь"))
            )
            assert [operator_sessions.verify(_secret(one)).operator.tenant_id for one in (ours, theirs)] == [
                "acme",
                "globex",
            ]
            (remembered,) = (one for one in theirs.headers.get_list("set-cookie") if desk_gate.COMPANY in one)
            page = client.get(desk_gate.SIGN_IN, headers={"Cookie": remembered.partition(";")[0]})
            assert 'value="globex"' in page.text
            # Without the organisation, and with another one's password, it is as wrong as any other.
            for company in ("", "globex", "nobody", "x\0"):
                assert _sign_in(client, login, PASSWORD, company=company).status_code == 401
            people = Browser(client, _secret(theirs)).get("/desk/people").text
            assert "/desk/sign-in?company=globex" in people
    finally:
        with acting_as(Tenant("globex", "admin")):
            operators.remove(added.login, even_last=True)


def test_guessing_is_slow_and_says_nothing(anybody: httpx.Client) -> None:
    with acting_as(Tenant("acme", "admin")):
        operators.add("guessed", PASSWORD, role="operator")
    refused = [_sign_in(anybody, "guessed", f"wrong {number}") for number in range(5)]
    unknown = _sign_in(anybody, "never.was", "wrong 0")
    assert {response.status_code for response in (*refused, unknown)} == {401}
    assert refused[0].text.replace("guessed", "") == unknown.text.replace("never.was", "")
    late = _sign_in(anybody, "guessed", PASSWORD)
    assert late.status_code == 429
    assert int(late.headers["retry-after"]) > 0
    # Others who know the login do not keep its owner out, who is at another address.
    with httpx.Client(
        base_url=anybody.base_url, transport=httpx.HTTPTransport(local_address="127.0.0.2"), timeout=60
    ) as elsewhere:
        assert _sign_in(elsewhere, "guessed", PASSWORD).status_code == 303


@pytest.mark.parametrize(
    "target",
    ["https://evil.example", "//evil.example", "/desk//evil.example", "/\\evil.example", "/desk\n", "javascript:hit()"],
)
def test_the_way_back_stays_in_the_desk(anybody: httpx.Client, target: str) -> None:
    page = anybody.get(desk_gate.SIGN_IN, params={"next": target})
    assert 'name="next" value=""' in page.text
    assert desk_gate.local(target, "/desk") == "/desk"


def test_a_page_knows_where_to_go_on(anybody: httpx.Client) -> None:
    response = anybody.get("/desk/people?a=1")
    assert unquote(response.headers["location"]) == "/desk/sign-in?next=/desk/people?a=1"


def test_signing_out_ends_sessions_here_there_and_everywhere(
    server: Server, installation: Settings, staff: Mapping[str, str]
) -> None:
    with acting_as(Tenant("acme", "admin")):
        operator = operators.add("everywhere", PASSWORD, role="operator")
    with httpx.Client(base_url=server.url, timeout=60) as client:
        one, two, three, four = (
            Browser(client, operator_sessions.begin(operator, address="10.0.0.1", browser=f"Browser {number}"))
            for number in range(4)
        )
        listed = one.get("/desk/account").text
        assert all(f"Browser {number}" in listed for number in range(4))
        two_id = operator_sessions.verify(two.secret).session_id
        assert one.post("/desk/account/sessions/end", {"session_id": two_id}).status_code == 303
        assert two.get("/desk/account").status_code == 303
        assert three.post("/desk/sign-out", {}).status_code == 303
        assert three.get("/desk/account").status_code == 303
        changed = one.post("/desk/account/password", {"password": PASSWORD, "new_password": "дождь шёл всю ночь"})
        assert changed.status_code == 303, changed.text
        renewed = Browser(client, _secret(changed))
        assert one.get("/desk/account").status_code == four.get("/desk/account").status_code == 303
        assert renewed.get("/desk/account").status_code == 200
        assert renewed.post("/desk/account/sessions/end-all", {}).status_code == 303
        assert renewed.get("/desk/account").status_code == 303
        assert _sign_in(client, "everywhere", PASSWORD).status_code == 401


def test_pages_are_in_the_readers_language(signed_in: Callable[[str], Browser]) -> None:
    admin = signed_in("admin")
    for locale, title in (("ru", "Сотрудники"), ("en", "People")):
        page = admin.client.get("/desk/people", headers={**admin.cookie, "Accept-Language": locale})
        assert f'<html lang="{locale}">' in page.text
        assert f"<h1>{title}</h1>" in page.text
