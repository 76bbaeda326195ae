"""Cases for every page of the desk, by the sections of the menu: its scope, the fields of its form, and ids of `acme`
and of `globex`.
"""

from dataclasses import dataclass, field, replace

from pipelines.desk_gate import INSTALLATION, SIGNED_IN
from tests.service.stored import recorded


@dataclass(frozen=True, slots=True)
class PageCase:
    """`own` and `foreign` fill the path or the form. `answers` are the statuses for an operator with access."""

    scope: str | None
    form: dict[str, str] = field(default_factory=dict)
    own: dict[str, str] = field(default_factory=dict)
    foreign: dict[str, str] = field(default_factory=dict)
    answers: tuple[int, ...] = (200,)
    files: dict[str, tuple[str, bytes]] = field(default_factory=dict)
    """Of a form with files."""


def chat_case(form: dict[str, str] | None = None, *answers: int) -> PageCase:
    """A page of one chat."""
    own, foreign = {"chat_id": "chat-of-acme"}, {"chat_id": "chat-of-globex"}
    return PageCase("operate", form or {}, own=own, foreign=foreign, answers=answers or (200,))


PASSWORD = "снег идёт над рекой"

_GAP = {"gap_id": recorded("acme").misses[0].gap_id}
_FOREIGN_GAP = {"gap_id": recorded("globex").misses[0].gap_id}
_CHOSEN = {"gap": _GAP["gap_id"]}
_FOREIGN_CHOSEN = {"gap": _FOREIGN_GAP["gap_id"]}
_PAIR = {"one": "00000000-0000-0000-0000-000000000001", "other": "x"}
_TEXT = {"title": "Возврат", "text": "Вернуть можно за 14 дней.", "version": "1"}


def article_case(scope: str = "operate", form: dict[str, str] | None = None, *answers: int) -> PageCase:
    """A page of one article."""
    own, foreign = {"article_id": "article-of-acme"}, {"article_id": "article-of-globex"}
    return PageCase(scope, form or {}, own=own, foreign=foreign, answers=answers or (200,))


SPARE = "desk/door.md"
FOREIGN = "globex/door.md"


def document_case(form: dict[str, str] | None = None, *answers: int) -> PageCase:
    """A page of one document."""
    return PageCase("ingest", form or {}, own={"id": SPARE}, foreign={"id": FOREIGN}, answers=answers or (200,))


JOB = {"job_id": "0-of-acme"}
FOREIGN_JOB = {"job_id": "0-of-globex"}

SITE = {"key": "site-of-acme"}
FOREIGN_SITE = {"key": "site-of-globex"}
FOREIGN_TOKEN = {"token_id": "token-of-globex"}
FOREIGN_TOOL = {"name": "orders-of-globex"}
WEBHOOK, FOREIGN_WEBHOOK = {"webhook_id": "hook-of-acme"}, {"webhook_id": "hook-of-globex"}


def site_case(form: dict[str, str] | None = None, *answers: int) -> PageCase:
    """A page of one site."""
    return PageCase("admin", form or {}, own=SITE, foreign=FOREIGN_SITE, answers=answers or (200,))


def tool_case(form: dict[str, str] | None = None, *answers: int) -> PageCase:
    """A page of one tool."""
    own, foreign = {"name": "orders-of-acme"}, FOREIGN_TOOL
    return PageCase("admin", form or {}, own=own, foreign=foreign, answers=answers or (200,))


_ARTICLE = {"site": "site-of-acme", "article": "errors.md"}

PAGES: dict[tuple[str, str], PageCase] = {
    # Signing in, accounts, people, the first run.
    ("GET", "/desk/sign-in"): PageCase(None),
    ("POST", "/desk/sign-in"): PageCase(None, {"login": "nobody", "password": "x"}, answers=(401,)),
    ("GET", "/desk/sso"): PageCase(None, answers=(404,)),
    ("GET", "/desk/sso/{tenant_id}"): PageCase(None, own={"tenant_id": "acme"}, answers=(404, 503)),
    ("GET", "/desk/sso-callback/{tenant_id}"): PageCase(None, own={"tenant_id": "acme"}, answers=(403,)),
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
    ("POST", "/desk/people/change"): PageCase(
        "admin",
        {"role": "operator", "name": "Ольга"},
        own={"login": "olga.acme"},
        foreign={"login": "olga.globex"},
        answers=(303,),
    ),
    ("POST", "/desk/people/sign-out"): PageCase(
        "admin", own={"login": "olga.acme"}, foreign={"login": "olga.globex"}, answers=(303,)
    ),
    ("POST", "/desk/people/remove"): PageCase(
        "admin", own={"login": "spare.acme"}, foreign={"login": "olga.globex"}, answers=(303, 404)
    ),
    ("GET", "/desk/first-run/{secret}"): PageCase(None, own={"secret": "used"}, answers=(404,)),
    ("POST", "/desk/first-run/{secret}"): PageCase(None, own={"secret": "used"}, answers=(404,)),
    ("GET", "/desk/welcome"): PageCase("admin"),
    ("POST", "/desk/welcome/ask"): PageCase("admin", {"question": "Что значит код E20?"}),
    ("POST", "/desk/welcome/site"): PageCase("admin", {"key": "no-such-site", "origin": "x"}, answers=(404,)),
    # Chats, the turns behind them, canned replies.
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
    # Questions without an answer, and the articles that are written for them.
    ("GET", "/desk/gaps"): PageCase("operate"),
    ("GET", "/desk/gaps/{gap_id}"): PageCase("operate", own=_GAP, foreign=_FOREIGN_GAP),
    ("POST", "/desk/gaps/decide"): PageCase(
        "operate", {"status": "dismissed"}, own=_CHOSEN, foreign=_FOREIGN_CHOSEN, answers=(303,)
    ),
    ("POST", "/desk/gaps/assign"): PageCase(
        "operate", {"article": "article-of-acme"}, own=_CHOSEN, foreign=_FOREIGN_CHOSEN, answers=(303,)
    ),
    ("GET", "/desk/articles"): PageCase("operate"),
    ("GET", "/desk/articles/new"): PageCase("operate"),
    ("POST", "/desk/articles/new"): PageCase("operate", _TEXT, own=_CHOSEN, foreign=_FOREIGN_CHOSEN, answers=(303,)),
    ("GET", "/desk/articles/{article_id}"): article_case(),
    ("POST", "/desk/articles/{article_id}"): article_case("operate", _TEXT, 303, 409),
    ("GET", "/desk/articles/{article_id}/preview"): article_case(),
    ("POST", "/desk/articles/{article_id}/preview"): article_case("operate", {}, 303, 503),
    ("POST", "/desk/articles/{article_id}/publish"): article_case("ingest", {"version": "1000"}, 409),
    ("POST", "/desk/articles/{article_id}/withdraw"): article_case("ingest", {}, 303),
    ("POST", "/desk/articles/{article_id}/remove"): PageCase(
        "operate",
        own={"article_id": "spare-of-acme"},
        foreign={"article_id": "spare-of-globex"},
        answers=(303, 404),
    ),
    ("GET", "/desk/stale"): PageCase("ingest"),
    ("GET", "/desk/contradictions"): PageCase("ingest"),
    ("POST", "/desk/contradictions/settle"): PageCase("ingest", {**_PAIR, "decision": "agree"}, answers=(404,)),
    ("POST", "/desk/contradictions/unsettle"): PageCase("ingest", _PAIR, answers=(404,)),
    ("GET", "/desk/rejected"): PageCase("ingest"),
    ("POST", "/desk/rejected/add"): PageCase("ingest", {"text": "Открыть дверцу силой"}, answers=(303,)),
    ("POST", "/desk/rejected/remove"): PageCase("ingest", {"rejected_id": "nothing"}, answers=(404,)),
    # Cases for the pages of documents: list, document and actions.
    ("GET", "/desk/documents"): PageCase("ingest"),
    ("GET", "/desk/documents/add"): PageCase("ingest"),
    ("POST", "/desk/documents/upload"): PageCase("ingest", answers=(303,), files={"files": ("люк.md", b"# Door")}),
    ("POST", "/desk/documents/site"): PageCase("ingest", {"url": "http://127.0.0.1/help"}, answers=(303,)),
    ("GET", "/desk/jobs"): PageCase("ingest"),
    ("GET", "/desk/jobs/{job_id}"): PageCase("ingest", own=JOB, foreign=FOREIGN_JOB),
    ("POST", "/desk/jobs/{job_id}/cancel"): PageCase("ingest", own=JOB, foreign=FOREIGN_JOB, answers=(303,)),
    ("GET", "/desk/documents/one"): document_case(),
    ("POST", "/desk/documents/set"): document_case(
        {"title": "Дверца", "status": "active", "trust": "accepted", "priority": "3", "tags": "дверца, люк"}, 303
    ),
    ("POST", "/desk/documents/restore"): document_case({"version": "1"}, 303),
    ("POST", "/desk/documents/remove"): document_case({}, 422),
    ("POST", "/desk/documents/tie"): document_case({"choice": "related_to:out", "other": "returns.md"}, 303),
    ("POST", "/desk/documents/untie"): document_case(
        {"from_doc": SPARE, "kind": "supersedes", "to_doc": "errors.md"}, 404
    ),
    # Figures, records, evaluation, playground.
    ("GET", "/desk/insight"): PageCase("operate"),
    ("GET", "/desk/audit"): PageCase("operate"),
    ("POST", "/desk/audit/verify"): PageCase("admin"),
    ("GET", "/desk/reading"): PageCase("ingest"),
    ("POST", "/desk/reading/judge"): PageCase(
        "ingest",
        {"verdict": "right"},
        own={"turn_id": "turn-of-acme"},
        foreign={"turn_id": "turn-of-globex"},
        answers=(303,),
    ),
    ("GET", "/desk/evaluation"): PageCase("ingest"),
    ("POST", "/desk/evaluation/start"): PageCase("ingest", answers=(303, 422, 503)),
    ("POST", "/desk/evaluation/seen"): PageCase("ingest", answers=(303,)),
    ("POST", "/desk/evaluation/hour"): PageCase("admin", {"hour": "4"}, answers=(303,)),
    ("GET", "/desk/evaluation/questions"): PageCase("ingest"),
    ("POST", "/desk/evaluation/questions"): PageCase(
        "ingest", {"question": "Как слить воду?", "facts": "фильтр"}, answers=(303,)
    ),
    ("POST", "/desk/evaluation/questions/file"): PageCase(
        "ingest", files={"file": ("q.csv", "вопрос,отказ\nКто президент?,да".encode())}
    ),
    ("POST", "/desk/evaluation/questions/remove"): PageCase(
        "ingest", own={"question": "question-of-acme"}, foreign={"question": "question-of-globex"}, answers=(303, 404)
    ),
    ("GET", "/desk/evaluation/measured"): PageCase("ingest"),
    ("GET", "/desk/playground"): PageCase("ingest"),
    ("POST", "/desk/playground"): PageCase("ingest", {"question": "Как слить воду?", "both": "1", "b_enough": "0.9"}),
    # Settings: rules, hours, offers, synonyms, sites, the history of changes.
    ("GET", "/desk/settings"): PageCase("admin"),
    ("POST", "/desk/settings/policy/{group}"): PageCase(
        "admin", {"answer_threshold": "0", "top_k": "5"}, own={"group": "answers"}, answers=(303,)
    ),
    ("GET", "/desk/settings/offers"): PageCase("admin"),
    ("POST", "/desk/settings/offers"): PageCase("admin", answers=(303,)),
    ("GET", "/desk/settings/synonyms"): PageCase("admin"),
    ("POST", "/desk/settings/synonyms"): PageCase("admin", answers=(303,)),
    ("GET", "/desk/settings/hours"): PageCase("admin"),
    # Without a zone: hours that stayed would close the other tests' chats at night.
    ("POST", "/desk/settings/hours"): PageCase("admin", {"zone": ""}, answers=(422,)),
    ("POST", "/desk/settings/hours/remove"): PageCase("admin", answers=(303,)),
    ("GET", "/desk/settings/sites"): PageCase("admin"),
    ("POST", "/desk/settings/sites"): PageCase("admin", {"name": ""}, answers=(422,)),
    ("GET", "/desk/settings/sites/{key}"): site_case(),
    ("POST", "/desk/settings/sites/{key}"): site_case({"name": "Магазин", "locale": "ru"}, 303),
    ("POST", "/desk/settings/sites/{key}/rotate"): site_case({}, 303),
    ("POST", "/desk/settings/sites/{key}/revoke"): site_case({}, 303),
    ("POST", "/desk/settings/sites/{key}/identity"): site_case({}, 200),
    ("POST", "/desk/settings/sites/{key}/remove"): PageCase(
        "admin", own={"key": "spare-site-of-acme"}, foreign=FOREIGN_SITE, answers=(303, 404)
    ),
    ("GET", "/desk/settings/tools"): PageCase("admin"),
    ("POST", "/desk/settings/tools"): PageCase("admin", {"name": ""}, answers=(422,)),
    ("GET", "/desk/settings/tools/{name}"): tool_case(),
    ("POST", "/desk/settings/tools/{name}"): tool_case({"title": ""}, 422),
    ("POST", "/desk/settings/tools/{name}/secrets"): tool_case({"headers": "authorization: secret of acme"}, 303),
    ("POST", "/desk/settings/tools/{name}/test"): tool_case({"question": "Где накладная?"}),
    ("POST", "/desk/settings/tools/{name}/disable"): tool_case({}, 303),
    ("POST", "/desk/settings/tools/{name}/enable"): tool_case({}, 303),
    ("POST", "/desk/settings/tools/{name}/remove"): PageCase(
        "admin", own={"name": "spare-tool-of-acme"}, foreign=FOREIGN_TOOL, answers=(303, 404)
    ),
    ("GET", "/desk/settings/webhooks"): PageCase("admin"),
    ("POST", "/desk/settings/webhooks"): PageCase("admin", {"url": "ftp://x"}, answers=(422,)),
    ("POST", "/desk/settings/webhooks/test"): PageCase("admin", own=WEBHOOK, foreign=FOREIGN_WEBHOOK, answers=(303,)),
    ("POST", "/desk/settings/webhooks/rotate"): PageCase("admin", own=WEBHOOK, foreign=FOREIGN_WEBHOOK),
    ("POST", "/desk/settings/webhooks/remove"): PageCase(
        "admin", own={"webhook_id": "spare-hook-of-acme"}, foreign=FOREIGN_WEBHOOK, answers=(303, 404)
    ),
    ("POST", "/desk/settings/webhooks/redeliver"): PageCase(
        "admin",
        own={"delivery_id": "delivery-of-acme"},
        foreign={"delivery_id": "delivery-of-globex"},
        answers=(303,),
    ),
    ("GET", "/desk/settings/tokens"): PageCase("admin"),
    ("POST", "/desk/settings/tokens"): PageCase("admin", {"subject": "crm", "days": "7"}, answers=(422,)),
    ("POST", "/desk/settings/tokens/rotate"): PageCase(
        "admin", {"hours": "0"}, own={"token_id": "token-of-acme"}, foreign=FOREIGN_TOKEN, answers=(200, 409)
    ),
    ("POST", "/desk/settings/tokens/revoke"): PageCase(
        "admin", own={"token_id": "spare-token-of-acme"}, foreign=FOREIGN_TOKEN, answers=(303,)
    ),
    ("GET", "/desk/settings/models"): PageCase("admin"),
    ("POST", "/desk/settings/models/test"): PageCase("admin", {"profile": "embedded"}),
    ("GET", "/desk/settings/sign-in"): PageCase("admin"),
    ("POST", "/desk/settings/sign-in"): PageCase("admin", {"issuer": "http://id.shop.example"}, answers=(422,)),
    ("POST", "/desk/settings/sign-in/remove"): PageCase("admin", answers=(303, 404)),
    ("GET", "/desk/settings/changes"): PageCase("admin"),
    # The tenants of an installation, and the links of their first admins.
    ("GET", "/desk/tenants"): PageCase(INSTALLATION),
    ("GET", "/desk/tenants/one"): PageCase(INSTALLATION, own={"id": "acme"}),
    ("POST", "/desk/tenants/add"): PageCase(INSTALLATION, {"tenant_id": "acme"}, answers=(422,)),
    # Of a tenant that is not there: the others are at work.
    ("POST", "/desk/tenants/suspend"): PageCase(INSTALLATION, {"id": "nobody"}, answers=(404,)),
    ("POST", "/desk/tenants/resume"): PageCase(INSTALLATION, {"id": "acme"}),
    ("POST", "/desk/tenants/remove"): PageCase(INSTALLATION, {"id": "acme", "typed": "acm"}, answers=(422,)),
    ("POST", "/desk/tenants/invite"): PageCase(INSTALLATION, {"id": "acme"}, answers=(409,)),
    ("GET", "/desk/invitation/{secret}"): PageCase(None, own={"secret": "used"}, answers=(404,)),
    ("POST", "/desk/invitation/{secret}"): PageCase(None, own={"secret": "used"}, answers=(404,)),
    # The pages of a help centre, which need no session.
    ("GET", "/help/{site}"): PageCase(None, own={"site": "site-of-acme"}),
    ("GET", "/help/{site}/{article}"): PageCase(None, own=_ARTICLE),
    ("POST", "/help/{site}/{article}"): PageCase(None, {"helpful": "yes"}, own=_ARTICLE, answers=(303,)),
}
ASSETS = {("GET", "/desk/assets/desk.js"), ("GET", "/desk/assets/desk.css")}
ENDLESS = {("GET", "/desk/live")}
"""Streams that go on until their reader leaves."""
