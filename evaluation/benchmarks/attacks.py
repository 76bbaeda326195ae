"""Attacks of a tenant on an installation, each as a context manager."""

import asyncio
import os
import random
import socket
import ssl
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, field
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread

import httpx

from pipelines import desk_gate
from tenants.chats import sites
from tenants.chats.sites import SiteConfig
from tenants.core.context import Tenant, acting_as
from tenants.desk import operators, sso_providers

ATTACKER = "mallory"
SITE = "site_of_mallory"
SHOP = "https://shop.example"
LOGIN, PASSWORD = "mallory-operator", "river of snow 42"
_SAME_ORIGIN = {"Sec-Fetch-Site": "same-origin"}
_ASKERS = 4
_SILENT = 300
_ENDLESS = 3
_STREAMS, _STREAMS_OF_A_VISITOR = 400, 10
_SIGN_INS, _SINGLE_SIGN_ONS, _TOOL_TESTS, _FILES, _TABS = 12, 24, 60, 12, 40
_BODY_BYTES = 48_000_000
_PAUSE_SECONDS = 0.25
"""Pause between two questions of an attacker: four of them ask 960 a minute, like sixteen visitors at their limit."""

_RELOAD_SECONDS, _SPREAD_SECONDS = 1.2, 0.6
"""Pause between two loads of a busy page of the desk, and its random part, as in `ui/src/desk/live.ts`."""

_CHANGE_SECONDS, _CHANGING = 0.5, 12
"""Pause between two messages, and the visitors who write them in turn."""

_TABS_ADDRESS = "127.0.1.100"

_SIGN_IN_SECONDS = 1.0
"""Between two passwords of a client: twelve of them try twice as many as once delayed questions by seconds."""

_TLS = ssl.create_default_context()
"""Shared by all clients: each would make its own, 50 ms of a processor, which attackers have on other machines."""

_PATIENCE_SECONDS = 2.0


def prepare(provider_port: int) -> None:
    """Give the attacker a site, an operator, and an identity provider at a local port that only an attack opens."""
    with acting_as(Tenant(ATTACKER, "admin")):
        sites.add(SITE, [SHOP], SiteConfig(), key=SITE)
        operators.add(LOGIN, PASSWORD, role="admin")
        issuer = {"issuer": f"http://127.0.0.1:{provider_port}", "client_id": "desk", "client_secret": "hush"}
        sso_providers.put(sso_providers.parsed({**issuer, "domains": ["shop.example"]}))


@dataclass(frozen=True, slots=True)
class Target:
    port: int
    headers: Mapping[str, str]
    provider_port: int

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def client(self) -> httpx.Client:
        return httpx.Client(base_url=self.url, headers=self.headers, timeout=120, verify=_TLS)

    def stranger(self, number: int = 0) -> httpx.Client:
        """Return a client without a token, from a separate address."""
        return client_from(self.url, f"127.0.{1 + number // 250}.{1 + number % 250}")

    @contextmanager
    def visitor(self, number: int) -> Iterator[httpx.Client]:
        """Yield a client of a new visitor of the attacker's site, from a separate address."""
        with self.stranger(number) as client:
            become_visitor(client, SITE)
            yield client


Attack = Callable[[Target], AbstractContextManager[None]]


def client_from(url: str, address: str) -> httpx.Client:
    transport = httpx.HTTPTransport(verify=_TLS, local_address=address, limits=httpx.Limits(max_connections=None))
    return httpx.Client(base_url=url, transport=transport, timeout=120)


def become_visitor(client: httpx.Client, site: str) -> None:
    session = client.post("/widget/sessions", json={"site": site}, headers={"Origin": SHOP}).raise_for_status()
    client.headers["Authorization"] = f"Bearer {session.json()['token']}"


@dataclass
class SilentServer:
    port: int
    accepted: list[socket.socket] = field(default_factory=list)

    def hang_up(self) -> None:
        while self.accepted:
            self.accepted.pop().close()


@contextmanager
def silent_server(port: int = 0) -> Iterator[SilentServer]:
    with closing(socket.create_server(("127.0.0.1", port), backlog=200)) as listening:
        server = SilentServer(listening.getsockname()[1])

        def accept() -> None:
            with suppress(OSError):
                while True:
                    server.accepted.append(listening.accept()[0])

        thread = Thread(target=accept, daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.hang_up()
            listening.shutdown(socket.SHUT_RDWR)
            thread.join()


@contextmanager
def _repeating(
    target: Target,
    act: Callable[[httpx.Client, int], object],
    clients: int = _ASKERS,
    pause: float = 0.0,
    client_of: Callable[[int], AbstractContextManager[httpx.Client]] | None = None,
) -> Iterator[None]:
    """Repeat an action with several clients; the responses are ignored.

    :raises Exception: a client could not begin, or failed other than by HTTP.
    """
    stop = Event()

    def work(first: int) -> None:
        with client_of(first) if client_of else target.client() as client:
            number = first
            while not stop.is_set():
                with suppress(httpx.HTTPError):
                    act(client, number)
                number += clients
                stop.wait(pause)

    with ThreadPoolExecutor(clients, "attack") as pool:
        working = [pool.submit(work, first) for first in range(clients)]
        try:
            yield
        finally:
            stop.set()
        for one in working:
            one.result()


@contextmanager
def _tool(target: Target, name: str, url: str, pattern: str) -> Iterator[None]:
    tool = {
        "name": name,
        "title": "Накладные",
        "description": "Где накладная с номером",
        "url": url,
        "parameters": {"properties": {"number": {"type": "string", "pattern": pattern}}, "required": ["number"]},
        "timeout_seconds": 20,
    }
    with target.client() as client:
        client.put("/tools", json=tool).raise_for_status()
        yield
        client.delete(f"/tools/{name}")


@contextmanager
def patterns(target: Target) -> Iterator[None]:
    """Attack with a tool's pattern that takes exponential time in a backtracking matcher."""

    def ask(client: httpx.Client, number: int) -> None:
        _ask(client, f"Где накладная {'а' * 800} {number}?")

    pattern = r"\w{1,40}" * 5 + "!"
    with _tool(target, "patterns", "https://tools.example/", pattern), _repeating(target, ask, pause=_PAUSE_SECONDS):
        yield


@contextmanager
def _hanging_tool(target: Target) -> Iterator[Event]:
    go = Event()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            go.wait(30)

        def log_message(self, *arguments: object) -> None:
            """Log nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as far:
        far.daemon_threads = True
        listening = Thread(target=far.serve_forever, daemon=True)
        listening.start()
        with _tool(target, "slow", f"http://127.0.0.1:{far.server_port}/", r"\b\d{7}\b"):
            yield go
        far.shutdown()
        listening.join()


@contextmanager
def slow_tools(target: Target) -> Iterator[None]:
    """Attack with a tool that does not answer, asked by several clients at once."""

    def ask(client: httpx.Client, number: int) -> None:
        _ask(client, f"Где накладная {1_000_000 + number}?")

    with _hanging_tool(target) as go, _repeating(target, ask, 8):
        yield
        go.set()


@contextmanager
def tool_tests(target: Target) -> Iterator[None]:
    """Attack with many simultaneous tests of a tool that does not answer."""

    def test(client: httpx.Client, number: int) -> None:
        client.post("/tools/slow/test", json={"question": f"Где накладная {1_000_000 + number}?"})

    with _hanging_tool(target) as go, _repeating(target, test, _TOOL_TESTS, _PATIENCE_SECONDS):
        yield
        go.set()


@contextmanager
def providers_that_hang(target: Target) -> Iterator[None]:
    """Attack with sign-ins by a provider that accepts connections and stays silent."""

    def begin(client: httpx.Client, _: int) -> None:
        client.get(f"/desk/sso/{ATTACKER}")

    with (
        _repeating(target, begin, _SINGLE_SIGN_ONS, _PATIENCE_SECONDS, target.stranger),
        silent_server(target.provider_port),
    ):
        yield


def sign_ins(target: Target) -> AbstractContextManager[None]:
    def sign_in(client: httpx.Client, number: int) -> None:
        form = {"login": f"nobody-{number}", "password": PASSWORD}
        client.post(desk_gate.SIGN_IN, data=form, headers=_SAME_ORIGIN)

    return _repeating(target, sign_in, _SIGN_INS, _SIGN_IN_SECONDS, target.stranger)


@contextmanager
def desk_tabs(target: Target) -> Iterator[None]:
    """Attack with visible tabs of the desk, each in its own browser, while customers who wait write twice a second."""
    with ExitStack() as stack:
        cookie = _session_of_the_desk(target)
        visitors = [stack.enter_context(target.visitor(number)) for number in range(_CHANGING)]
        chats = [f"/chats/{one.post('/chats', json={}).raise_for_status().json()['chat_id']}" for one in visitors]
        for visitor, chat in zip(visitors, chats, strict=True):
            visitor.post(f"{chat}/person").raise_for_status()

        def change(_: httpx.Client, number: int) -> None:
            message = {"text": f"Где заказ {number}?", "client_id": f"m-{number}"}
            visitors[number % _CHANGING].post(f"{chats[number % _CHANGING]}/messages", json=message).raise_for_status()

        over = Event()
        tabs = stack.enter_context(ThreadPoolExecutor(1, "tabs")).submit(asyncio.run, _tabs(target, cookie, over))
        stack.callback(over.set)
        with _repeating(target, change, 1, _CHANGE_SECONDS):
            yield
        over.set()
        tabs.result()


async def _tabs(target: Target, cookie: str, over: Event) -> None:
    """Run the tabs until it is over.

    :raises Exception: a tab failed.
    """
    tabs = [asyncio.create_task(_follow(target, cookie)) for _ in range(_TABS)]
    await asyncio.to_thread(over.wait)
    for tab in tabs:
        tab.cancel()
    for result in await asyncio.gather(*tabs, return_exceptions=True):
        if isinstance(result, Exception):
            raise result


async def _follow(target: Target, cookie: str) -> None:
    """Load the inbox at each event, as `ui/src/desk/live.ts` does in a visible tab."""
    changed = asyncio.Event()

    async def load(tab: httpx.AsyncClient) -> None:
        version = ""
        while await changed.wait():
            changed.clear()
            response = await tab.get("/desk", headers={"If-None-Match": version})
            if response.status_code != HTTPStatus.NOT_MODIFIED:
                version = response.raise_for_status().headers["ETag"]
            await asyncio.sleep(_RELOAD_SECONDS + random.random() * _SPREAD_SECONDS)  # noqa: S311 - no secret

    transport = httpx.AsyncHTTPTransport(verify=_TLS, local_address=_TABS_ADDRESS)
    async with (
        httpx.AsyncClient(base_url=target.url, transport=transport, headers={"Cookie": cookie}, timeout=120) as tab,
        asyncio.TaskGroup() as tasks,
        tab.stream("GET", "/desk/live") as events,
    ):
        tasks.create_task(load(tab))
        async for line in events.raise_for_status().aiter_lines():
            if line in ("event: ready", "event: changed"):
                changed.set()


@contextmanager
def streams(target: Target) -> Iterator[None]:
    """Attack with hundreds of event streams, the maximum for each visitor."""
    with ExitStack() as stack:
        for number in range(_STREAMS // _STREAMS_OF_A_VISITOR):
            visitor = stack.enter_context(target.visitor(number))
            chat = visitor.post("/chats", json={}).raise_for_status().json()["chat_id"]
            for _ in range(_STREAMS_OF_A_VISITOR):
                stack.enter_context(visitor.stream("GET", f"/chats/{chat}/events")).raise_for_status()
        yield


def large_bodies(target: Target) -> AbstractContextManager[None]:
    """Attack with megabytes of zeros instead of documents, beyond the limit of a body and just within it."""
    beyond = b'{"documents":[0' + b",0" * (_BODY_BYTES // 2) + b"]}"
    within = b'{"documents":[0' + b",0" * (_BODY_BYTES // 12) + b"]}"

    def send(client: httpx.Client, number: int) -> None:
        client.post("/ingest/run", content=(beyond, within)[number % 2], headers={"Content-Type": "application/json"})

    return _repeating(target, send, 2)


@contextmanager
def slow_files(target: Target) -> Iterator[None]:
    slow = slow_pdf()
    with target.visitor(0) as visitor:
        files = f"/chats/{visitor.post('/chats', json={}).raise_for_status().json()['chat_id']}/files"
        authorization = visitor.headers["Authorization"]

        def send(client: httpx.Client, _: int) -> None:
            client.post(files, files={"file": ("a.pdf", slow)}, headers={"Authorization": authorization})

        with _repeating(target, send, _FILES, _PATIENCE_SECONDS, target.stranger):
            yield


def costly_ingest(target: Target) -> AbstractContextManager[None]:
    texts = [{"doc_id": f"letters-{number}", "text": "А. " * 16_000} for number in range(8)]
    return _repeating(target, lambda client, _: client.post("/ingest/run", json={"documents": texts}), 1)


@contextmanager
def connections(target: Target) -> Iterator[None]:
    stop = Event()

    def endless() -> None:
        while not stop.is_set():
            with suppress(OSError), closing(_connected(target)) as line:
                line.sendall(b"GET /healthz HTTP/1.1\r\nHost: opora\r\n")
                while not stop.is_set():
                    line.sendall(b"X-Long: " + b"x" * 60_000 + b"\r\n")

    with ExitStack() as stack, ThreadPoolExecutor(_ENDLESS, "attack") as pool:
        for _ in range(_SILENT):
            with suppress(OSError):
                stack.enter_context(closing(_connected(target)))
        for _ in range(_ENDLESS):
            pool.submit(endless)
        try:
            yield
        finally:
            stop.set()


def full_disk(target: Target) -> AbstractContextManager[None]:
    data = os.urandom(2_000_000)

    def upload(client: httpx.Client, number: int) -> None:
        client.post("/documents", files=[("files", (f"blob-{number}.txt", data))])

    return _repeating(target, upload, 2)


def personal_data(target: Target) -> AbstractContextManager[None]:
    """Attack with questions full of personal data to mask, which open tickets."""
    numbers = " ".join(f"+7 916 {100 + number} {10 + number % 80} 45" for number in range(60))

    def ask(client: httpx.Client, number: int) -> None:
        _ask(client, f"Отмените заказ {number}, карта 4111 1111 1111 1111, {numbers}", session_id=f"s{number % 9}")

    return _repeating(target, ask, pause=_PAUSE_SECONDS)


def _ask(client: httpx.Client, question: str, **more: str) -> httpx.Response:
    return client.post("/ask/run", json={"question": question, **more})


def _connected(target: Target) -> socket.socket:
    return socket.create_connection(("127.0.0.1", target.port), 10)


def _session_of_the_desk(target: Target) -> str:
    """Sign in as the operator; return the cookie, which a client would only send over HTTPS."""
    with target.stranger(_SIGN_INS) as browser:
        form = {"company": ATTACKER, "login": LOGIN, "password": PASSWORD}
        browser.post(desk_gate.SIGN_IN, data=form, headers=_SAME_ORIGIN)
        return f"{desk_gate.COOKIE}={browser.cookies[desk_gate.COOKIE]}"


ATTACKS: Mapping[str, Attack] = {
    "patterns": patterns,
    "slow tools": slow_tools,
    "costly ingest": costly_ingest,
    "connections": connections,
    "full disk": full_disk,
    "personal data": personal_data,
    "400 streams": streams,
    "24 hanging providers": providers_that_hang,
    "bodies of 48 MB": large_bodies,
    "12 slow files": slow_files,
    "60 tests of tools": tool_tests,
    "12 sign-ins": sign_ins,
    "40 tabs of the desk": desk_tabs,
}
"""Attacks that once blocked every tenant."""


def slow_pdf() -> bytes:
    """Build a PDF of fifteen kilobytes with 200 pages of the same 20,000 words: it takes 15 s to read."""
    words = zlib.compress(b"BT /F 12 Tf 72 720 Td " + b"(aaaa bbbb cccc) Tj 1 0 Td " * 20_000 + b"ET")
    stream = b"<</Filter/FlateDecode/Length %d>>stream\n%b\nendstream" % (len(words), words)
    font = b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>"
    kids = b" ".join(b"%d 0 R" % (at + 5) for at in range(200))
    tree = b"<</Type/Pages/Count 200/Kids[%b]/MediaBox[0 0 595 842]/Resources<</Font<</F 3 0 R>>>>>>" % kids
    page = b"<</Type/Page/Parent 2 0 R/Contents 4 0 R>>"
    return pdf([b"<</Type/Catalog/Pages 2 0 R>>", tree, font, stream, *[page] * 200])


def pdf(objects: Sequence[bytes]) -> bytes:
    data = bytearray(b"%PDF-1.7\n")
    offsets = []
    for number, body in enumerate(objects, 1):
        offsets.append(len(data))
        data += b"%d 0 obj\n%b\nendobj\n" % (number, body)
    start = len(data)
    data += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    data += b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    return bytes(data + b"trailer\n<</Size %d/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF" % (len(objects) + 1, start))
