"""`opora up`: from an empty folder to an answer over HTTP with one command, and from there on again."""

import os
import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from time import monotonic

import httpx
import pytest
from typer.testing import CliRunner

import cli
from settings import get_settings
from tenants import index
from tenants.accounts.registry import Registry
from tenants.core.context import Tenant, acting_as
from tenants.desk import operators
from tenants.knowledge import catalogue, watched
from tenants.storage import database
from tenants.work import locks
from tests.desk import PASSWORD, SAME_ORIGIN
from tests.forks import forked
from tests.service.serving import free_port
from ui.cli import first_start
from ui.cli.terminal import first_tenant

DELIVERY = "# Доставка\n\nДоставка по городу занимает два дня.\n"
WARRANTY = "# Гарантия\n\nГарантия на технику действует 24 месяца.\n"


class Running:
    """An `opora up` that runs until its block ends. `said` is its standard output."""

    def __init__(self, folder: Path, port: int, *arguments: str) -> None:
        variables = {
            "OPORA_DATA_DIR": str(folder / "data"),
            "OPORA_RATE_LIMIT_PER_MINUTE": "0",
            "LANG": "ru_RU.UTF-8",
        }
        (said, stdout), (logged, stderr) = os.pipe(), os.pipe()
        command = ("up", *arguments, "--port", str(port))
        self.process = forked(
            "cli.main", *command, variables={**os.environ, **variables}, streams={1: stdout, 2: stderr}
        )
        os.close(stdout)
        os.close(stderr)
        self.said, self.logged = "", ""
        self._ready = Event()
        self._readers = [
            Thread(target=reader, args=(pipe,)) for reader, pipe in ((self._read, said), (self._log, logged))
        ]
        for reader in self._readers:
            reader.start()
        assert self._ready.wait(90), self.logged

    def printed(self, pattern: str) -> str:
        results = re.search(pattern, self.said)
        assert results is not None, self.said + self.logged
        return results[1]

    def interrupt(self) -> int:
        """Press Ctrl-C; return the exit code."""
        assert self.process.pid is not None
        os.kill(self.process.pid, signal.SIGINT)
        self.process.join(60)
        for reader in self._readers:
            reader.join(10)
        assert self.process.exitcode is not None
        return self.process.exitcode

    def _read(self, pipe: int) -> None:
        with os.fdopen(pipe, encoding="utf-8") as stream:
            for line in stream:
                self.said += line
                if "Ctrl+C" in line:
                    self._ready.set()
        self._ready.set()

    def _log(self, pipe: int) -> None:
        with os.fdopen(pipe, encoding="utf-8") as stream:
            for line in stream:
                self.logged += line


@contextmanager
def running(folder: Path, port: int, *arguments: str) -> Iterator[Running]:
    up = Running(folder, port, *arguments)
    try:
        yield up
    finally:
        code = up.interrupt()
    assert code == 0, up.logged
    assert "Traceback" not in up.logged


def answer(client: httpx.Client, question: str) -> str:
    return str(client.post("/ask/run", json={"question": question}).json()["answer"]["text"])


def test_a_file_in_the_watched_folder_is_answered_from(tmp_path: Path) -> None:
    articles, port = tmp_path / "articles", free_port()
    articles.mkdir()
    (articles / "delivery.md").write_text(DELIVERY, encoding="utf-8")
    with running(tmp_path, port, str(articles)) as up:
        assert "добавлено 1" in up.said
        assert str(articles) in up.said
        address, token = f"http://127.0.0.1:{port}", up.printed(r"OPORA_TOKEN=(\S+)")
        with httpx.Client(base_url=address, timeout=60, headers={"Authorization": f"Bearer {token}"}) as client:
            assert "два дня" in answer(client, "Сколько занимает доставка по городу?")
            (articles / "warranty.md").write_text(WARRANTY, encoding="utf-8")
            ends_at = monotonic() + 60
            while "24 месяца" not in answer(client, "Сколько действует гарантия?"):
                assert monotonic() < ends_at, up.logged
                Event().wait(0.3)
        invitation = up.printed(rf"{address}(/desk/invitation/\S+)")
        chat = up.printed(rf"{address}(/chat/\S+)")
        with httpx.Client(base_url=address, timeout=60) as browser:
            assert browser.get(chat).status_code == 200
            form = {"login": "anna", "name": "Анна", "password": PASSWORD}
            assert browser.post(invitation, data=form, headers=SAME_ORIGIN).status_code == 303

    (articles / "delivery.md").write_text(DELIVERY.replace("два", "три"), encoding="utf-8")
    with running(tmp_path, port) as again:
        assert "изменено 1" in again.said
        assert "invitation" not in again.said
        assert "opora tenant token default" in again.said
        assert (token in again.said, chat in again.said) == (False, True)
        with httpx.Client(base_url=address, timeout=60, headers={"Authorization": f"Bearer {token}"}) as client:
            assert "три дня" in answer(client, "Сколько занимает доставка по городу?")
            assert "24 месяца" in answer(client, "Сколько действует гарантия?")


@pytest.fixture
def empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty installation in this process."""
    monkeypatch.setenv("OPORA_DATA_DIR", str(tmp_path / "data"))
    get_settings.cache_clear()
    yield tmp_path
    index.close_all()
    locks.close_all()
    database.close_all()
    get_settings.cache_clear()


def test_another_folder_keeps_the_documents_of_the_one_before(empty: Path) -> None:
    first, second = empty / "first", empty / "second"
    for folder, content in ((first, DELIVERY), (second, WARRANTY)):
        folder.mkdir()
        (folder / f"{folder.name}.md").write_text(content, encoding="utf-8")
    first_start.prepare(first_tenant(""), get_settings())
    for folder in (first, second):
        assert first_start.watch("default", folder, get_settings()) == folder
        first_start.ingest_changes("default", folder)
    with acting_as(Tenant("default", "anna")):
        assert catalogue.page(catalogue.EVERYTHING, limit=9).total == 2
        assert set(watched.all()) == {"second.md"}
    assert first_start.watch("default", None, get_settings()) == second


def test_documents_in_the_folder_of_the_installation_are_not_hidden(empty: Path) -> None:
    own = first_start.watch("default", None, get_settings())
    (own / "a.md").write_text(DELIVERY, encoding="utf-8")
    (empty / "other").mkdir()
    refused = CliRunner().invoke(cli.app, ["up", str(empty / "other"), "--port", str(free_port())])
    assert refused.exit_code == 2
    assert str(own) in refused.stderr
    assert (own / "a.md").exists()


def test_one_tenant_is_taken_and_of_several_one_is_named(empty: Path) -> None:
    Registry().add("acme")
    assert first_tenant("") == "acme"
    Registry().add("globex")
    refused = CliRunner().invoke(cli.app, ["up", "--port", str(free_port())])
    assert "acme, globex" in refused.stderr
    assert first_tenant("globex") == "globex"


def test_a_second_preparation_creates_nothing(empty: Path) -> None:
    first, second = (first_start.prepare(first_tenant(""), get_settings()) for _ in range(2))
    assert (first.site, bool(first.token), bool(first.invitation)) == (second.site, True, True)
    assert (second.token, bool(second.invitation)) == ("", True)
    with acting_as(Tenant("default", "anna")):
        operators.add("anna", PASSWORD, role="admin")
    assert first_start.prepare("default", get_settings()).invitation == ""
