"""A service process for tests, its environment, and a check of problem responses."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread

import httpx
import pytest

from settings import Settings, get_settings
from tenants.core.context import SCOPES
from tenants.storage import database
from tests import places

ROOT = Path(__file__).parents[2]
_SERVE = "import gc; gc.disable(); import app; from tests import places; places.watch(); gc.enable(); app.serve()"
"""Garbage collection while modules load takes a sixth of the CPU time of importing `app`."""
RSA_KID = "provider-1"
ALL_SCOPES = tuple(sorted(SCOPES))
CROWD = tuple(f"crowd-{number}" for number in range(6))
TENANTS = {
    "acme": "ru",
    "empty": "ru",
    "globex": "en",
    "golden": "ru",
    "hurried": "en",
    "written": "ru",
    **dict.fromkeys(CROWD, "ru"),
}

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


class Server:
    """A service process. `log` grows while it runs."""

    def __init__(self, environment: dict[str, str]) -> None:
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.log: list[str] = []
        self._up = Event()
        self.process = subprocess.Popen(
            [sys.executable, "-c", _SERVE],
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
    """Return the environment variables for these settings."""
    return {f"OPORA_{name.upper()}": str(getattr(settings, name)) for name in settings.model_fields_set}


@contextmanager
def serving(variables: Mapping[str, str]) -> Iterator[Server]:
    """Run a service until the block ends."""
    server = Server(dict(variables))
    try:
        server.wait_until_up()
        yield server
    finally:
        server.stop()
    misplaced = [line for line in server.log if places.MISPLACED in line]
    assert not misplaced, "".join(misplaced)


@contextmanager
def in_force(settings: Settings) -> Iterator[None]:
    """Apply these settings to this process until the block ends: for fixtures that outlast a test."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in environment(settings).items():
            patch.setenv(name, value)
        get_settings.cache_clear()
        yield
    database.close_all()
    get_settings.cache_clear()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def problem(response: httpx.Response, status: int, code: str) -> dict[str, object]:
    """Check that the response is this problem, and return it."""
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
