"""A service process for tests, its environment, and a check of problem responses."""

import os
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from types import MappingProxyType

import httpx
import pytest

from settings import Settings, get_settings
from tenants.core.context import SCOPES
from tenants.storage import database
from tests import places
from tests.forks import forked

ROOT = Path(__file__).parents[2]
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

    def __init__(self, environment: dict[str, str], constants: Mapping[str, float] = MappingProxyType({})) -> None:
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.log: list[str] = []
        self._up = Event()
        variables = {**os.environ, **environment, "OPORA_PORT": str(self.port)}
        reader, writer = os.pipe()
        with Path(os.devnull).open("w") as nowhere, os.fdopen(writer) as log:
            self.process = forked(
                "tests.service.serving.serve",
                variables=variables,
                streams={1: nowhere.fileno(), 2: log.fileno()},
                constants=constants,
            )
        self._reader = Thread(target=self._read, args=(reader,), daemon=True)
        self._reader.start()

    def wait_until_up(self) -> None:
        assert self._up.wait(timeout=90), "".join(self.log)
        assert self.process.is_alive(), "".join(self.log)

    def stop(self) -> int:
        """Ask the process to leave and return its exit code."""
        self.process.terminate()
        self.process.join(60)
        assert self.process.exitcode is not None, "".join(self.log)
        self._reader.join(10)
        return self.process.exitcode

    def _read(self, reader: int) -> None:
        with os.fdopen(reader, encoding="utf-8") as lines:
            for line in lines:
                self.log.append(line)
                if "Uvicorn running" in line:
                    self._up.set()
        self._up.set()


def serve() -> None:
    """Serve in this process, and log misplaced queries."""
    import app

    places.watch()
    app.serve()


def environment(settings: Settings) -> dict[str, str]:
    """Return the environment variables for these settings."""
    return {f"OPORA_{name.upper()}": str(getattr(settings, name)) for name in settings.model_fields_set}


@contextmanager
def serving(variables: Mapping[str, str], constants: Mapping[str, float] = MappingProxyType({})) -> Iterator[Server]:
    """Run a service until the block ends, with these values for constants of its modules."""
    server = Server(dict(variables), constants)
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
