"""Servers of others, such as tools, webhooks, identity providers and mail: they hold threads of all tenants."""

import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from threading import Event
from time import perf_counter

import pytest

from components.ingest.fetch import Fetcher
from pipelines import mailer
from pipelines.ask.chats import mailbox
from pipelines.ask.chats.mailbox import Mailbox
from pipelines.mailer import Mail
from settings import get_settings
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
def configured(protocol: str, port: int) -> Iterator[None]:
    """Make a server on this machine the installation's mail server."""
    values = {"HOST": "127.0.0.1", "PORT": str(port), "TLS": "none", "USER": "help", "FROM": "help@shop.example"}
    with pytest.MonkeyPatch.context() as patch:
        for name, value in values.items():
            patch.setenv(f"OPORA_{protocol}_{name}", value)
        get_settings.cache_clear()
        yield
    get_settings.cache_clear()


@contextmanager
def flooding(head: bytes, flood: bytes, *, pause: float = 0.0) -> Iterator[int]:
    """Run a server that sends a head, then repeats something for ever; yield its port."""
    over = Event()

    def answer() -> None:
        with suppress(OSError), listening.accept()[0] as line:
            line.sendall(head)
            while not over.wait(pause):
                line.sendall(flood)

    with socket.create_server(("127.0.0.1", 0)) as listening, ThreadPoolExecutor(1) as pool:
        pool.submit(answer)
        try:
            yield listening.getsockname()[1]
        finally:
            over.set()


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
    with flooding(head, flood * 1_000) as port, pytest.raises(Invalid, match="url_unreachable"):
        fetcher.post(f"http://127.0.0.1:{port}/", b"{}", {})


@pytest.mark.parametrize(
    ("flood", "pause"), [(b"220-" + b"a" * 60 + b"\r\n", 0.0), (b"2", 0.05)], ids=["lines", "drip"]
)
def test_a_mail_server_is_not_read_for_ever(monkeypatch: pytest.MonkeyPatch, flood: bytes, pause: float) -> None:
    """Lines without end filled the memory by 20 MB a second; e-mails waited as long as the server liked."""
    monkeypatch.setattr(mailer, "SESSION_SECONDS", 2.0 if pause else 600.0)
    mail = Mail("anna@shop.example", "Shop", "Answer", "Hello.", "<p>Hello.</p>")
    unreachable = pytest.raises(mailer.MailFailed, match="unreachable")
    with flooding(b"", flood, pause=pause) as port, configured("SMTP", port), unreachable:
        mailer.send(mail)


@pytest.mark.parametrize(
    ("head", "flood", "pause"),
    [
        (b"* OK\r\n", b"* 1 EXISTS\r\n" * 1_000, 0.0),
        (b"* OK [CAPABILITY IMAP4rev1] {9999999999}\r\n", b"a" * 60_000, 0.0),
        (b"* ", b"O", 0.05),
    ],
    ids=["lines", "literal", "drip"],
)
def test_a_mailbox_is_not_read_for_ever(
    monkeypatch: pytest.MonkeyPatch, head: bytes, flood: bytes, pause: float
) -> None:
    """The thread for mailboxes read a greeting without end, also while the process stopped."""
    monkeypatch.setattr(mailer, "SESSION_SECONDS", 2.0 if pause else 600.0)
    monkeypatch.setattr(mailbox._Imap, "most_bytes", 1_000_000)
    too_long = pytest.raises(OSError, match="too long")
    with flooding(head, flood, pause=pause) as port, configured("IMAP", port), too_long:
        Mailbox().look()
