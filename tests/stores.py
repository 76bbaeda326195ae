"""`python -m tests.stores`: every store of a service made to fail in every way, and what becomes of it.

Prints the table of `stores.yaml` with what was seen beside what is declared. The exit code is 1 where they differ, or
where something acknowledged was lost. Redis and PostgreSQL are those of `OPORA_TEST_REDIS_URL` and
`OPORA_TEST_POSTGRES_URL`, or started from the machine's own binaries.
"""

import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event
from typing import Literal, TypeAlias, get_args
from unittest.mock import patch

import yaml
from rich.console import Console
from rich.table import Table
from starlette.testclient import TestClient

import app
from pipelines.ask import runner
from pipelines.ingest import tenant_jobs
from settings import get_settings
from tenants import index
from tenants.access import quotas
from tenants.access.tokens import issue
from tenants.accounts.registry import Registry
from tenants.audit import recorder
from tenants.core.context import SCOPES
from tenants.storage import cache, database
from tenants.work import locks, queue_postgres

Store: TypeAlias = Literal["sqlite", "postgresql", "edge", "qdrant", "redis", "spool", "uploads"]
Fault: TypeAlias = Literal["refused", "hangs", "slow", "full", "read-only", "corrupt", "killed"]

STORES: tuple[Store, ...] = get_args(Store)
FAULTS: tuple[Fault, ...] = get_args(Fault)
OF_THE_SERVICE: frozenset[Store] = frozenset({"sqlite", "edge", "spool", "uploads"})
"""Stores that live and die with the service."""

TENANT = "acme"
QUESTION = "Что значит код E20?"
ARTICLE = {
    "doc_id": "errors.md",
    "title": "Коды ошибок стиральной машины",
    "text": "## E20\n\nКод E20 означает, что вода не сливается. Очистите фильтр сливного насоса и проверьте шланг.\n",
}
_PATIENCE_SECONDS = 60.0
_POLL_SECONDS = 0.1
_TURN_SECONDS = 3
_BRIEF = (
    (cache, "FRESH_SECONDS", 0.05),
    (cache, "PATIENCE_SECONDS", 0.1),
    (cache, "REST_SECONDS", 0.2),
    (database, "_BUSY_MILLISECONDS", 1_000),
    (database, "_GRACE_SECONDS", 0),
    (quotas, "_REDIS_REST_SECONDS", 0.1),
    (recorder, "_MAX_PAUSE", 0.5),
    (runner, "_RECORDING_SECONDS", 1.0),
    (tenant_jobs, "_LATER_SECONDS", 0.2),
    (tenant_jobs, "_AFTER_FAULT_SECONDS", 0.5),
    (queue_postgres, "_RETRY_SECONDS", 0.5),
)
"""Waits that a person would put up with, and a test need not."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """Outcomes of a question, of an upload and of `/readyz`; see `stores.yaml`."""

    ask: str
    write: str
    ready: str


@dataclass(frozen=True, slots=True)
class Declared:
    """An outcome of the table, with the advice for the fault."""

    outcome: Outcome
    words: str


def declared() -> Mapping[tuple[Store, Fault], Declared]:
    """Return the whole table."""
    stored = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8"))
    return {
        (store, fault): Declared(Outcome(*stored[store][fault][:3]), stored[store][fault][3])
        for store in STORES
        for fault in FAULTS
    }


def markdown() -> str:
    """Return the table for the documentation: question, upload and readiness by store and fault."""
    cells = declared()

    def cell(store: Store, fault: Fault) -> str:
        outcome = cells[store, fault].outcome
        return f"{outcome.ask}, {outcome.write}, {outcome.ready}"

    head = ["| store | " + " | ".join(FAULTS) + " |", "| --- " * (len(FAULTS) + 1) + "|"]
    rows = [f"| {store} | " + " | ".join(cell(store, fault) for fault in FAULTS) + " |" for store in STORES]
    return "\n".join([*head, *rows])


class Stage:
    """A service in this process, on stores that can be made to fail.

    :ivar folder: its data folder.
    """

    def __init__(self, client: TestClient, folder: Path) -> None:
        self.client = client
        self.folder = folder
        self._answered: list[str] = []
        self._uploads: dict[str, str] = {}
        self._number = 0

    @classmethod
    @contextmanager
    def open(cls, **settings: str) -> Iterator["Stage"]:
        """Run a service with settings from these environment variables, named without prefix."""
        with TemporaryDirectory() as folder, ExitStack() as stack:
            for module, name, value in _BRIEF:
                stack.enter_context(patch.object(module, name, value))
            fixed = {
                "DATA_DIR": folder,
                "MODELS_DIR": os.devnull,
                "FETCH_MODELS": "false",
                "RATE_LIMIT_PER_MINUTE": "1000000",
                "DISK_RESERVE_BYTES": "0",
                "CHECK_HOUR": "-1",
                "TURN_TIMEOUT_SECONDS": str(_TURN_SECONDS),
                "DATABASE_STATEMENT_SECONDS": "1",
                "DATABASE_CONNECT_SECONDS": "1",
            }
            values = {f"OPORA_{name}": value for name, value in (fixed | settings).items()}
            stack.enter_context(patch.dict(os.environ, values))
            get_settings.cache_clear()
            stack.callback(close_all)
            if not Registry().exists(TENANT):
                Registry().add(TENANT, locale="ru")
            token = issue(get_settings(), TENANT, scopes=SCOPES, subject="anna", ttl_seconds=3_600)
            headers = {"Authorization": f"Bearer {token}"}
            service = app.create_app(get_settings())
            with TestClient(service, headers=headers, raise_server_exceptions=False) as client:
                client.post("/ingest/run", json={"documents": [ARTICLE]}).raise_for_status()
                stage = cls(client, Path(folder))
                stage.ask()
                yield stage

    def observe(self) -> Outcome:
        """Return the current outcomes of a question, an upload and readiness."""
        # Cached values must expire first.
        Event().wait(2 * cache.FRESH_SECONDS)
        ready = self._ready()
        return Outcome(self.ask(), self.upload(), ready)

    def ask(self) -> str:
        """Return the outcome of a question. An answered turn must never be lost."""
        reply = self.client.post("/ask/run", json={"question": QUESTION})
        answer = reply.json()
        if not reply.is_success:
            return str(answer["code"])
        self._answered.append(answer["turn_id"])
        return str(answer["outcome"])

    def upload(self, content: str = "", name: str = "") -> str:
        """Return the outcome of an upload. An acknowledged one must never be lost."""
        self._number += 1
        name = name or f"file-{self._number}.md"
        text = content or f"# Файл {self._number}\n\nТекст файла {self._number}.\n"
        with ThreadPoolExecutor(1) as pool:
            sent = pool.submit(self.client.post, "/documents", files=[("files", (name, text.encode()))])
            try:
                reply = sent.result(_TURN_SECONDS if self.release is not None else _PATIENCE_SECONDS)
            except TimeoutError:
                if self.release is not None:
                    self.release()
                sent.result(_PATIENCE_SECONDS)
                return "waits"
        if not reply.is_success:
            return str(reply.json()["code"])
        self._uploads[reply.json()["job_id"]] = name
        return "accepted"

    release: Callable[[], None] | None = None
    """Release a hanging upload."""

    def lost(self) -> list[str]:
        """Return acknowledged data that is missing after the stores have recovered."""
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while (missing := self._missing()) and time.monotonic() < deadline:
            Event().wait(_POLL_SECONDS)
        if not missing:
            self._answered, self._uploads = [], {}
        return missing

    def _missing(self) -> list[str]:
        if self._ready() != "ready" or self.ask() != "answered":
            return ["the service itself"]
        turns = [turn for turn in self._answered if self.client.get(f"/audit/{turn}").status_code != 200]
        jobs = {job: self.client.get(f"/jobs/{job}").json() for job in self._uploads}
        return [f"turn {turn}" for turn in turns] + [f"job {one}" for one in jobs if jobs[one]["state"] != "done"]

    def _ready(self) -> str:
        reply = self.client.get("/readyz").json()
        return str(reply["status"] if reply["status"] == "ready" else reply["code"])


def close_all() -> None:
    """Close everything of the installation."""
    index.close_all()
    locks.close_all()
    database.close_all()
    get_settings.cache_clear()


@dataclass(frozen=True, slots=True)
class Seen:
    """A provoked fault, with its outcome and the lost data."""

    outcome: Outcome
    lost: tuple[str, ...]


def seen_of(store: Store, fault: Fault, stage: Stage) -> Seen:
    """Provoke a fault, observe the outcomes, and end the fault."""
    from tests.store_faults import provoked

    with provoked(store, fault, stage):
        outcome = stage.observe()
    return Seen(outcome, tuple(stage.lost()))


def settings_of(store: Store, servers: Mapping[Store, str]) -> Mapping[str, str]:
    """Return the settings of a service that uses the store.

    :param servers: URLs of those that are servers.
    """
    names: Mapping[Store, str] = {"postgresql": "DATABASE_URL", "redis": "REDIS_URL", "qdrant": "QDRANT_URL"}
    return {names[store]: servers[store]} if store in names else {}


def main() -> int:
    """Provoke all faults and print the outcomes; 1 if one is not as declared."""
    from tests import servers
    from tests.store_faults import killed, reachable

    table = Table("store", "fault", "question", "upload", "/readyz", "lost", "what is done")
    expected, wrong = declared(), 0
    with servers.postgres() as postgres, servers.redis() as redis:
        for store in STORES:
            seen: dict[Fault, Seen] = {}
            with reachable(store, {"postgresql": postgres, "redis": redis}) as urls, ExitStack() as stack:
                stage = stack.enter_context(Stage.open(**settings_of(store, urls)))
                for fault in FAULTS:
                    if fault != "killed" or store not in OF_THE_SERVICE:
                        seen[fault] = seen_of(store, fault, stage)
            if store in OF_THE_SERVICE:
                # Once nothing in this process serves any more: it would open the index that is looked at.
                seen["killed"] = killed(store)
            for fault in FAULTS:
                cell, outcome, lost = expected[store, fault], seen[fault].outcome, seen[fault].lost
                fits = outcome == cell.outcome and not lost
                wrong += not fits
                shown = [outcome.ask, outcome.write, outcome.ready, str(len(lost))]
                table.add_row(store, fault, *shown, cell.words, style="" if fits else "red")
                sys.stderr.write(f"{store} {fault}: {seen[fault]}\n")
    Console(width=shutil.get_terminal_size((160, 24)).columns).print(table)
    return 1 if wrong else 0


if __name__ == "__main__":
    # The module whose outcomes the provocations build, not this second copy of it.
    from tests import stores

    sys.exit(stores.main())
