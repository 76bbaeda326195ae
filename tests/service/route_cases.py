"""The routes of the service by role: scopes, bodies, and ids of two tenants for their paths."""

from dataclasses import dataclass, field

from tenants.knowledge.rejected import Rejected
from tests.service.serving import ARTICLES
from tests.service.stored import recorded, tool_of


@dataclass(frozen=True, slots=True)
class Case:
    """Case of a route: its scope, a body, and for each path parameter an id of `acme` and one of `globex`."""

    scope: str
    body: dict[str, object] | None = None
    query: dict[str, str] = field(default_factory=dict)
    own: dict[str, str] = field(default_factory=dict)
    foreign: dict[str, str] = field(default_factory=dict)
    may_answer: str = ""
    """A code that also proves that the route is open."""


def chat_case(scope: str, body: dict[str, object] | None = None, *, may_answer: str = "") -> Case:
    """Return the case of a route to one chat."""
    own, foreign = {"chat_id": "chat-of-acme"}, {"chat_id": "chat-of-globex"}
    return Case(scope, body, own=own, foreign=foreign, may_answer=may_answer)


def file_case(scope: str) -> Case:
    """Return the case of a route to one file of a chat."""
    own = {"chat_id": "chat-of-acme", "file_id": "file-of-acme"}
    return Case(scope, own=own, foreign={"chat_id": "chat-of-globex", "file_id": "file-of-globex"})


def site_case(body: dict[str, object] | None = None) -> Case:
    """Return the case of a route to one site."""
    return Case("admin", body, own={"key": "site-of-acme"}, foreign={"key": "site-of-globex"})


def suggestion_case() -> Case:
    """Return the case of a route to one suggestion."""
    own = {"chat_id": "chat-of-acme", "message_id": "0a1b"}
    foreign = {"chat_id": "chat-of-globex", "message_id": "0a1b"}
    return Case("operate", own=own, foreign=foreign, may_answer="suggestion_unknown")


def article_case(scope: str, body: dict[str, object] | None = None, *, may_answer: str = "") -> Case:
    """Return the case of a route to one article."""
    own, foreign = {"article_id": "article-of-acme"}, {"article_id": "article-of-globex"}
    return Case(scope, body, own=own, foreign=foreign, may_answer=may_answer)


def tool_case(body: dict[str, object]) -> Case:
    """Return the case of a route to one tool, which another test may have removed."""
    own, foreign = {"name": "orders-of-acme"}, {"name": "orders-of-globex"}
    return Case("admin", body, own=own, foreign=foreign, may_answer="tool_unknown")


SPARE_ID = {"doc_id": "spare/door.md"}
FOREIGN_ID = {"doc_id": "globex/door.md"}
PAIR: dict[str, str] = {"chunk_id": "00000000-0000-0000-0000-000000000001", "other_chunk_id": "x"}
REJECTED = Rejected("Снять дверцу силой", doc_id="spare/door.md")
FOREIGN_REJECTED = Rejected("Take the door off", doc_id="globex/door.md")
OPEN = {
    ("GET", "/healthz"),
    ("GET", "/readyz"),
    ("GET", "/seen"),
    ("GET", "/openapi.json"),
    ("GET", "/docs"),
    ("POST", "/widget/sessions"),
    ("GET", "/widget/loader.js"),
    ("GET", "/widget/chat.js"),
    ("GET", "/widget/help.css"),
    ("GET", "/chat/{site}"),
    ("GET", "/chat/{site}/customer"),
    ("POST", "/chat/{site}/customer"),
    ("GET", "/demo"),
    ("GET", "/"),
}
SAID: dict[str, object] = {"text": "Что значит код E20?", "client_id": "c1"}
CHANGED = "chat_changed"
SCOPED: dict[tuple[str, str], Case] = {
    ("POST", "/ask/run"): Case("ask", {"question": "Что значит код E20?"}),
    ("POST", "/ask/stream"): Case("ask", {"question": "Что значит код E20?"}),
    ("POST", "/ask/ui-messages"): Case(
        "ask", {"messages": [{"role": "user", "parts": [{"type": "text", "text": "Что значит код E20?"}]}]}
    ),
    ("POST", "/v1/chat/completions"): Case(
        "ask", {"model": "ask", "messages": [{"role": "user", "content": "Что значит код E20?"}]}
    ),
    ("GET", "/v1/models"): Case("ask"),
    ("POST", "/mcp"): Case(
        "ask",
        {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "tools/call",
            "params": {"name": "ask", "arguments": {"question": "Что значит код E20?"}},
        },
    ),
    ("POST", "/ingest/run"): Case("ingest", {"documents": [dict(ARTICLES[1])]}),
    ("GET", "/documents"): Case("ingest"),
    ("PATCH", "/documents"): Case("ingest", {"filter": {"doc_ids": ["spare/door.md"]}, "set": {"priority": 1}}),
    ("GET", "/documents/{doc_id:path}"): Case("ingest", own=SPARE_ID, foreign=FOREIGN_ID),
    ("PATCH", "/documents/{doc_id:path}"): Case("ingest", {"priority": 1}, own=SPARE_ID, foreign=FOREIGN_ID),
    ("DELETE", "/documents/{doc_id:path}"): Case("ingest", own=SPARE_ID, foreign=FOREIGN_ID),
    ("POST", "/documents"): Case("ingest", query={"name": "door.md"}),
    ("GET", "/edges"): Case("ingest"),
    ("PUT", "/edges"): Case("ingest", {"from_doc": "spare/door.md", "kind": "depends_on", "to_doc": "errors.md"}),
    ("DELETE", "/edges"): Case(
        "ingest", query={"from_doc": "spare/door.md", "kind": "related_to", "to_doc": "returns.md"}
    ),
    ("GET", "/contradictions"): Case("ingest"),
    ("GET", "/agreements"): Case("ingest"),
    ("PUT", "/agreements"): Case("ingest", {**PAIR}, may_answer="pair_unknown"),
    ("DELETE", "/agreements"): Case("ingest", query=PAIR, may_answer="pair_unknown"),
    ("GET", "/rejected"): Case("ingest"),
    ("PUT", "/rejected"): Case("ingest", {"text": "Открыть дверцу силой", "reason": "Сломается замок"}),
    ("DELETE", "/rejected/{rejected_id}"): Case(
        "ingest", own={"rejected_id": REJECTED.rejected_id}, foreign={"rejected_id": FOREIGN_REJECTED.rejected_id}
    ),
    ("GET", "/tokens"): Case("admin"),
    ("POST", "/tokens"): Case("admin", {"subject": "crm", "scopes": ["ask"], "ttl_seconds": 60}),
    ("POST", "/tokens/{token_id}/rotate"): Case(
        "admin",
        {"grace_seconds": 0},
        own={"token_id": "token-of-acme"},
        foreign={"token_id": "token-of-globex"},
        may_answer="token_over",
    ),
    ("GET", "/tokens/revocations"): Case("admin"),
    ("POST", "/tokens/revocations"): Case("admin", {"token_id": "unknown"}),
    ("GET", "/tools"): Case("admin"),
    ("PUT", "/tools"): Case("admin", tool_of("acme")),
    ("DELETE", "/tools/{name}"): Case(
        "admin", own={"name": "orders-of-acme"}, foreign={"name": "orders-of-globex"}, may_answer="tool_unknown"
    ),
    ("PATCH", "/tools/{name}"): tool_case({"enabled": True}),
    ("POST", "/tools/{name}/test"): tool_case({"question": "Где накладная?"}),
    ("GET", "/webhooks"): Case("admin"),
    ("POST", "/webhooks"): Case("admin", {"url": "https://crm.example/hook", "events": ["chat.rated"]}),
    ("DELETE", "/webhooks/{webhook_id}"): Case(
        "admin",
        own={"webhook_id": "spare-hook-of-acme"},
        foreign={"webhook_id": "hook-of-globex"},
        may_answer="webhook_unknown",
    ),
    **{
        ("POST", f"/webhooks/{{webhook_id}}/{act}"): Case(
            "admin", own={"webhook_id": "hook-of-acme"}, foreign={"webhook_id": "hook-of-globex"}
        )
        for act in ("rotate", "test")
    },
    ("GET", "/deliveries"): Case("admin"),
    ("POST", "/deliveries/{delivery_id}/redeliver"): Case(
        "admin", own={"delivery_id": "delivery-of-acme"}, foreign={"delivery_id": "delivery-of-globex"}
    ),
    ("POST", "/documents/site"): Case("ingest", {"url": "http://127.0.0.1/help"}),
    ("GET", "/jobs"): Case("ingest"),
    **{
        route: Case("ingest", own={"job_id": "0-of-acme"}, foreign={"job_id": "0-of-globex"})
        for route in (("GET", "/jobs/{job_id}"), ("DELETE", "/jobs/{job_id}"), ("GET", "/jobs/{job_id}/events"))
    },
    ("POST", "/index/rebuild"): Case("admin"),
    ("POST", "/index/rollback"): Case("admin", may_answer="generation_not_kept"),
    ("GET", "/index/generations"): Case("admin"),
    ("POST", "/feedback"): Case("ask", {"turn_id": recorded("acme").turn_id, "thumb": "up"}),
    ("GET", "/audit"): Case("operate"),
    ("GET", "/audit/export"): Case("admin"),
    ("GET", "/audit/verify"): Case("admin"),
    ("GET", "/insight"): Case("operate"),
    ("POST", "/playground"): Case("ingest", {"question": "Как слить воду?", "trials": [{}, {"enough": 0.9}]}),
    ("GET", "/insight/chats"): Case("admin"),
    ("GET", "/evaluation/runs"): Case("ingest"),
    ("GET", "/evaluation/questions"): Case("ingest"),
    ("POST", "/evaluation/questions"): Case("ingest", {"questions": [{"question": "Кто президент?", "refused": True}]}),
    ("POST", "/evaluation/questions/file"): Case(
        "ingest", query={"name": "q.csv"}, may_answer="evaluation_column_missing"
    ),
    ("DELETE", "/evaluation/questions/{question_id}"): Case(
        "ingest",
        own={"question_id": "question-of-acme"},
        foreign={"question_id": "question-of-globex"},
        may_answer="evaluation_question_unknown",
    ),
    ("GET", "/evaluation/results"): Case("ingest"),
    ("POST", "/evaluation/results"): Case("ingest", may_answer="evaluation_running"),
    ("GET", "/evaluation/results/{run_id}"): Case(
        "ingest", own={"run_id": "run-of-acme"}, foreign={"run_id": "run-of-globex"}
    ),
    ("GET", "/audit/{turn_id}"): Case(
        "operate", own={"turn_id": recorded("acme").turn_id}, foreign={"turn_id": recorded("globex").turn_id}
    ),
    ("GET", "/gaps"): Case("operate"),
    ("PATCH", "/gaps/{gap_id}"): Case(
        "operate",
        {"status": "dismissed"},
        own={"gap_id": recorded("acme").misses[0].gap_id},
        foreign={"gap_id": recorded("globex").misses[0].gap_id},
    ),
    ("GET", "/articles"): Case("operate"),
    ("POST", "/articles"): Case("operate", {"title": "Возврат", "text": "За 14 дней."}),
    ("GET", "/articles/{article_id}"): article_case("operate"),
    ("PUT", "/articles/{article_id}"): article_case(
        "operate", {"title": "Возврат", "text": "За 14 дней.", "version": 1}, may_answer="article_changed"
    ),
    ("POST", "/articles/{article_id}/preview"): article_case("operate", may_answer="preview_busy"),
    ("POST", "/articles/{article_id}/publish"): article_case(
        "ingest", {"version": 1_000}, may_answer="article_changed"
    ),
    ("POST", "/desk/chats/{chat_id}/article"): chat_case("ingest", may_answer="chat_without_question"),
    ("POST", "/articles/{article_id}/withdraw"): article_case("ingest"),
    ("DELETE", "/articles/{article_id}"): Case(
        "operate",
        own={"article_id": "spare-of-acme"},
        foreign={"article_id": "spare-of-globex"},
        may_answer="article_unknown",
    ),
    ("GET", "/chats"): Case("visit"),
    ("POST", "/chats"): Case("visit", {"locale": "ru"}),
    ("GET", "/chats/{chat_id}"): chat_case("visit"),
    ("GET", "/chats/{chat_id}/events"): chat_case("visit"),
    ("GET", "/chats/{chat_id}/transcript"): chat_case("visit"),
    ("POST", "/chats/{chat_id}/messages"): chat_case("visit", SAID),
    ("POST", "/chats/{chat_id}/files"): chat_case("visit", may_answer="field_missing"),
    ("GET", "/chats/{chat_id}/files/{file_id}"): file_case("visit"),
    ("POST", "/chats/{chat_id}/edit"): chat_case("visit", {**SAID, "message_id": "m1"}, may_answer=CHANGED),
    ("POST", "/chats/{chat_id}/regenerate"): chat_case("visit", {"turn_id": "t1"}, may_answer=CHANGED),
    ("POST", "/chats/{chat_id}/branch"): chat_case("visit", {"message_id": "m1"}, may_answer="branching_forbidden"),
    ("POST", "/chats/{chat_id}/stop"): chat_case("visit"),
    ("POST", "/chats/{chat_id}/person"): chat_case("visit"),
    ("POST", "/chats/{chat_id}/seen"): chat_case("visit", {"seq": 1}),
    ("POST", "/chats/{chat_id}/typing"): chat_case("visit", {"active": True}),
    ("POST", "/chats/{chat_id}/rating"): chat_case("visit", {"csat": 5}),
    ("POST", "/chats/{chat_id}/contact"): chat_case("visit", {"contact": "anna@example.ru"}),
    ("POST", "/chats/{chat_id}/consent"): chat_case("visit", {"text": "Согласен"}),
    ("DELETE", "/chats/{chat_id}/consent"): chat_case("visit"),
    ("GET", "/desk/chats"): Case("operate"),
    ("GET", "/desk/chats/{chat_id}"): chat_case("operate"),
    ("GET", "/desk/chats/{chat_id}/events"): chat_case("operate"),
    ("GET", "/desk/chats/{chat_id}/files/{file_id}"): file_case("operate"),
    ("POST", "/desk/chats/{chat_id}/reply"): chat_case("operate", {"text": "Здравствуйте!", "seen": 10_000}),
    ("POST", "/desk/chats/{chat_id}/note"): chat_case("operate", {"text": "Постоянный клиент"}),
    ("POST", "/desk/chats/{chat_id}/take"): chat_case("operate", {"name": "Анна"}),
    ("POST", "/desk/chats/{chat_id}/transfer"): chat_case("operate", {"operator": "boris"}),
    **{
        ("POST", f"/desk/chats/{{chat_id}}/{act}"): chat_case("operate", {}, may_answer="chat_state")
        for act in ("hand_back", "resolve", "reopen")
    },
    ("POST", "/desk/chats/{chat_id}/snooze"): chat_case(
        "operate", {"until": "2027-01-01T00:00:00Z"}, may_answer="chat_state"
    ),
    ("POST", "/desk/chats/{chat_id}/undo"): chat_case("operate", may_answer="nothing_to_undo"),
    ("POST", "/desk/chats/{chat_id}/suggestions"): chat_case("operate", may_answer="nothing_to_answer"),
    ("POST", "/desk/chats/{chat_id}/suggestions/{message_id}/discard"): suggestion_case(),
    ("POST", "/desk/chats/{chat_id}/typing"): chat_case("operate", {"active": True}),
    ("POST", "/desk/chats/{chat_id}/seen"): chat_case("operate", {"seq": 1}),
    ("GET", "/sites"): Case("admin"),
    ("POST", "/sites"): Case("admin", {"name": "Магазин"}),
    ("GET", "/sites/{key}"): site_case(),
    ("PATCH", "/sites/{key}"): site_case({"config": {"welcome": "Здравствуйте!"}}),
    ("POST", "/sites/{key}/rotate"): site_case({}),
    ("DELETE", "/sites/{key}"): Case(
        "admin", own={"key": "spare-site-of-acme"}, foreign={"key": "site-of-globex"}, may_answer="site_unknown"
    ),
    ("GET", "/settings/policy"): Case("admin"),
    ("PATCH", "/settings/policy"): Case("admin", {"set": {"top_k": 5}}),
    ("GET", "/settings/changes"): Case("admin"),
    ("GET", "/settings/sign-in"): Case("admin"),
    ("PUT", "/settings/sign-in"): Case("admin", {"issuer": "https://id.shop.example", "client_id": "desk"}),
    ("DELETE", "/settings/sign-in"): Case("admin", may_answer="provider_unknown"),
    ("GET", "/operators"): Case("admin"),
    ("POST", "/operators"): Case(
        "admin", {"login": "vera", "password": "снег идёт над рекой"}, may_answer="login_taken"
    ),
    ("PUT", "/operators/{login}/password"): Case(
        "admin",
        {"password": "снег идёт над полем"},
        own={"login": "olga.acme"},
        foreign={"login": "olga.globex"},
        may_answer="operator_unknown",
    ),
    ("PATCH", "/operators/{login}"): Case(
        "admin",
        {"name": "Ольга"},
        own={"login": "olga.acme"},
        foreign={"login": "olga.globex"},
        may_answer="operator_unknown",
    ),
    ("DELETE", "/operators/{login}/sessions"): Case(
        "admin", own={"login": "olga.acme"}, foreign={"login": "olga.globex"}, may_answer="operator_unknown"
    ),
    ("DELETE", "/operators/{login}"): Case(
        "admin", own={"login": "olga.acme"}, foreign={"login": "olga.globex"}, may_answer="operator_unknown"
    ),
}
"""Every route that needs a token."""

ENDLESS = {("GET", "/chats/{chat_id}/events"), ("GET", "/desk/chats/{chat_id}/events")}
"""Streams that go on until their reader leaves."""

VISITORS = {("POST", "/feedback")}
"""Routes that the tokens of visitors open besides their own scope's."""

PROTOCOLS = {("POST", "/ask/ui-messages"), ("POST", "/v1/chat/completions"), ("POST", "/mcp")}
"""Routes with bodies defined by others: unknown fields are ignored."""

SPARE: list[dict[str, object]] = [
    {
        "doc_id": "spare/door.md",
        "title": "Дверца",
        "text": "Дверца открывается наружу.",
        "related_to": "returns.md",
        "rejected": REJECTED.text,
    }
]
FOREIGN: list[dict[str, object]] = [
    {
        "doc_id": "globex/door.md",
        "title": "Door",
        "text": "The door opens outwards.",
        "rejected": FOREIGN_REJECTED.text,
    }
]
"""Documents for cases with one in their path: the first is restored before each route that may remove it."""

CLOSED = {
    ("GET", "/models"), ("POST", "/chat/completions"), ("POST", "/responses"), ("POST", "/v1/responses"),
    ("POST", "/files"), ("POST", "/v1/files"),
}  # fmt: skip
"""Routes of Hayhooks that must not be reachable."""

GUESSES = (
    "/", "/docs/oauth2-redirect", "/redoc", "/status", "/draw/ask", "/traces", "/traces/1", "/deploy", "/deploy_files",
    "/undeploy/ask", "/ask", "/ask/run/", "/ASK/run", "//ask/run", "/ask/run;x", "/ingest", "/chat", "/metrics",
    "/admin", "/static/x", "/.env", "/tenants/globex", "/collections/globex", "/ask/executions", "/healthz/",
    "/%2e%2e/etc/passwd", "/v1/chat/completions/",
)  # fmt: skip
