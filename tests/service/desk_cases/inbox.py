"""Chats, the turns behind them, canned replies."""

from dataclasses import replace

from tests.service.desk_cases.case import PageCase, chat_case

PAGES: dict[tuple[str, str], PageCase] = {
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
    ("GET", "/desk/chat/{chat_id}/similar"): chat_case(),
    ("POST", "/desk/chat/{chat_id}/suggest"): chat_case({}, 303, 422),
    ("POST", "/desk/chat/{chat_id}/discard"): chat_case({"suggestion": "0a1b"}, 404),
    ("POST", "/desk/chat/{chat_id}/undo"): chat_case({}, 303, 409),
    ("POST", "/desk/chat/{chat_id}/transfer"): chat_case({"operator": "operator.of.acme"}, 303),
    ("POST", "/desk/chat/{chat_id}/article"): replace(chat_case({}, 303, 422), scope="ingest"),
    ("GET", "/desk/turns/{turn_id}"): PageCase(
        "operate", own={"turn_id": "turn-of-acme"}, foreign={"turn_id": "turn-of-globex"}
    ),
    ("GET", "/desk/replies"): PageCase("operate"),
    ("POST", "/desk/replies/add"): PageCase(
        "operate", {"title": "Приветствие", "text": "Здравствуйте!"}, answers=(303,)
    ),
    ("POST", "/desk/replies/remove"): PageCase("operate", {"reply_id": "no-such-reply"}, answers=(404,)),
}
