"""Files of visitors that take long to read."""

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from contextvars import copy_context
from io import RawIOBase
from pathlib import Path
from threading import Event
from time import perf_counter
from typing import Any, BinaryIO, cast

import fsspec
import httpx
import pytest
from fsspec import AbstractFileSystem

from components.ingest.sandbox import Answer, Sandbox
from evaluation.benchmarks.attacks import silent_server, slow_pdf
from settings import Settings
from tenants.accounts.registry import Registry
from tenants.core.context import Tenant, acting_as
from tenants.core.errors import TryAgain
from tenants.storage import files as stored_files
from tests.attack.attacking import ATTACKER, VICTIM, add_site, client_of, is_answered, visitor_of
from tests.service.serving import Server, environment, free_port, in_force, problem, serving

FILES = 12
MOST_SECONDS = 8.0
"""For another tenant's file meanwhile: two files of the attacker's, and what a busy machine needs. It was a minute."""


SLOW_WORKER = """
import sys, time
from struct import Struct
size, to, back = Struct("!Q"), sys.stdin.buffer, sys.stdout.buffer
while head := to.read(size.size):
    to.read(size.unpack(head)[0])
    to.read(size.unpack(to.read(size.size))[0])
    time.sleep(0.1)
    answer = b'{"result": "read"}'
    back.write(size.pack(len(answer)) + answer)
    back.flush()
"""


def test_files_that_take_long_hold_up_nobody_elses(server: Server, installation: Settings) -> None:
    add_site(installation, ATTACKER, "site_slow")
    add_site(installation, VICTIM, "site_quick")
    with visitor_of(server, "site_slow") as attacker, visitor_of(server, "site_quick") as victim:
        chats = [f"/chats/{attacker.post('/chats', json={}).json()['chat_id']}/files" for _ in range(4)]
        own = f"/chats/{victim.post('/chats', json={}).json()['chat_id']}/files"
        assert victim.post(own, files={"file": ("a.txt", b"warm")}).is_success
        with ThreadPoolExecutor(FILES) as pool:
            sent = [
                pool.submit(attacker.post, chats[number % 4], files={"file": ("a.pdf", slow_pdf())})
                for number in range(FILES)
            ]
            while not any(one.running() for one in sent):
                pass
            started_at = perf_counter()
            assert victim.post(own, files={"file": ("b.txt", b"a few words")}).is_success
            assert perf_counter() - started_at < MOST_SECONDS
            codes = [one.result().status_code for one in sent]
        assert set(codes) == {422, 503}


def test_slow_files_from_two_addresses_keep_out_no_other_customer(server: Server, installation: Settings) -> None:
    add_site(installation, VICTIM, "site_crowded")

    def own_files(visitor: httpx.Client) -> str:
        return f"/chats/{visitor.post('/chats', json={}).raise_for_status().json()['chat_id']}/files"

    with ExitStack() as visitors, ThreadPoolExecutor(8) as pool:
        sent = list[Future[httpx.Response]]()
        for number in range(4):
            hostile = visitors.enter_context(visitor_of(server, "site_crowded", f"127.0.1.{1 + number % 2}"))
            path = own_files(hostile)
            sent += [pool.submit(hostile.post, path, files={"file": ("a.pdf", slow_pdf())}) for _ in range(2)]
        customer = visitors.enter_context(visitor_of(server, "site_crowded", "127.0.1.9"))
        path = own_files(customer)
        assert customer.post(path, files={"file": ("b.txt", b"a few words")}).status_code == 201
        assert not sent[-1].done(), "an address takes turns with the others"


def test_a_store_that_does_not_answer_holds_up_nobody(tmp_path: Path) -> None:
    """Six files of visitors held the threads of all requests, until the store answered again."""
    port = free_port()
    settings = Settings(data_dir=tmp_path, files_url=f"webhdfs://127.0.0.1:{port}/opora")
    Registry(settings).add(ATTACKER)
    Registry(settings).add(VICTIM)
    add_site(settings, ATTACKER, "site_stored")
    with (
        serving(environment(settings)) as server,
        client_of(server, settings, VICTIM) as victim,
        visitor_of(server, "site_stored") as visitor,
        ThreadPoolExecutor(2 * FILES) as pool,
        silent_server(port),
    ):
        chat = f"/chats/{visitor.post('/chats', json={}).json()['chat_id']}/files"
        sent = list[Future[httpx.Response]]()
        while sum(not one.done() for one in sent) < 8:  # the others came while two were scanned
            assert len(sent) < 18
            sent.append(pool.submit(visitor.post, chat, files={"file": ("a.txt", b"text")}))
            Event().wait(0.3)
        assert is_answered(victim)
        assert victim.get("/readyz").is_success


@pytest.mark.parametrize("size", [100, 20_000_000], ids=["small", "in parts"])
def test_a_write_to_a_silent_s3_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    """Such a write, and its thread, waited as long as the connection was open."""
    pytest.importorskip("s3fs")
    monkeypatch.setattr(stored_files, "_S3_SECONDS", 0.5)
    for name, value in {"ACCESS_KEY_ID": "key", "SECRET_ACCESS_KEY": "secret", "DEFAULT_REGION": "here"}.items():
        monkeypatch.setenv(f"AWS_{name}", value)
    with silent_server() as silent, acting_as(Tenant(ATTACKER, "")), ThreadPoolExecutor(1) as pool:
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{silent.port}")
        with in_force(Settings(data_dir=tmp_path, files_url=f"s3://bucket-{size}/opora")):
            stored = stored_files.path("chat-files", "file")
            written = pool.submit(copy_context().run, stored_files.write, stored, bytes(size))
            try:
                with pytest.raises(TryAgain):
                    written.result(timeout=30)
            finally:
                silent.hang_up()


def test_files_of_a_neighbour_come_next() -> None:
    """Two tenants with many slow files had both places for as long as they had files."""
    sandbox = Sandbox(workers=2)
    sandbox.program = SLOW_WORKER
    read: list[str] = []

    def import_files(tenant_id: str, count: int) -> None:
        with acting_as(Tenant(tenant_id, "anna")):
            for _ in range(count):
                sandbox.call("read", "a.docx", b"", Answer[str])
                read.append(tenant_id)

    with ThreadPoolExecutor(3) as pool:
        hostile = [pool.submit(import_files, tenant_id, FILES) for tenant_id in ("mallory", "trudy")]
        while len(read) < 2:
            Event().wait(0.01)
        pool.submit(import_files, "acme", 1).result()
        assert len(read) < FILES
        for one in hostile:
            one.result()
    sandbox.close()


def test_a_file_name_in_no_character_set_is_the_callers_mistake(server: Server, installation: Settings) -> None:
    add_site(installation, VICTIM, "site_charset")
    with visitor_of(server, "site_charset") as visitor:
        chat_id = visitor.post("/chats", json={}).json()["chat_id"]
        part = '--b\r\nContent-Disposition: form-data; name="file"; filename="a.txt"\r\n\r\nText.\r\n--b--\r\n'
        media = {"Content-Type": "multipart/form-data; boundary=b; charset=undefined"}
        problem(visitor.post(f"/chats/{chat_id}/files", content=part, headers=media), 400, "malformed_body")


class EndlessFile(RawIOBase):
    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:  # noqa: ANN401 - as the standard library declares it
        return len(buffer)


class EndlessStore(AbstractFileSystem):  # type: ignore[misc] # fsspec has no types
    """A store whose files have no end."""

    protocol = "endless"
    blocksize = 65_536

    def _open(self, path: str, mode: str = "rb", **_: object) -> BinaryIO:
        return cast("BinaryIO", EndlessFile())

    def ls(self, path: str, detail: bool = True, **_: object) -> list[Any]:
        found = {"name": path.rstrip("/"), "size": None, "type": "file"}
        return [found] if path.endswith("a.txt") else [{**found, "name": f"{path.rstrip('/')}/a.txt"}]

    def cat_file(self, path: str, start: int | None = None, end: int | None = None, **_: object) -> bytes:
        raise MemoryError


@pytest.fixture
def endless(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    fsspec.register_implementation("endless", EndlessStore, clobber=True)
    monkeypatch.setattr(stored_files, "_READ_SECONDS", 5.0)
    with (
        in_force(Settings(data_dir=tmp_path, files_url="endless://store/opora", max_files_bytes=1_000_000)),
        acting_as(Tenant(VICTIM, "anna")),
    ):
        yield


@pytest.mark.usefixtures("endless")
def test_a_store_that_sends_without_end_is_not_read_whole(tmp_path: Path) -> None:
    """Its files filled the memory of the process, or the disk."""
    with pytest.raises(TryAgain):
        stored_files.read(stored_files.path("chat-files", "a.txt"), 1_000_000)
    with pytest.raises(TryAgain):
        stored_files.fetch(stored_files.path("uploads", "job"), tmp_path / "job")
    (copied,) = (path for path in (tmp_path / "job").rglob("*") if path.is_file())
    assert copied.stat().st_size < 2_000_000
