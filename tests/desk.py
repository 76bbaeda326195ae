"""Helpers for tests of the desk: users, and chats in every state."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import httpx
from lxml import html
from sqlalchemy import update

from pipelines import desk_gate
from pipelines.ask.evaluation.marking import MARKS
from tenants.chats import store
from tenants.chats.records import Body, Chat, HandoffRequest
from tenants.chats.tables import ChatRow
from tenants.core.context import Tenant, acting_as
from tenants.core.json import Json
from tenants.desk import evaluation_questions, evaluation_results, evaluations, operator_sessions, operators
from tenants.desk.evaluation_questions import EvaluationQuestion, Expected
from tenants.desk.evaluations import EvaluationRun
from tenants.desk.operators import Operator, Role
from tenants.storage import database
from tenants.storage.tables import JsonObject
from tests.browser.turns import EXCERPT, PASSAGE, citation, turn

PASSWORD = "снег идёт над рекой"
SAME_ORIGIN = {"Sec-Fetch-Site": "same-origin"}


@dataclass(frozen=True)
class Browser:
    """A browser without scripts, with a session's cookie and CSRF token."""

    client: httpx.Client
    secret: str

    @property
    def cookie(self) -> dict[str, str]:
        return {"Cookie": f"{desk_gate.COOKIE}={self.secret}", "Accept-Language": "ru"}

    @property
    def csrf(self) -> str:
        return operator_sessions.verify(self.secret).csrf

    def get(self, path: str, **query: str) -> httpx.Response:
        return self.client.get(path, params=query or None, headers=self.cookie)

    def page(self, path: str, **query: str) -> html.HtmlElement:
        response = self.get(path, **query)
        assert response.status_code == 200, response.text
        return html.document_fromstring(response.content)

    def post(
        self, path: str, form: Mapping[str, str], files: Mapping[str, tuple[str, bytes]] | None = None
    ) -> httpx.Response:
        """Submit a form from a page of this session."""
        fields = {"csrf": self.csrf, **form}
        return self.client.post(path, data=fields, files=files or None, headers={**self.cookie, **SAME_ORIGIN})


def staff(tenant_id: str, people: Mapping[str, Role]) -> Mapping[str, Operator]:
    """Add operators of a tenant by name; a login is the name in the tenant. Existing ones are kept."""
    with acting_as(Tenant(tenant_id, "admin")):
        known = {one.name: one for one in operators.all()}
        for name, role in people.items():
            if name not in known:
                known[name] = operators.add(f"{name}@{tenant_id}", PASSWORD, role=role, name=name)
    return {name: known[name] for name in people}


def root() -> Operator:
    """Return an admin of the installation."""
    known = {one.login: one for one in operators.installation_admins()}
    return known.get("root") or operators.add_installation_admin("root", PASSWORD, name="Корень")


def acting(operator: Operator) -> Tenant:
    """Return an operator as a caller."""
    caller = operator.acting()
    assert caller is not None
    return caller


def secret_of(operator: Operator) -> str:
    """Begin a session; return its secret."""
    return operator_sessions.begin(operator, address="127.0.0.1", browser="test")


def asked(tenant_id: str, customer: str, *words: str, site: str = "shop", locale: str = "ru") -> Chat:
    """Begin a chat with these messages of a customer."""
    with acting_as(Tenant(tenant_id, customer)):
        chat = store.start(site=site, channel="widget", locale=locale)
        for text in words:
            chat = store.post(chat.chat_id, text).chat
    return chat


def answered(tenant_id: str, chat: Chat, text: str, *, confidence: float = 0.62, body: Body | None = None) -> Chat:
    """Add the assistant's answer with evidence."""
    with acting_as(Tenant(tenant_id, chat.subject)):
        posted = store.answer(
            chat.chat_id,
            store.get(chat.chat_id).version,
            text,
            turn_id=f"turn-{chat.chat_id}",
            body=body or {"turn": evidence(text)},
            failed=False,
            confidence=confidence,
        )
    assert posted is not None
    return posted.chat


def waiting(tenant_id: str, chat: Chat, *, reason: str = "user_request", minutes: float = 1, draft: str = "") -> Chat:
    """Hand the chat over to a person, waiting since then."""
    with acting_as(Tenant(tenant_id, chat.subject)):
        request = HandoffRequest(reason, question="?", draft=draft, confidence=chat.confidence)
        store.hand_over(chat.chat_id, request)
        since = datetime.now(UTC) - timedelta(minutes=minutes)
        with database.writing() as session:
            session.execute(update(ChatRow).where(ChatRow.chat_id == chat.chat_id).values(waiting_since=since))
        return store.get(chat.chat_id)


def evidence(text: str, passage: str = PASSAGE, excerpt: str = EXCERPT) -> Body:
    """Return a turn with a cited passage, its claims, gates and steps."""
    cited, source = citation(1, "Коды ошибок стиральной машины", excerpt, passage)
    gates = [
        {"name": "relevance", "passed": True, "score": 0.83, "threshold": 0.45},
        {"name": "factuality", "passed": True, "score": 1.0, "threshold": 0.8},
        {"name": "object", "passed": False, "score": 0.5, "threshold": 1.0},
    ]
    claims = [
        {"text": "Очистите фильтр сливного насоса.", "status": "supported", "citations": [1], "quote": excerpt},
        {"text": "Это займёт пять минут.", "status": "unsupported", "citations": [], "quote": ""},
    ]
    scores = {
        "quality": 80,
        "relevance": 0.83,
        "factuality": {"value": 50, "status": "checked"},
        "adequacy": 0.71,
        "confidence": 0.62,
        "hallucination": 0.12,
    }
    verdict = {"route": "auto", "reasons": [], "iterations": 1, "max_iterations": 3, "gates": gates}
    parts = {"citations": [cited], "sources": [source], "claims": claims, "scores": scores, "verdict": verdict}
    return as_json(turn("answered", text, verified=True, **parts))


def as_json(value: object) -> JsonObject:
    """Return the value as read back from a database."""
    read: JsonObject = json.loads(json.dumps(value))
    return read


def own_evaluation(words: Sequence[str]) -> None:
    """Questions of the tenant in context with two runs, the second of which lost half; each word is in each text."""
    evaluation_questions.save(EvaluationQuestion(one, Expected((one,), one)) for one in words)
    asked = evaluation_questions.list_questions()
    loss: JsonObject = {"share": "right", "before": 1, "now": 0.5, "n": 10, "worse": 5, "better": 0, "chance": 0.03}
    for mark in ("answered", "wrong"):
        answers: list[Json] = [
            {
                "question_id": one.question_id,
                "question": one.question,
                "facts": list(one.expected.facts),
                "article": one.expected.article,
                "refused": False,
                "mark": mark,
                "outcome": "answered",
                "text": one.question,
                "shown": [one.question],
            }
            for one in asked
        ]
        marks: dict[str, Json] = {one: len(asked) if one == mark else 0 for one in MARKS}
        figures: JsonObject = {
            "n": len(asked),
            "marks": marks,
            "right": float(mark == "answered"),
            "axes": {"quality": 0.8, "relevance": 0.7, "factuality": 1.0},
            "degraded": 1,
            "tokens": 1_200,
            "cost_usd": 0.02,
        }
        run_id = evaluation_results.begin(len(asked), nightly=True)
        evaluation_results.finish(run_id, figures, {"answers": answers}, {"right": loss} if mark == "wrong" else None)
    evaluation_results.stop(evaluation_results.begin(len(asked), nightly=False), "budget_spent")


def evaluated(tenant_id: str) -> None:
    """Store two evaluation runs with an answer key, unless there are some."""
    measured = {"answer_precision": 0.75, "answer_recall": 0.5, "right_or_offered": 1.0, "latency_ms_p50": 41.2}
    figures = {name: {"value": value, "low": 0.1, "high": 1.0, "n": 4} for name, value in measured.items()}
    others = {"answer_recall": 0.5, "false_answer_rate": 0.0}
    curve = [{"claimed": share, "answer_precision": 1 - share / 4, **others} for share in (0.25, 0.5, 1.0)]
    demand: JsonObject = {"set": "shop-key", "figure": "answer_precision", "demand": ">= 0.68", "met": True}
    sets: list[Json] = [{"name": "shop-key", "n": 4, "figures": figures, "claims": curve}]
    now = datetime.now(UTC)
    with acting_as(Tenant(tenant_id, "anna")):
        for number in (1, 2) if not evaluations.newest() else ():
            summary: JsonObject = {"pipeline": "0123456789ab", "sets": sets, "targets": [demand]}
            evaluations.add(EvaluationRun(f"run-{number}", now + timedelta(seconds=number), summary))
