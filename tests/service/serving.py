"""A service process to test against, what it is given, and the form its problems must have."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from secrets import token_urlsafe
from threading import Event, Thread

import httpx
import pytest

from settings import Settings, get_settings
from tenants import database
from tenants.audit.entry import Entry
from tenants.changes import SettingChangeRow
from tenants.chats.tables import ChatFileRow, ChatRow, OutboxRow, SiteRow, WebhookRow
from tenants.context import SCOPES
from tenants.desk.tables import ArticleRow, OperatorRow
from tenants.gaps import Miss
from tenants.models import JobRow, ToolRow
from tenants.tools import parsed

ROOT = Path(__file__).parents[2]
RSA_KID = "provider-1"
ALL_SCOPES = tuple(sorted(SCOPES))
CROWD = tuple(f"crowd-{number}" for number in range(6))
TENANTS = {"acme": "ru", "empty": "ru", "globex": "en", "hurried": "en", "written": "ru", **dict.fromkeys(CROWD, "ru")}

ARTICLES = [
    {
        "doc_id": "errors.md",
        "title": "Коды ошибок стиральной машины",
        "text": "## E10\n\nКод E10 означает, что вода не поступает в машину. Откройте кран подачи воды.\n\n"
        "## E20\n\nКод E20 означает, что вода не сливается. Очистите фильтр сливного насоса и проверьте шланг.\n",
        "tags": ["errors"],
    },
    {
        "doc_id": "returns.md",
        "title": "Возврат товара",
        "text": "Товар надлежащего качества можно вернуть в течение 14 дней после покупки. Сохраните чек.\n",
        "tags": ["returns"],
    },
]


def recorded(tenant_id: str) -> Entry:
    """A turn of the tenant's as the audit keeps it: it found nothing, so there is a gap, too."""
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
    """A job of the tenant's that has nothing left to do."""
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
    """A tool of the tenant's, as somebody would put it."""
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
    """The same, as it is kept."""
    tool = parsed(tool_of(tenant_id))
    definition = tool.model_dump(mode="json", exclude={"name", "headers"})
    return ToolRow(tenant_id=tenant_id, name=tool.name, definition=definition, headers=dict(tool.secrets))


def stored_chat(tenant_id: str) -> ChatRow:
    """A chat of the tenant's that nobody has written to."""
    moment = datetime.now(UTC)
    return ChatRow(
        tenant_id=tenant_id,
        chat_id=f"chat-of-{tenant_id}",
        subject="anna",
        site="",
        channel="api",
        locale="ru",
        state="bot",
        version=0,
        last_seq=0,
        reason="",
        failures=0,
        reopened=0,
        csat_comment="",
        customer_seen=0,
        operator_seen=0,
        created_at=moment,
        updated_at=moment,
    )


def stored_file(tenant_id: str) -> ChatFileRow:
    """A file of that chat."""
    return ChatFileRow(
        tenant_id=tenant_id,
        file_id=f"file-of-{tenant_id}",
        chat_id=f"chat-of-{tenant_id}",
        name="чек.txt",
        media_type="text/plain",
        size=5,
        content=b"total",
        message_id=None,
        created_at=datetime.now(UTC),
    )


def stored_operator(tenant_id: str) -> OperatorRow:
    """An operator of the tenant's who has no password yet."""
    return OperatorRow(
        login=f"olga.{tenant_id}",
        tenant_id=tenant_id,
        role="operator",
        name="Ольга",
        password="",
        created_at=datetime.now(UTC),
    )


def stored_article(tenant_id: str, name: str = "article") -> ArticleRow:
    """A draft of the tenant's."""
    now = datetime.now(UTC)
    return ArticleRow(
        tenant_id=tenant_id,
        article_id=f"{name}-of-{tenant_id}",
        title="Черновик",
        text="Текст черновика.",
        questions=[],
        lang="ru",
        trust="auto",
        version=1,
        created_at=now,
        created_by="olga",
        updated_at=now,
        updated_by="olga",
    )


def stored_settings(tenant_id: str) -> Iterator[SiteRow | SettingChangeRow | ToolRow | WebhookRow]:
    """Sites, a tool and webhooks of the tenant's, and a change of its policy that can be undone."""
    moment = datetime.now(UTC)
    for key in (f"site-of-{tenant_id}", f"spare-site-of-{tenant_id}"):
        yield SiteRow(
            key=key,
            tenant_id=tenant_id,
            name="Магазин",
            origins=[],
            config={},
            secrets=[{"secret": token_urlsafe(), "created_at": moment.isoformat()}],
            identity_secret=None,
            identity_required=False,
            created_at=moment,
        )
    yield ToolRow(
        tenant_id=tenant_id, name=f"spare-tool-of-{tenant_id}", definition=kept_tool(tenant_id).definition, headers={}
    )
    for webhook_id in (f"hook-of-{tenant_id}", f"spare-hook-of-{tenant_id}"):
        yield WebhookRow(
            tenant_id=tenant_id,
            webhook_id=webhook_id,
            # Refused before anything is sent there: it is no public address.
            url="http://127.0.0.1:9/hook",
            events=["chat.rated"],
            secrets=[{"secret": "whsec_AAAA", "created_at": moment.isoformat()}],
            created_at=moment,
        )
    yield SettingChangeRow(
        tenant_id=tenant_id,
        change_id=f"change-of-{tenant_id}",
        at=moment,
        by="anna",
        area="policy",
        act="changed",
        about="",
        before={"top_k": 5},
        after={"top_k": 6},
    )


def dead_delivery(tenant_id: str) -> OutboxRow:
    """A delivery to the tenant's webhook that was given up."""
    moment = datetime.now(UTC)
    return OutboxRow(
        tenant_id=tenant_id,
        delivery_id=f"delivery-of-{tenant_id}",
        webhook_id=f"hook-of-{tenant_id}",
        chat_id="",
        event="chat.rated",
        body="{}",
        state="dead",
        attempts=9,
        next_at=moment,
        fault="url_forbidden",
        created_at=moment,
        delivered_at=None,
    )


class Server:
    """A service process of its own. `log` grows while it runs."""

    def __init__(self, environment: dict[str, str]) -> None:
        self.port = _free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.log: list[str] = []
        self._up = Event()
        self.process = subprocess.Popen(
            [sys.executable, "-c", "import app; app.serve()"],
            cwd=ROOT,
            env={**os.environ, **environment, "OPORA_PORT": str(self.port)},
            stderr=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            encoding="utf-8",
        )
        self._reader = Thread(target=self._read, daemon=True)
        self._reader.start()

    def wait_until_up(self) -> None:
        assert self._up.wait(timeout=90), "".join(self.log)
        assert self.process.poll() is None, "".join(self.log)

    def stop(self) -> int:
        """Ask the process to leave and return its exit code."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(timeout=60)
        self._reader.join(timeout=10)
        if self.process.stderr:
            self.process.stderr.close()
        return code

    def _read(self) -> None:
        assert self.process.stderr
        for line in self.process.stderr:
            self.log.append(line)
            if "Uvicorn running" in line:
                self._up.set()
        self._up.set()


def environment(settings: Settings) -> dict[str, str]:
    """The variables that make a process use these settings."""
    return {f"OPORA_{name.upper()}": str(getattr(settings, name)) for name in settings.model_fields_set}


@contextmanager
def serving(variables: Mapping[str, str]) -> Iterator[Server]:
    """A service that is up, until the block ends."""
    server = Server(dict(variables))
    try:
        server.wait_until_up()
        yield server
    finally:
        server.stop()
    misplaced = [line for line in server.log if database.MISPLACED in line]
    assert not misplaced, "".join(misplaced)


@contextmanager
def in_force(settings: Settings) -> Iterator[None]:
    """These settings are this process's too, until the block ends: for fixtures that outlast a test."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in environment(settings).items():
            patch.setenv(name, value)
        get_settings.cache_clear()
        yield
    database.close_all()
    get_settings.cache_clear()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def problem(response: httpx.Response, status: int, code: str) -> dict[str, object]:
    """The problem object, after checking that it is one."""
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/problem+json"
    body: dict[str, object] = response.json()
    assert set(body) >= {"type", "title", "status", "code", "detail", "retryable", "request_id", "turn_id"}
    assert body["code"] == code
    assert body["status"] == status
    assert body["title"]
    assert body["detail"]
    assert body["request_id"] == response.headers["x-request-id"]
    for word in ("Traceback", ".py", "Error", "pydantic", "hayhooks", "haystack"):
        assert word not in response.text
    return body
