"""Files of visitors that take long to read."""

from concurrent.futures import ThreadPoolExecutor
from threading import Event
from time import perf_counter

from components.ingest.sandbox import Answer, Sandbox
from evaluation.benchmarks.slow_file import slow_pdf
from settings import Settings
from tests.attack.attacking import ATTACKER, VICTIM
from tests.attack.visiting import add_site, visitor_of
from tests.service.serving import Server, problem

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


def test_files_of_a_neighbour_come_next() -> None:
    """Two tenants with many slow files had both places for as long as they had files."""
    sandbox = Sandbox(workers=2)
    sandbox.program = SLOW_WORKER
    read: list[str] = []

    def import_files(tenant_id: str, count: int) -> None:
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
