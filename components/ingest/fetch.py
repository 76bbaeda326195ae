"""Fetches web pages without ever connecting to an address inside the service's own network.

The threat: a caller who may add a page may name `http://169.254.169.254/`, a host that resolves to 127.0.0.1, or a page
that redirects there, and read the response as an article. So a name is resolved once, every address it has must be a
public one, the connection goes to the address that was checked and not to whatever the name means a moment later, and
each redirect is checked from the start. Only http and https, no credentials, and bounds on size, time and redirects.
"""

import http.client
import io
import socket
import ssl
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from ipaddress import IPv6Address, ip_address, ip_network
from math import inf
from threading import Timer
from time import monotonic
from types import MappingProxyType
from typing import Any, cast
from urllib.parse import SplitResult, quote, urljoin, urlsplit, urlunsplit

from components.turn import Frozen
from settings import get_settings
from tenants.core.errors import Invalid, TooLarge

AGENT = "Opora"
_MAX_URL_LENGTH = 2_000
_MAX_REDIRECTS = 5
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_CONNECT_SECONDS = 10.0
_CHUNK_BYTES = 65_536
_HEAD_BYTES = 200_000
"""Bytes before the body of a response, interim responses included; also of everything beside the content in a body."""
_PORTS = {"http": 80, "https": 443}
_UNICAST = ip_network("2000::/3")
# Public by the book, yet gateways to other address spaces, set apart for protocols, or Azure's to its own machines.
_SPECIAL = tuple(
    map(ip_network, ("168.63.129.16", "192.0.0.0/24", "192.88.99.0/24", "2001::/23", "2002::/16", "3fff::/20"))
)


@dataclass(frozen=True, slots=True)
class Response(Frozen):
    """The response of a server.

    :param url: the final address, after redirects.
    :param kind: its media type in lower case, without parameters; empty when the server names none.
    """

    url: str
    status: int
    kind: str
    data: bytes


def is_public(address: str) -> bool:
    """Return whether an IP address is public: not private, loopback, link-local, multicast, mapped or special."""
    ip = ip_address(address.partition("%")[0])
    if isinstance(ip, IPv6Address) and ip not in _UNICAST:
        return False
    special = any(ip.version == network.version and ip in network for network in _SPECIAL)
    return ip.is_global and not ip.is_multicast and not ip.is_reserved and not special


def is_permitted(address: str) -> bool:
    """Return whether a tool or a webhook may be at this address: a public one, or one inside a network named in the
    settings.
    """
    networks = filter(None, get_settings().tool_networks.split(","))
    ip = ip_address(address.partition("%")[0])
    return is_public(address) or any(ip in ip_network(network, strict=False) for network in networks)


def canonical(url: str) -> str:
    """Return the canonical form of an address: its host in ASCII and lower case, no default port, no fragment.

    :raises Invalid: `url_invalid`: not http or https, no host, credentials, or characters that readers disagree about.
    """
    parts = _split(url)
    host = _host(parts)
    port = "" if parts.port in (None, _PORTS[parts.scheme]) else f":{parts.port}"
    netloc_host = f"[{host}]" if ":" in host else host
    path = quote(parts.path or "/", safe="/%:@!$&'()*+,;=~-._")
    return urlunsplit((parts.scheme, netloc_host + port, path, quote(parts.query, safe="/%:@!$&'()*+,;=~-._?"), ""))


def same_site(url: str, other_url: str) -> bool:
    """Return whether two canonical addresses are of one host; `www.` and a step up to https make no difference."""
    first, second = urlsplit(url), urlsplit(other_url)
    if (first.hostname or "").removeprefix("www.") != (second.hostname or "").removeprefix("www."):
        return False
    return first.port == second.port


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetcher:
    """Fetches pages.

    :param permitted: which IP addresses may be connected to. Anything but public addresses is for tests only.
    :param seconds: for one page, from the connection to the last byte.
    :param largest: bytes of one page, unpacked.
    """

    permitted: Callable[[str], bool] = is_public
    seconds: float = 20.0
    largest: int = 10_000_000

    def fetch(self, url: str, *, site: str = "") -> Response:
        """Return a page, whatever its status.

        :param site: a canonical address; redirects that lead to another host are refused.
        :raises CallerError: `url_invalid`, `url_forbidden`, `url_unreachable`, `redirects_too_many`,
            `redirect_elsewhere`, `page_too_large`, `page_too_slow`.
        """
        at = canonical(url)
        for _ in range(_MAX_REDIRECTS + 1):
            if site and not same_site(site, at):
                raise Invalid("redirect_elsewhere", url=at)
            reply, target = self._once(at)
            if target is None:
                return reply
            at = canonical(urljoin(at, target))
        raise Invalid("redirects_too_many", url=url)

    def post(self, url: str, body: bytes, headers: Mapping[str, str]) -> Response:
        """Send a POST request and return the response. Redirects are not followed, because the headers are for this
        server only.

        :raises CallerError: as `fetch`.
        """
        reply, _ = self._once(canonical(url), body, headers)
        return reply

    def _once(
        self, url: str, body: bytes | None = None, headers: Mapping[str, str] = MappingProxyType({})
    ) -> tuple[Response, str | None]:
        parts = urlsplit(url)
        with self._connected(url, parts) as connection:
            try:
                address = urlunsplit(("", "", parts.path, parts.query, ""))
                request_headers = {"User-Agent": AGENT, "Accept-Encoding": "identity", **headers}
                connection.request("GET" if body is None else "POST", address, body, request_headers)
                with connection.getresponse() as answer:
                    cast("_Answer", answer).source.left += self.largest + self.largest // 10
                    return self._read(answer, url)
            except (OSError, http.client.HTTPException, ValueError) as broken:
                raise Invalid("url_unreachable", url=url) from broken

    def _read(self, answer: http.client.HTTPResponse, url: str) -> tuple[Response, str | None]:
        if answer.status in _REDIRECTS and (target := answer.getheader("Location")):
            return Response(url, answer.status, "", b""), target
        kind = (answer.getheader("Content-Type") or "").partition(";")[0].strip().lower()
        packed = (answer.getheader("Content-Encoding") or "").strip().lower() in ("gzip", "x-gzip")
        return Response(url, answer.status, kind, self._body(answer, url, packed=packed)), None

    def _body(self, answer: http.client.HTTPResponse, url: str, *, packed: bool) -> bytes:
        data = bytearray()
        while piece := answer.read(_CHUNK_BYTES):
            data += piece
            if len(data) > self.largest:
                raise TooLarge("page_too_large", url=url, limit=self.largest)
        if answer.length:
            raise Invalid("url_unreachable", url=url)
        return self.unpacked(bytes(data), url) if packed else bytes(data)

    def unpacked(self, data: bytes, url: str) -> bytes:
        """Return the decompressed gzip data. Raises `page_too_large` before the limit is exceeded."""
        with Invalid("url_unreachable", url=url).instead_of(zlib.error):
            unpacked = zlib.decompressobj(31).decompress(data, self.largest + 1)
        if len(unpacked) > self.largest:
            raise TooLarge("page_too_large", url=url, limit=self.largest)
        return unpacked

    @contextmanager
    def _connected(self, url: str, parts: SplitResult) -> Iterator[http.client.HTTPConnection]:
        connection = _Pinned(parts, self._address(url, parts))
        timer = Timer(self.seconds, connection.cut)
        timer.daemon = True
        timer.start()
        try:
            yield connection
        except Invalid:
            if not connection.was_cut:
                raise
        finally:
            timer.cancel()
            connection.close()
        # A truncated page may look complete.
        if connection.was_cut:
            raise TooLarge("page_too_slow", url=url, seconds=round(self.seconds))

    def _address(self, url: str, parts: SplitResult) -> str:
        """Return an address of the host, once all of its addresses were found to be permitted."""
        with Invalid("url_unreachable", url=url).instead_of(OSError, UnicodeError):
            resolved = socket.getaddrinfo(
                parts.hostname, parts.port or _PORTS[parts.scheme], type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP
            )
        addresses = [str(entry[4][0]) for entry in resolved]
        if not addresses or not all(self.permitted(address) for address in addresses):
            raise Invalid("url_forbidden", url=url)
        return addresses[0]


class BoundedSource(io.RawIOBase):
    """The bytes of a connection, up to a number and a moment.

    Threat: clients of the standard library skip interim responses and trailers, and collect lines, without end. That
    takes a processor from the questions of all tenants, memory, or a thread.

    :param left: bytes that may still come.
    :param until: moment of the monotonic clock.
    """

    def __init__(self, raw: io.RawIOBase, left: int, until: float = inf) -> None:
        self._raw = raw
        self._until = until
        self.left = left

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:  # noqa: ANN401 - as the standard library declares it
        count: int | None = self._raw.readinto(buffer)
        self.left -= count or 0
        if self.left < 0 or monotonic() > self._until:
            raise OSError("the response is too long")
        return count

    def close(self) -> None:
        self._raw.close()
        super().close()


class _Answer(http.client.HTTPResponse):
    """A response of bounded length."""

    def __init__(
        self, sock: socket.socket, debuglevel: int = 0, method: str | None = None, url: str | None = None
    ) -> None:
        super().__init__(sock, debuglevel, method, url)
        self.source = BoundedSource(self.fp.detach(), _HEAD_BYTES)
        self.fp = io.BufferedReader(self.source)


class _Pinned(http.client.HTTPConnection):
    """A connection to an address that was checked, under the host's name."""

    response_class = _Answer

    def __init__(self, parts: SplitResult, address: str) -> None:
        super().__init__(parts.hostname or "", parts.port or _PORTS[parts.scheme], timeout=_CONNECT_SECONDS)
        self.default_port = _PORTS[parts.scheme]
        self.was_cut = False
        self._secure = parts.scheme == "https"
        self._address = address
        self._line: socket.socket | None = None

    def connect(self) -> None:
        family = socket.AF_INET6 if ":" in self._address else socket.AF_INET
        self.sock = self._line = socket.socket(family, socket.SOCK_STREAM)
        self._line.settimeout(_CONNECT_SECONDS)
        self._line.connect((self._address, self.port))
        if self._secure:
            context = ssl.create_default_context()
            # `cut` must reach the socket during the handshake, too.
            secured = context.wrap_socket(self._line, server_hostname=self.host, do_handshake_on_connect=False)
            self.sock = self._line = secured
            secured.do_handshake()
        if self.was_cut:
            raise TimeoutError

    def cut(self) -> None:
        """Close the connection in any state."""
        self.was_cut = True
        if self._line is not None:
            with suppress(OSError):
                self._line.shutdown(socket.SHUT_RDWR)


def _split(url: str) -> SplitResult:
    # Readers disagree about backslashes, control characters and spaces, and every disagreement is a way around a check.
    if len(url) > _MAX_URL_LENGTH or not url.isprintable() or any(char.isspace() or char == "\\" for char in url):
        raise Invalid("url_invalid", url=url[:_MAX_URL_LENGTH])
    with Invalid("url_invalid", url=url).instead_of(ValueError):
        parts = urlsplit(url)
        usable = parts.scheme in _PORTS and parts.hostname and "@" not in parts.netloc and parts.port != 0
    if not usable:
        raise Invalid("url_invalid", url=url)
    return parts


def _host(parts: SplitResult) -> str:
    host = (parts.hostname or "").rstrip(".")
    with Invalid("url_invalid", url=parts.geturl()).instead_of(UnicodeError):
        return host.encode("idna").decode() if not host.isascii() else host
