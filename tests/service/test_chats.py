"""Chats over HTTP: visitors of sites, access, and conversations with the assistant and a person."""

import json
from base64 import b64decode
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from time import time
from typing import Any, cast
from uuid import uuid4

import httpx
import jwt
import pytest

from settings import Settings
from tenants.chats import sites
from tenants.chats.sites import Site, SiteConfig
from tenants.core.context import Tenant, acting_as
from tests import desk
from tests.desk import Browser
from tests.service.serving import Server, in_force, problem

SHOP, GLOBEX = "https://shop.example", "https://globex.example"
SHOWN = "access-control-allow-origin"
WAIT = 60


@dataclass(frozen=True)
class Visitor:
    """A visitor on a page of a site."""

    client: httpx.Client
    token: str
    subject: str
    origin: str = SHOP

    def send(self, method: str, path: str, **more: object) -> httpx.Response:
        headers = {"Authorization": f"Bearer {self.token}", "Origin": self.origin}
        return self.client.request(method, path, headers=headers, json=more or None)

    def say(self, chat_id: str, text: str) -> httpx.Response:
        return self.send("POST", f"/chats/{chat_id}/messages", text=text, client_id=uuid4().hex)


@pytest.fixture(scope="module")
def shops(installation: Settings, anybody: httpx.Client) -> dict[str, Site]:
    """Sites of two tenants, and one that accepts only identified visitors."""
    theme = {"accent": "#0a7d4b"}
    config = SiteConfig(welcome="Здравствуйте!", suggested=("Что значит код E20?",), theme=theme)
    with in_force(installation):
        with acting_as(Tenant("acme", "admin")):
            added = {
                "acme": sites.add("Магазин", [SHOP], config),
                "known": sites.add("Кабинет", [SHOP], identity_required=True),
                "closed": sites.add("Без файлов", [SHOP], SiteConfig(files=False)),
            }
        with acting_as(Tenant("globex", "admin")):
            added["globex"] = sites.add("Shop", [GLOBEX], config)
    return added


def preflight(client: httpx.Client, path: str, origin: str) -> httpx.Response:
    return client.options(path, headers={"Origin": origin, "Access-Control-Request-Method": "POST"})


def opened(client: httpx.Client, site: Site, origin: str | None = SHOP, **more: object) -> httpx.Response:
    headers = {"Origin": origin} if origin else {}
    return client.post("/widget/sessions", json={"site": site.key, **more}, headers=headers)


def visitor(client: httpx.Client, site: Site, origin: str = SHOP) -> Visitor:
    session = opened(client, site, origin).json()
    return Visitor(client, session["token"], session["subject"], origin)


@pytest.fixture
def ivan(acme: httpx.Client, anybody: httpx.Client, shops: dict[str, Site]) -> Visitor:
    return visitor(anybody, shops["acme"])


@pytest.fixture
def operator(server: Server, token: Callable[..., str]) -> Iterator[httpx.Client]:
    headers = {"Authorization": f"Bearer {token('acme', 'operate', subject='olga')}"}
    with httpx.Client(base_url=server.url, timeout=WAIT, headers=headers) as client:
        yield client


def begun(who: Visitor) -> str:
    return str(who.send("POST", "/chats", locale="ru").json()["chat_id"])


def events(
    who: Visitor, chat_id: str, until: str, after: int = 0, once_open: Callable[[], object] = lambda: None
) -> list[tuple[str, dict[str, object]]]:
    """Return the events of a chat up to the first one with this name; messages are named with author: `message:bot`.

    :param once_open: called after the snapshot, so that its effects come as events and not in the snapshot.
    """
    read: list[tuple[str, dict[str, object]]] = []
    headers = {"Authorization": f"Bearer {who.token}"}
    with who.client.stream("GET", f"/chats/{chat_id}/events", params={"after": after}, headers=headers) as response:
        assert response.headers["x-accel-buffering"] == "no"
        assert "no-transform" in response.headers["cache-control"]
        name = ""
        for line in response.iter_lines():
            if line.startswith("event: "):
                name = line.removeprefix("event: ")
            elif line.startswith("data: "):
                data = json.loads(line.removeprefix("data: "))
                read.append((name, data))
                if until in (name, f"{name}:{data.get('author')}", f"{name}:{data.get('state')}"):
                    return read
                if name == "snapshot":
                    once_open()
    raise AssertionError(f"no {until} among {read}")


def test_a_session_says_who_visits_and_how_the_site_looks(
    anybody: httpx.Client, acme: httpx.Client, shops: dict[str, Site]
) -> None:
    first = opened(anybody, shops["acme"])
    assert first.status_code == 200
    assert first.headers[SHOWN] == SHOP
    session = first.json()
    assert (session["expires_in"], session["subject"][:2]) == (900, "v:")
    assert session["site"]["welcome"] == "Здравствуйте!"
    assert session["site"]["theme"] == {"accent": "#0a7d4b"}
    assert "secret" not in first.text
    again = opened(anybody, shops["acme"], visitor=session["token"]).json()
    assert again["subject"] == session["subject"]
    assert opened(anybody, shops["acme"], visitor="x.y.z").json()["subject"] != session["subject"]


@pytest.mark.parametrize("origin", ["https://evil.example", "http://shop.example", f"{SHOP}:8443", "null", None])
def test_a_page_elsewhere_gets_no_session_and_reads_why(
    anybody: httpx.Client, shops: dict[str, Site], origin: str | None
) -> None:
    refused = opened(anybody, shops["acme"], origin)
    problem(refused, 403, "origin_forbidden")
    # The widget tells the site's owner which address to add.
    assert refused.headers.get(SHOWN) == origin


def test_browsers_on_a_site_may_ask(anybody: httpx.Client, shops: dict[str, Site]) -> None:
    asked = preflight(anybody, "/chats/x/messages", SHOP)
    assert (asked.status_code, asked.headers[SHOWN]) == (204, SHOP)
    assert "authorization" in asked.headers["access-control-allow-headers"].lower()
    assert SHOWN not in preflight(anybody, "/ask/run", SHOP).headers


def test_a_site_that_nobody_knows(anybody: httpx.Client, shops: dict[str, Site]) -> None:
    response = anybody.post("/widget/sessions", json={"site": "site_none"}, headers={"Origin": SHOP})
    problem(response, 404, "site_unknown")


def claims(**changes: object) -> dict[str, object]:
    now = int(time())
    defaults = {"iss": "opora", "aud": "opora-visit", "sub": "v:1", "tenant": "acme", "iat": now, "exp": now + 900}
    return {**defaults, **changes}


@pytest.mark.parametrize(
    ("changes", "key", "algorithm", "code"),
    [
        ({"exp": int(time()) - 3_600, "iat": int(time()) - 7_200}, "own", "HS256", "token_expired"),
        ({}, "", "none", "token_invalid"),
        ({}, "own", "HS512", "token_invalid"),
        ({}, "foreign", "HS256", "token_invalid"),
        ({"tenant": "globex"}, "own", "HS256", "token_invalid"),
        ({"aud": "opora"}, "own", "HS256", "token_invalid"),
        ({"iss": "else"}, "own", "HS256", "token_invalid"),
        ({"sub": 7}, "own", "HS256", "token_invalid"),
    ],
)
def test_tokens_that_are_none(
    anybody: httpx.Client,
    shops: dict[str, Site],
    changes: dict[str, object],
    key: str,
    algorithm: str,
    code: str,
) -> None:
    secret = {"own": shops["acme"].secrets[0], "foreign": shops["globex"].secrets[0], "": ""}[key]
    forged = jwt.encode(claims(**changes), secret, algorithm, headers={"kid": f"site:{shops['acme'].key}"})
    response = anybody.get("/chats", headers={"Authorization": f"Bearer {forged}"})
    problem(response, 401, code)


def test_a_visitor_token_works_for_chats_on_its_own_site_only(
    anybody: httpx.Client, acme: httpx.Client, ivan: Visitor, shops: dict[str, Site]
) -> None:
    problem(ivan.send("POST", "/ask/run", question="Что значит код E20?"), 403, "scope_missing")
    problem(ivan.send("GET", "/desk/chats"), 403, "scope_missing")
    elsewhere = Visitor(anybody, ivan.token, ivan.subject, GLOBEX)
    problem(elsewhere.send("GET", "/chats"), 403, "origin_forbidden")
    assert ivan.send("GET", "/chats").status_code == 200


def identity(site: Site, **changes: object) -> str:
    defaults = {"aud": "opora", "sub": "client-7", "exp": int(time()) + 600}
    assert site.identity_secret
    return jwt.encode({**defaults, **changes}, site.identity_secret, "HS256")


def test_a_site_that_requires_identity_refuses_anonymous_visitors(
    anybody: httpx.Client, acme: httpx.Client, shops: dict[str, Site]
) -> None:
    known = shops["known"]
    problem(opened(anybody, known), 401, "identity_required")
    session = opened(anybody, known, identity=identity(known)).json()
    assert session["subject"] == "u:client-7"
    member = Visitor(anybody, session["token"], session["subject"])
    assert member.say(begun(member), "Привет").status_code == 202
    for wrong in (
        identity(known, exp=int(time()) + 7_200),
        identity(known, aud="else"),
        jwt.encode({"aud": "opora", "sub": "x", "exp": int(time()) + 60}, "guess" * 8, "HS256"),
    ):
        problem(opened(anybody, known, identity=wrong), 401, "identity_invalid")
    token = jwt.encode(claims(), known.secrets[0], "HS256", headers={"kid": f"site:{known.key}"})
    response = anybody.get("/chats", headers={"Authorization": f"Bearer {token}"})
    problem(response, 401, "identity_required")


PICTURE = b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==")


def upload(who: Visitor, chat_id: str, name: str, content: bytes, field: str = "file") -> httpx.Response:
    headers = {"Authorization": f"Bearer {who.token}", "Origin": who.origin}
    return who.client.post(f"/chats/{chat_id}/files", files={field: (name, content, "image/png")}, headers=headers)


def test_a_file_reaches_the_operator_and_its_own_visitor_and_nobody_else(
    anybody: httpx.Client, ivan: Visitor, operator: httpx.Client, shops: dict[str, Site]
) -> None:
    chat_id = begun(ivan)
    sent = upload(ivan, chat_id, "фото\u2009бойлера.exe", PICTURE)
    assert sent.status_code == 201, sent.text
    file = sent.json()
    assert (file["media_type"], file["size"]) == ("image/png", len(PICTURE))
    assert file["name"] == "фото бойлера.exe.png"
    posted = ivan.send("POST", f"/chats/{chat_id}/messages", file_id=file["file_id"], client_id="f1").json()
    assert (posted["message"]["kind"], posted["message"]["text"]) == ("file", "")
    assert posted["message"]["body"]["file"] == file
    thread = operator.get(f"/desk/chats/{chat_id}").json()["messages"]
    assert thread[0]["body"]["file"] == file
    assert thread[1]["author"] == "bot"
    for client, path in ((ivan, f"/chats/{chat_id}"), (None, f"/desk/chats/{chat_id}")):
        address = f"{path}/files/{file['file_id']}"
        got = client.send("GET", address) if client else operator.get(address)
        assert got.content == PICTURE
        assert got.headers["content-type"] == "image/png"
        assert got.headers["content-disposition"].startswith("attachment; filename*=UTF-8''")
        assert got.headers["x-content-type-options"] == "nosniff"
        assert "default-src 'none'" in got.headers["content-security-policy"]
    for other in (visitor(anybody, shops["acme"]), visitor(anybody, shops["globex"], GLOBEX)):
        problem(other.send("GET", f"/chats/{chat_id}/files/{file['file_id']}"), 404, "chat_unknown")
        problem(other.send("GET", f"/chats/{begun(other)}/files/{file['file_id']}"), 404, "file_unknown")
        problem(upload(other, chat_id, "a.png", PICTURE), 404, "chat_unknown")
        foreign = other.send("POST", f"/chats/{begun(other)}/messages", file_id=file["file_id"], client_id="f1")
        problem(foreign, 404, "file_unknown")


@pytest.mark.parametrize(
    ("name", "content", "status", "code"),
    [
        ("page.png", b"<html><script>alert(1)</script>", 415, "attachment_unsupported"),
        ("a.pdf", b"%PDF-1.7 and nothing more", 422, "attachment_unreadable"),
        ("a.png", PICTURE + bytes(5_000_001), 413, "chat_file_too_large"),
    ],
)
def test_a_file_that_cannot_be_taken_is_refused_with_its_reason(
    ivan: Visitor, name: str, content: bytes, status: int, code: str
) -> None:
    problem(upload(ivan, begun(ivan), name, content), status, code)


def test_what_is_no_form_with_one_file_is_refused(ivan: Visitor) -> None:
    chat_id = begun(ivan)
    problem(upload(ivan, chat_id, "a.png", PICTURE, field="other"), 422, "field_missing")
    problem(ivan.send("POST", f"/chats/{chat_id}/files", file="x"), 422, "field_missing")
    problem(ivan.send("POST", f"/chats/{chat_id}/messages", client_id="m1"), 422, "question_empty")


def test_the_session_says_what_a_site_takes(anybody: httpx.Client, shops: dict[str, Site]) -> None:
    limits = {name: opened(anybody, shops[name]).json()["site"]["limits"]["file_bytes"] for name in ("acme", "closed")}
    assert limits == {"acme": 5_000_000, "closed": 0}
    who = visitor(anybody, shops["closed"])
    problem(upload(who, begun(who), "a.png", PICTURE), 413, "chat_file_too_large")


@pytest.mark.parametrize("path", ["", "/events"])
def test_a_number_that_no_message_has_is_refused(ivan: Visitor, operator: httpx.Client, path: str) -> None:
    chat_id, after = begun(ivan), f"?after={10**30}"
    problem(ivan.send("GET", f"/chats/{chat_id}{path}{after}"), 422, "field_invalid")
    problem(operator.get(f"/desk/chats/{chat_id}{path}{after}"), 422, "field_invalid")


def test_a_question_is_answered_as_a_stream_and_then_stored(ivan: Visitor) -> None:
    chat_id = begun(ivan)

    def ask() -> None:
        posted = ivan.say(chat_id, "Что значит код E20?")
        assert (posted.status_code, posted.json()["message"]["seq"]) == (202, 1)

    read = events(ivan, chat_id, "message:bot", once_open=ask)
    names = [name for name, _ in read]
    assert names[0] == "snapshot"
    stored = read[-1][1]
    assert isinstance(stored["body"], dict)
    turn = stored["body"]["turn"]
    assert (turn["outcome"], turn["turn_id"], stored["seq"]) == ("answered", stored["turn_id"], 2)
    assert "meant" not in stored["body"]
    # A client that connected in time has read the tokens, and the last event equals the stored answer.
    if "accepted" in names:
        told = "".join(str(data["text"]) for name, data in read if name == "token")
        assert told == stored["text"]
        assert names.index("result") < len(names) - 1
    again = events(ivan, chat_id, "snapshot", after=1)
    assert again[0][1]["messages"] == [stored]
    rated = ivan.send("POST", "/feedback", turn_id=stored["turn_id"], thumb="up")
    assert rated.status_code in (200, 404)


def test_a_waiting_customer_leaves_a_contact(ivan: Visitor, operator: httpx.Client) -> None:
    chat_id = begun(ivan)
    path = f"/chats/{chat_id}/contact"
    assert not ivan.send("GET", f"/chats/{chat_id}").json()["chat"]["contact_wanted"]
    assert ivan.send("POST", f"/chats/{chat_id}/person").json()["contact_wanted"]
    for wrong in ("Анна", "anna@", "12", "anna@example.ru\nBcc: all@example.ru"):
        problem(ivan.send("POST", path, contact=wrong), 422, "contact_invalid")
    for contact in ("+7 903 123-45-67", "anna@example.ru", "anna@example.ru"):
        assert not ivan.send("POST", path, contact=contact).json()["contact_wanted"]
    assert operator.get(f"/desk/chats/{chat_id}").json()["chat"]["contact"] == "anna@example.ru"
    thread = ivan.send("GET", f"/chats/{chat_id}").text
    assert thread.count("contact_left") == 2
    assert "anna@example.ru" not in thread


def test_a_person_takes_over_answers_and_gives_back(ivan: Visitor, operator: httpx.Client) -> None:
    chat_id = begun(ivan)
    waiting = ivan.send("POST", f"/chats/{chat_id}/person").json()
    assert (waiting["state"], waiting["owner"], bool(waiting["ticket_id"])) == ("queued", "nobody", True)
    assert operator.get("/desk/chats", params={"state": "queued"}).json()[0]["chat_id"] == chat_id
    desk = f"/desk/chats/{chat_id}"
    replied = operator.post(f"{desk}/reply", json={"text": "Здравствуйте!", "seen": 1, "name": "Ольга"})
    assert replied.json()["chat"]["assignee"] == "olga"
    assert operator.post(f"{desk}/note", json={"text": "постоянный клиент"}).is_success
    thread = ivan.send("GET", f"/chats/{chat_id}").json()
    assert (thread["chat"]["owner"], thread["chat"]["assignee_name"]) == ("human", "Ольга")
    shown = [one["body"].get("event") or one["text"] for one in thread["messages"]]
    assert shown == ["queued", "joined", "Здравствуйте!"]
    assert "olga" not in json.dumps(thread)
    assert "постоянный" in operator.get(desk).text
    assert ivan.say(chat_id, "Спасибо!").json()["chat"]["state"] == "human"
    back = operator.post(f"{desk}/hand_back", json={"version": replied.json()["chat"]["version"]})
    assert back.json()["state"] == "bot"
    problem(operator.post(f"{desk}/take", json={"version": 0}), 409, "chat_changed")
    written = ivan.send("GET", f"/chats/{chat_id}/transcript")
    assert "Ольга\nЗдравствуйте!" in written.text
    assert "постоянный" not in written.text


def test_the_desk_says_that_another_answer_was_asked_for(ivan: Visitor, anybody: httpx.Client) -> None:
    chat_id = begun(ivan)
    read = events(ivan, chat_id, "message:bot", once_open=lambda: ivan.say(chat_id, "Что значит код E20?"))
    turn_id, seq = read[-1][1]["turn_id"], cast(int, read[-1][1]["seq"])
    ivan.send("POST", f"/chats/{chat_id}/regenerate", turn_id=turn_id).raise_for_status()
    events(ivan, chat_id, "message:bot", after=seq)
    browser = Browser(anybody, desk.secret_of(desk.staff("acme", {"Олег": "operator"})["Олег"]))
    for shown in (browser.get(f"/desk/chat/{chat_id}"), ivan.send("GET", f"/chats/{chat_id}/transcript")):
        assert "Клиент попросил ответить заново." in shown.text
        assert "asked_again" not in shown.text


@contextmanager
def following(client: httpx.Client, path: str, token: str) -> Iterator[Iterator[tuple[str, dict[str, Any]]]]:
    """Yield the events of a stream as they come, until the block ends."""
    with client.stream("GET", path, headers={"Authorization": f"Bearer {token}"}) as response:
        lines = response.iter_lines()

        def read() -> Iterator[tuple[str, dict[str, Any]]]:
            name = ""
            for line in lines:
                if line.startswith("event: "):
                    name = line.removeprefix("event: ")
                elif line.startswith("data: "):
                    yield name, json.loads(line.removeprefix("data: "))

        yield read()


def until(events_: Iterator[tuple[str, dict[str, Any]]], event: str, /, **expected: object) -> dict[str, Any]:
    """Return the next event with this name and data."""
    for kind, data in events_:
        if kind == event and data.items() >= expected.items():
            return data
    raise AssertionError(f"no {event} {expected}")


def test_an_operators_reply_and_typing_reach_the_open_stream(ivan: Visitor, operator: httpx.Client) -> None:
    chat_id = begun(ivan)
    desk = f"/desk/chats/{chat_id}"
    with following(ivan.client, f"/chats/{chat_id}/events", ivan.token) as read:
        until(read, "snapshot")
        operator.post(f"{desk}/typing", json={"active": True, "name": "Ольга"})
        assert until(read, "typing") == {"who": "operator", "name": "Ольга", "active": True}
        operator.post(f"{desk}/reply", json={"text": "Чем помочь?", "seen": 0, "name": "Ольга"})
        assert until(read, "message")["body"] == {"event": "joined", "name": "Ольга"}
        assert until(read, "message")["text"] == "Чем помочь?"
        assert until(read, "state")["assignee_name"] == "Ольга"
