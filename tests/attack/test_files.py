"""Files of visitors that take long to read."""

import zlib
from concurrent.futures import ThreadPoolExecutor
from time import perf_counter

from evaluation.benchmarks.bombs import pdf
from settings import Settings
from tests.attack.attacking import ATTACKER, VICTIM
from tests.attack.visiting import add_site, visitor_of
from tests.service.serving import Server

FILES = 12
MOST_SECONDS = 8.0
"""For another tenant's file meanwhile: two files of the attacker's, and what a busy machine needs. It was a minute."""


def slow_pdf() -> bytes:
    """Build a PDF of fifteen kilobytes with 200 pages of the same 20,000 words: it takes 15 s to read."""
    words = zlib.compress(b"BT /F 12 Tf 72 720 Td " + b"(aaaa bbbb cccc) Tj 1 0 Td " * 20_000 + b"ET")
    stream = b"<</Filter/FlateDecode/Length %d>>stream\n%b\nendstream" % (len(words), words)
    font = b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>"
    kids = b" ".join(b"%d 0 R" % (at + 5) for at in range(200))
    tree = b"<</Type/Pages/Count 200/Kids[%b]/MediaBox[0 0 595 842]/Resources<</Font<</F 3 0 R>>>>>>" % kids
    page = b"<</Type/Page/Parent 2 0 R/Contents 4 0 R>>"
    return pdf([b"<</Type/Catalog/Pages 2 0 R>>", tree, font, stream, *[page] * 200])


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
