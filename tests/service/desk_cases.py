"""What each page of the desk takes: its scope, the fields of its form, and ids of `acme` and of `globex`."""

from dataclasses import dataclass, field

from pipelines.pages import INSTALLATION, SIGNED_IN


@dataclass(frozen=True, slots=True)
class PageCase:
    """`own` and `foreign` fill what the path or the form names. `answers` are the statuses of an operator who may."""

    scope: str | None
    form: dict[str, str] = field(default_factory=dict)
    own: dict[str, str] = field(default_factory=dict)
    foreign: dict[str, str] = field(default_factory=dict)
    answers: tuple[int, ...] = (200,)


def chat_case(form: dict[str, str] | None = None, *answers: int) -> PageCase:
    """A page of one chat."""
    own, foreign = {"chat_id": "chat-of-acme"}, {"chat_id": "chat-of-globex"}
    return PageCase("operate", form or {}, own=own, foreign=foreign, answers=answers or (200,))


ASSETS = {("GET", "/desk/assets/desk.js"), ("GET", "/desk/assets/desk.css")}
PASSWORD = "снег идёт над рекой"
PAGES: dict[tuple[str, str], PageCase] = {
    ("GET", "/desk/sign-in"): PageCase(None),
    ("POST", "/desk/sign-in"): PageCase(None, {"login": "nobody", "password": "x"}, answers=(401,)),
    ("GET", "/desk/account"): PageCase(SIGNED_IN),
    ("POST", "/desk/account/password"): PageCase(SIGNED_IN, {"password": "x", "new_password": "y"}, answers=(422,)),
    ("POST", "/desk/account/sessions/end"): PageCase(SIGNED_IN, {"session_id": "0000000000000000"}, answers=(404,)),
    ("POST", "/desk/account/sessions/end-all"): PageCase(SIGNED_IN, answers=(303,)),
    ("POST", "/desk/sign-out"): PageCase(SIGNED_IN, answers=(303,)),
    ("GET", "/desk/people"): PageCase("admin"),
    ("POST", "/desk/people/add"): PageCase(
        "admin", {"login": "zoya", "password": PASSWORD, "role": "editor"}, answers=(303, 422)
    ),
    ("POST", "/desk/people/password"): PageCase(
        "admin", {"password": PASSWORD}, own={"login": "olga.acme"}, foreign={"login": "olga.globex"}, answers=(303,)
    ),
    ("POST", "/desk/people/remove"): PageCase(
        "admin", own={"login": "spare.acme"}, foreign={"login": "olga.globex"}, answers=(303, 404)
    ),
    ("GET", "/desk/tenants"): PageCase(INSTALLATION),
    ("GET", "/desk/first-run/{secret}"): PageCase(None, own={"secret": "used"}, answers=(404,)),
    ("POST", "/desk/first-run/{secret}"): PageCase(None, own={"secret": "used"}, answers=(404,)),
    ("GET", "/desk/welcome"): PageCase("admin"),
    ("GET", "/desk"): PageCase("operate"),
    ("GET", "/desk/live"): PageCase("operate"),
    ("GET", "/desk/chat/{chat_id}"): chat_case(),
    ("POST", "/desk/chat/{chat_id}/reply"): chat_case({"text": "Здравствуйте!", "seen": "10000"}, 303),
    ("POST", "/desk/chat/{chat_id}/note"): chat_case({"text": "Постоянный клиент"}, 303),
    ("POST", "/desk/chat/{chat_id}/looking"): chat_case({"tab": "0a1b"}, 204),
    **{
        ("POST", f"/desk/chat/{{chat_id}}/{act}"): chat_case({}, 303, 409)
        for act in ("take", "hand_back", "resolve", "reopen", "snooze")
    },
    ("POST", "/desk/chat/{chat_id}/transfer"): chat_case({"operator": "operator.of.acme"}, 303),
    ("GET", "/desk/turns/{turn_id}"): PageCase(
        "operate", own={"turn_id": "turn-of-acme"}, foreign={"turn_id": "turn-of-globex"}
    ),
    ("GET", "/desk/replies"): PageCase("operate"),
    ("POST", "/desk/replies/add"): PageCase(
        "operate", {"title": "Приветствие", "text": "Здравствуйте!"}, answers=(303,)
    ),
    ("POST", "/desk/replies/remove"): PageCase("operate", {"reply_id": "no-such-reply"}, answers=(404,)),
}
ENDLESS = {("GET", "/desk/live")}
"""Streams that go on until their reader leaves."""
