"""Data of an installation before its service starts: tenants, and one object of each kind for `acme` and `globex`."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from secrets import token_urlsafe

from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from jwt.algorithms import RSAAlgorithm

from evaluation.simulator.adapted import adapt, edited
from pipelines.definition import components_of_type
from settings import Settings
from tenants.access.tables import TokenRow
from tenants.accounts import policy
from tenants.accounts.registry import Registry
from tenants.accounts.settings_history import SettingChangeRow
from tenants.audit import store
from tenants.audit.entry import Entry
from tenants.chats.tables import ChatFileRow, ChatRow, OutboxRow, SiteRow, WebhookRow
from tenants.core.context import Tenant, acting_as
from tenants.desk.tables import ArticleRow, EvaluationQuestionRow, EvaluationResultRow, OperatorRow
from tenants.knowledge.gaps import Miss
from tenants.knowledge.tables import ToolRow
from tenants.knowledge.tools import parsed
from tenants.storage import database
from tenants.work.tables import JobRow
from tests.records import row
from tests.service.serving import RSA_KID, TENANTS, in_force

PRICES = {"simulated": [1.0, 2.0], "simulated-strong": [10.0, 20.0]}
"""US dollars for a million tokens in and out."""

POLICIES: dict[str, dict[str, object]] = {
    "hurried": {"rate_limit_per_minute": 3},
    "written": {"profile": "ollama"},
}


def prepared(folder: Path, provider_key: RSAPrivateKey, models_url: str) -> Settings:
    """Prepare a data folder with registered tenants, before any server runs on it."""
    pipelines = adapt(folder / "pipelines", models_url)
    with edited(pipelines / "ask" / "profiles" / "ollama.yaml") as profile:
        for models in components_of_type(profile, "ChatModels"):
            models["init_parameters"]["prices"] = PRICES
    jwks = folder / "jwks.json"
    public = json.loads(RSAAlgorithm.to_jwk(provider_key.public_key()))
    jwks.write_text(json.dumps({"keys": [{**public, "kid": RSA_KID, "alg": "RS256", "use": "sig"}]}))
    settings = Settings(
        data_dir=folder,
        pipelines_dir=pipelines,
        token_jwks_file=jwks,
        rate_limit_per_minute=0,
        rate_limit_per_day=0,
        default_locale="ru",
        chat_messages_per_minute=0,
        visitor_sessions_per_minute=0,
    )
    registry = Registry(settings)
    for tenant_id, locale in TENANTS.items():
        registry.add(tenant_id, locale=locale)
    with in_force(settings):
        for tenant_id, fields in POLICIES.items():
            with acting_as(Tenant(tenant_id, "admin")):
                policy.change(**fields)
        for tenant_id in ("acme", "globex"):
            store.append([recorded(tenant_id)], settings)
            with database.across_tenants(settings, write=True) as session:
                session.add(finished_job(tenant_id))
                session.add(kept_tool(tenant_id))
                session.add(stored_chat(tenant_id))
                session.flush()
                session.add(stored_file(tenant_id))
                session.add(stored_operator(tenant_id))
                session.add_all([stored_article(tenant_id), stored_article(tenant_id, "spare")])
                session.add_all(stored_settings(tenant_id))
                session.add_all(stored_evaluation(tenant_id))
                session.flush()
                session.add(dead_delivery(tenant_id))
    return settings


def recorded(tenant_id: str) -> Entry:
    """Return a turn of the tenant as stored in the audit: no passages were found, so there is a gap, too."""
    miss = Miss("no_relevant_context", "Вопрос?", f"about {tenant_id}", ("вопрос",), ())
    return Entry(
        tenant_id=tenant_id,
        turn_id=f"turn-of-{tenant_id}",
        at=datetime.now(UTC) - timedelta(days=30),
        outcome="refused",
        reason="no_relevant_context",
        person="",
        session_id="",
        misses=(miss,),
        body='{"answer":{"answer":{"text":"Нет."},"citations":[]},"found":[],"request":{"question":"Вопрос?"}}',
    )


def finished_job(tenant_id: str) -> JobRow:
    """Return a finished job of the tenant."""
    moment = datetime.now(UTC)
    return JobRow(
        tenant_id=tenant_id,
        job_id=f"0-of-{tenant_id}",
        subject="anna",
        kind="upload",
        state="done",
        files=["door.md"],
        gone=[],
        size=1,
        progress={},
        report={},
        error=None,
        revision=3,
        attempts=1,
        farthest=1,
        faults=0,
        cancelling=False,
        created_at=moment,
        started_at=moment,
        begun_at=moment,
        finished_at=moment,
    )


def tool_of(tenant_id: str) -> dict[str, object]:
    """Return a tool of the tenant, as sent by a client."""
    number = {"type": "string", "pattern": r"\b\d{7}\b"}
    return {
        "name": f"orders-of-{tenant_id}",
        "title": "Накладные",
        "description": "Где накладная с номером",
        "url": "https://api.shop.example/waybills",
        "parameters": {"properties": {"number": number}, "required": ["number"]},
        "headers": {"authorization": f"secret of {tenant_id}"},
    }


def kept_tool(tenant_id: str) -> ToolRow:
    """Return the same tool as stored."""
    tool = parsed(tool_of(tenant_id))
    definition = tool.model_dump(mode="json", exclude={"name", "headers"})
    return ToolRow(tenant_id=tenant_id, name=tool.name, definition=definition, headers=dict(tool.secrets))


def stored_chat(tenant_id: str) -> ChatRow:
    """Return a chat of the tenant without messages."""
    about = {"subject": "anna", "channel": "api", "locale": "ru", "state": "bot"}
    return row(ChatRow, tenant_id=tenant_id, chat_id=f"chat-of-{tenant_id}", **about)


def stored_file(tenant_id: str) -> ChatFileRow:
    """Return a file of that chat."""
    ids = {"file_id": f"file-of-{tenant_id}", "chat_id": f"chat-of-{tenant_id}"}
    content = {"name": "чек.txt", "media_type": "text/plain", "size": 5, "content": b"total"}
    return row(ChatFileRow, tenant_id=tenant_id, **ids, **content)


def stored_operator(tenant_id: str) -> OperatorRow:
    """Return an operator of the tenant without a password."""
    return row(OperatorRow, tenant_id=tenant_id, login=f"olga.{tenant_id}", role="operator", name="Ольга")


def stored_article(tenant_id: str, name: str = "article") -> ArticleRow:
    """Return a draft of the tenant."""
    draft = {"title": "Черновик", "text": "Текст черновика.", "questions": [], "lang": "ru", "trust": "auto"}
    by = {"created_by": "olga", "updated_by": "olga"}
    return row(ArticleRow, tenant_id=tenant_id, article_id=f"{name}-of-{tenant_id}", version=1, **draft, **by)


def stored_evaluation(tenant_id: str) -> tuple[EvaluationQuestionRow, EvaluationResultRow]:
    """A question of the tenant's evaluation, and a run that asked none."""
    question = row(
        EvaluationQuestionRow,
        tenant_id=tenant_id,
        question_id=f"question-of-{tenant_id}",
        question="Кто президент?",
        expected={"facts": [], "article": "", "refused": True},
    )
    ended = {"nightly": True, "state": "stopped", "reason": "budget_spent", "total": 1}
    result = row(EvaluationResultRow, tenant_id=tenant_id, run_id=f"run-of-{tenant_id}", **ended)
    return question, result


def stored_settings(tenant_id: str) -> Iterator[SiteRow | SettingChangeRow | TokenRow | ToolRow | WebhookRow]:
    """Store sites, a tool, webhooks and tokens of the tenant, and a change of its policy."""
    for key in (f"site-of-{tenant_id}", f"spare-site-of-{tenant_id}"):
        secrets = [{"secret": token_urlsafe(), "created_at": datetime.now(UTC).isoformat()}]
        yield row(SiteRow, key=key, tenant_id=tenant_id, name="Магазин", origins=[], secrets=secrets)
    yield ToolRow(
        tenant_id=tenant_id, name=f"spare-tool-of-{tenant_id}", definition=kept_tool(tenant_id).definition, headers={}
    )
    for webhook_id in (f"hook-of-{tenant_id}", f"spare-hook-of-{tenant_id}"):
        yield webhook(tenant_id, webhook_id)
    expires_at = datetime.now(UTC) + timedelta(days=90)
    for token_id in (f"token-of-{tenant_id}", f"spare-token-of-{tenant_id}"):
        about = {"subject": f"crm of {tenant_id}", "scopes": ["ask"], "issued_by": "anna", "expires_at": expires_at}
        yield row(TokenRow, tenant_id=tenant_id, token_id=token_id, **about)
    yield row(
        SettingChangeRow,
        tenant_id=tenant_id,
        change_id=f"change-of-{tenant_id}",
        by="anna",
        area="policy",
        act="changed",
        before={"top_k": 5},
        after={"top_k": 6},
    )


def webhook(tenant_id: str, webhook_id: str, url: str = "http://127.0.0.1:9/hook") -> WebhookRow:
    """Return a receiver of chat events; without `url` at an address that is refused before anything is sent."""
    secrets = [{"secret": "whsec_AAAA", "created_at": datetime.now(UTC).isoformat()}]
    names = {"tenant_id": tenant_id, "webhook_id": webhook_id}
    return row(WebhookRow, **names, url=url, events=["chat.rated"], secrets=secrets)


def delivery(tenant_id: str, delivery_id: str, webhook_id: str, **changed: object) -> OutboxRow:
    """Return a delivery to a receiver that was given up, unless changed."""
    ids = {"tenant_id": tenant_id, "delivery_id": delivery_id, "webhook_id": webhook_id}
    given_up = {"event": "chat.rated", "body": "{}", "state": "dead", "attempts": 9, "fault": "url_forbidden"}
    return row(OutboxRow, **ids, **given_up | changed)


def dead_delivery(tenant_id: str) -> OutboxRow:
    """Return a delivery to the tenant's webhook that was given up."""
    return delivery(tenant_id, f"delivery-of-{tenant_id}", f"hook-of-{tenant_id}")
