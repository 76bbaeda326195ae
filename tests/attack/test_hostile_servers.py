"""Servers that a tenant names, such as of tools, webhooks and identity providers, which hold threads of all tenants."""

import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from time import perf_counter

import pytest

from components.ingest.fetch import Fetcher
from tenants.core.errors import Invalid, TooLarge

HANDSHAKE_SECONDS = 6.0
"""Less than the ten seconds that a handshake alone may take."""


def test_the_time_limit_includes_the_handshake() -> None:
    fetcher = Fetcher(permitted=lambda _: True, seconds=2.0)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        started_at = perf_counter()
        with pytest.raises(TooLarge, match="page_too_slow"):
            fetcher.fetch(f"https://127.0.0.1:{silent.getsockname()[1]}/")
        assert perf_counter() - started_at < HANDSHAKE_SECONDS


@contextmanager
def flooding(head: bytes, flood: bytes) -> Iterator[str]:
    """Run a server that answers with a head and repeats something for ever."""

    def answer() -> None:
        with suppress(OSError), listening.accept()[0] as line:
            line.recv(65_536)
            line.sendall(head)
            while True:
                line.sendall(flood * 1_000)

    with socket.create_server(("127.0.0.1", 0)) as listening, ThreadPoolExecutor(1) as pool:
        pool.submit(answer)
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/"


@pytest.mark.parametrize(
    ("head", "flood"),
    [
        (b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n", b"a: b\r\n"),
    ],
    ids=["interim responses", "trailers"],
)
def test_a_response_without_end_is_not_parsed(head: bytes, flood: bytes) -> None:
    """It took a processor until the time limit, and a tenant has four webhooks at work at once."""
    fetcher = Fetcher(permitted=lambda _: True, seconds=3.0, largest=64_000)
    with flooding(head, flood) as url, pytest.raises(Invalid, match="url_unreachable"):
        fetcher.post(url, b"{}", {})
