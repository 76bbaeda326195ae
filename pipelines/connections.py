"""Limits of HTTP connections before authentication.

The threat: uvicorn's usual parser collects a request's head without a bound, and waits for ever for what a client sends
or takes byte by byte, so that a few hundred silent connections use up all memory or every file descriptor. Here h11
bounds the head, a request must arrive at a minimum rate, a reply must be taken, and no address has all connections.

A head of thousands of headers, or a body in chunks of one byte, would be parsed for a second on the event loop. So
both are counted before h11 reads them.
"""

import asyncio
import logging
import resource
from collections import Counter
from collections.abc import Sequence
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from typing import ClassVar

import h11
from cachetools import LRUCache
from h11._receivebuffer import ReceiveBuffer
from starlette.requests import Request
from uvicorn.protocols.http.h11_impl import H11Protocol

from pipelines import problems
from settings import Settings, get_settings
from tenants.core.fair_semaphore import may_take_more

HEAD_BYTES = 32_768
"""Largest head of a request: as much as nginx accepts by default."""

MOST_HEADERS = 100
"""Headers of a request, and of its trailer. Browsers send about 20, and proxies add some."""

_FREE_CHUNKS, _BYTES_A_CHUNK = 100, 500
"""Chunks of any size in a body, and the least average size of further ones."""

GRACE_SECONDS = 20.0
"""Time for a request to begin, and for a reply to be taken."""

SILENCE_SECONDS = 60.0
"""Longest silence within a request that has begun to arrive well, as of a phone in a tunnel."""

LEAST_RATE = 500
"""Minimum bytes per second of a request, as in Apache's `mod_reqtimeout`. Faster ones earn no more silence."""

NEW_PER_SECOND, NEW_AT_ONCE = 50.0, 500.0
"""New connections of an address per second, and how many of them at once. A browser keeps its own, up to six."""

_LOOK_SECONDS = 5.0
_GARBAGE = "Invalid HTTP request received."
_SELDOM_SECONDS = 10.0
_MOST_FILES = 65_536
_ADDRESSES = 10_000
"""Addresses whose latest connections are counted."""
_RECEIVING = (h11.IDLE, h11.SEND_BODY)


class BoundedConnection(H11Protocol):
    """An HTTP connection. `per_address` and `at_most` limit the number of connections; 0 means no limit.

    New connections of an address are limited, too: each may send a request without waiting for the answer.

    A network of addresses has at most as many as are left free: a few networks that only keep theirs open leave room
    for all others. Addresses in `proxies` serve many clients: `at_most` alone limits them.
    """

    per_address: ClassVar[int] = 0
    proxies: ClassVar[Sequence[IPv4Network | IPv6Network]] = ()
    at_most: ClassVar[int] = 0
    _open: ClassVar[Counter[str]] = Counter()
    _open_of_networks: ClassVar[Counter[str]] = Counter()
    _paid_until: ClassVar[LRUCache[str, float]] = LRUCache(_ADDRESSES)

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin, or close at once when there are too many."""
        super().connection_made(transport)
        # h11 0.16 limits a head in bytes only (its issue 155), and offers no hook before it parses one.
        self.conn._receive_buffer = _BoundedBuffer()
        self._address = self.client[0] if self.client else ""
        self._counted_as = counted_as(self._address)
        self._network = network_of(self._counted_as)
        free = self.at_most - self._open.total()
        crowded = self.at_most > 0 and not may_take_more(self._open_of_networks[self._network], free, 1)
        self._open[self._counted_as] += 1
        self._open_of_networks[self._network] += 1
        self._unsent_since: float | None = None
        self._due = self.loop.time() + GRACE_SECONDS
        self._look = self.loop.call_later(_LOOK_SECONDS, self._look_after)
        too_many = crowded or 0 < self.per_address < self._open[self._counted_as] or self._comes_too_fast()
        if free <= 0 < self.at_most or (too_many and not self._is_proxy()):
            transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self._look.cancel()
        for counts, name in ((self._open, self._counted_as), (self._open_of_networks, self._network)):
            counts[name] -= 1
            if not counts[name]:
                del counts[name]
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self.timeout_keep_alive_task is not None:
            self._expect_request()
        self._due = min(self._due + len(data) / LEAST_RATE, self.loop.time() + SILENCE_SECONDS)
        super().data_received(data)

    def send_400_response(self, msg: str) -> None:
        """Refuse an invalid request, or only close the connection if an answer to it has begun already."""
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            super().send_400_response(msg)
        else:
            self.transport.close()

    def pause_writing(self) -> None:
        self._unsent_since = self.loop.time()
        super().pause_writing()

    def resume_writing(self) -> None:
        self._unsent_since = None
        super().resume_writing()

    def _comes_too_fast(self) -> bool:
        if not self.per_address:
            return False
        now = self.loop.time()
        paid_until = max(now, self._paid_until.get(self._counted_as, 0.0)) + 1 / NEW_PER_SECOND
        if paid_until - now > NEW_AT_ONCE / NEW_PER_SECOND:
            return True
        self._paid_until[self._counted_as] = paid_until
        return False

    def _is_proxy(self) -> bool:
        return any(ip_address(self._address) in network for network in self.proxies)

    def _expect_request(self) -> None:
        self._due = self.loop.time() + GRACE_SECONDS

    def _look_after(self) -> None:
        if self._is_late():
            self.transport.abort()
            return
        self._look = self.loop.call_later(_LOOK_SECONDS, self._look_after)

    def _is_late(self) -> bool:
        now = self.loop.time()
        if self._unsent_since is not None and now - self._unsent_since > GRACE_SECONDS:
            return True
        # Between two requests uvicorn's own timer runs; a body that waits for us to read it is not late.
        if self.timeout_keep_alive_task is not None or self.flow.read_paused:
            self._due = now + GRACE_SECONDS if self.flow.read_paused else self._due
            return False
        return self.conn.their_state in _RECEIVING and now > self._due


class _BoundedBuffer(ReceiveBuffer):
    """Received data that h11 has not read yet. Raises when a head is too large, or a body has too many chunks."""

    def __init__(self) -> None:
        super().__init__()
        self._received = self._chunks = 0

    def __iadd__(self, data: bytes | bytearray) -> "_BoundedBuffer":
        self._received += len(data)
        super().__iadd__(data)
        return self

    def maybe_extract_lines(self) -> list[bytearray] | None:
        """Extract the lines of a head or a trailer once it is complete."""
        lines = super().maybe_extract_lines()
        if lines is not None:
            # h11 checks the size of a head only if it has not arrived at once.
            if len(lines) > MOST_HEADERS + 1 or sum(map(len, lines)) > HEAD_BYTES:
                raise h11.LocalProtocolError("the head is too large")
            self._received, self._chunks = len(self), 0
        return lines

    def maybe_extract_next_line(self) -> bytearray | None:
        """Extract the first line of a chunk once it is complete."""
        line = super().maybe_extract_next_line()
        if line is not None:
            self._chunks += 1
            if self._chunks > _FREE_CHUNKS + self._received // _BYTES_A_CHUNK:
                raise h11.LocalProtocolError("too many chunks")
        return line


def bounded(settings: Settings, most: int) -> type[BoundedConnection]:
    """Return the connections of a service.

    :param most: connections at once; 0: no limit.
    """

    class Bounded(BoundedConnection):
        per_address = settings.connections_per_address
        proxies = tuple(ip_network(one) for one in filter(None, settings.trusted_proxies.split(",")))
        at_most = most
        _open: ClassVar[Counter[str]] = Counter()
        _open_of_networks: ClassVar[Counter[str]] = Counter()
        _paid_until: ClassVar[LRUCache[str, float]] = LRUCache(_ADDRESSES)

    return Bounded


class SeldomFilter(logging.Filter):
    """Limits uvicorn's message about invalid requests to one in ten seconds, with the number of suppressed ones.

    A flood of such requests must not fill the disk.
    """

    def __init__(self) -> None:
        super().__init__()
        self._next = 0.0
        self._left_out = 0

    def filter(self, record: logging.LogRecord) -> bool:
        if record.msg != _GARBAGE:
            return True
        if record.created < self._next:
            self._left_out += 1
            return False
        self._next = record.created + _SELDOM_SECONDS
        if self._left_out:
            record.msg = f"{_GARBAGE} {self._left_out} more since the last line."
            self._left_out = 0
        return True


def address_of(request: Request) -> str:
    return request.client.host if request.client else ""


def limited_as(request: Request) -> str:
    """Return the name under which limits count the client of a request."""
    return counted_as(address_of(request))


def counted_as(address: str) -> str:
    """Return the name under which limits count an address: the /64 network of an IPv6 address.

    One machine may use all addresses of such a network (RFC 6177).
    """
    try:
        known = ip_address(address)
    except ValueError:
        return address
    if known.version == 4:
        return address
    return str(known.ipv4_mapped or IPv6Network((int(known) >> 64 << 64, 64)))


def network_of(address: str) -> str:
    """Return the network whose addresses one sender may easily have: /24 of IPv4, /48 of IPv6 (RFC 6177)."""
    try:
        known = ip_address(address.partition("/")[0])
    except ValueError:
        return address
    return str(ip_network((known, 24 if known.version == 4 else 48), strict=False))


def public_url() -> str:
    """Return the address of the service as the browser of this request knows it, without a slash at its end."""
    return (get_settings().public_url or str(Request(problems.caller.get().scope).base_url)).rstrip("/")


def raise_file_limit() -> int:
    """Let this process open as many files as its hard limit permits. Returns half of them: as many connections."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _MOST_FILES if hard == resource.RLIM_INFINITY else min(hard, _MOST_FILES)
    if soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    return max(soft, wanted) // 2
