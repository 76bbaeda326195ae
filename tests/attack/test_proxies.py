"""Client addresses behind a reverse proxy: neither shared by all clients nor chosen by them."""

from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import httpx
import pytest

from evaluation.benchmarks.attacks import SHOP
from settings import Settings
from tenants.accounts.registry import Registry
from tenants.core.context import Tenant, acting_as
from tenants.desk import sso_providers
from tenants.storage import database
from tests.attack.attacking import ATTACKER, VICTIM, add_site
from tests.provider import CLIENT, SECRET, providing
from tests.service.serving import Server, environment, in_force, problem, serving
from ui.doctor.proxy import check_proxy

PER_ADDRESS = 3
PROXY, OTHER = "127.0.0.2", "127.0.0.3"
PUBLIC = "https://help.shop.example"


def prepared(settings: Settings) -> None:
    for tenant_id in (ATTACKER, VICTIM):
        Registry(settings).add(tenant_id)
    add_site(settings, VICTIM, "site_proxied")


@pytest.fixture(scope="module")
def direct(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A service without a configured proxy."""
    settings = Settings(data_dir=tmp_path_factory.mktemp("direct"), visitor_sessions_per_minute=PER_ADDRESS)
    prepared(settings)
    with serving(environment(settings)) as server:
        yield server
    database.close_all()


@pytest.fixture(scope="module")
def behind(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Server, Settings]]:
    """A service behind a proxy at `PROXY`, known as `PUBLIC`."""
    settings = Settings(
        data_dir=tmp_path_factory.mktemp("behind"),
        visitor_sessions_per_minute=PER_ADDRESS,
        connections_per_address=2,
        tool_networks="127.0.0.0/8",
    )
    prepared(settings)
    told = {"OPORA_TRUSTED_PROXIES": f"{PROXY}/32", "OPORA_PUBLIC_URL": PUBLIC}
    with serving(environment(settings) | told) as server:
        yield server, settings
    database.close_all()


def sessions(server: Server, address: str, forwarded: list[str]) -> list[int]:
    """Return the status codes of session requests from an address with these `X-Forwarded-For` headers."""
    with httpx.Client(transport=httpx.HTTPTransport(local_address=address), base_url=server.url, timeout=60) as client:
        headers = [{"Origin": SHOP, "X-Forwarded-For": one} for one in forwarded]
        return [
            client.post("/widget/sessions", json={"site": "site_proxied"}, headers=one).status_code for one in headers
        ]


def test_a_client_does_not_choose_its_address(direct: Server) -> None:
    codes = sessions(direct, "127.0.0.1", [f"198.51.100.{number}" for number in range(8)])
    assert codes == [200] * PER_ADDRESS + [429] * (8 - PER_ADDRESS)


def test_customers_behind_the_proxy_have_a_limit_each(behind: tuple[Server, Settings]) -> None:
    server, _ = behind
    for customer in ("198.51.100.1", "198.51.100.2", "198.51.100.3"):
        # The first of them is what the customer has sent, and the proxy appends to.
        forwarded = [f"203.0.113.{number}, {customer}" for number in range(PER_ADDRESS + 1)]
        assert sessions(server, PROXY, forwarded) == [200] * PER_ADDRESS + [429]
    assert sessions(server, OTHER, ["198.51.100.9"] * 2 + ["198.51.100.10"] * 2) == [200] * PER_ADDRESS + [429]


def test_addresses_of_one_ipv6_network_share_a_limit(behind: tuple[Server, Settings]) -> None:
    server, _ = behind
    forwarded = [f"2001:db8:1:1::{number:x}" for number in range(1, PER_ADDRESS + 2)]
    assert sessions(server, PROXY, forwarded) == [200] * PER_ADDRESS + [429]
    assert sessions(server, PROXY, ["2001:db8:1:2::1", "::ffff:198.51.100.77", "::ffff:198.51.100.78"]) == [200] * 3


def test_visitors_of_one_ipv6_network_share_a_limit(behind: tuple[Server, Settings]) -> None:
    server, _ = behind
    transport = httpx.HTTPTransport(local_address=PROXY)
    with httpx.Client(transport=transport, base_url=server.url, timeout=60, headers={"Origin": SHOP}) as client:

        def begun(number: int) -> int:
            """Return how many chats another visitor begins, from another address of the network."""
            elsewhere = {"X-Forwarded-For": f"2001:db8:{number:x}::1"}
            session = client.post("/widget/sessions", json={"site": "site_proxied"}, headers=elsewhere).json()
            headers = {"Authorization": f"Bearer {session['token']}", "X-Forwarded-For": f"2001:db8::{number:x}"}
            return sum(client.post("/chats", json={}, headers=headers).is_success for _ in range(10))

        assert sum(map(begun, range(0x10, 0x1B))) == 100


def test_the_proxy_has_as_many_connections_as_it_needs(behind: tuple[Server, Settings]) -> None:
    server, _ = behind

    def connected(address: str) -> int:
        clients = [httpx.Client(transport=httpx.HTTPTransport(local_address=address)) for _ in range(5)]
        count = 0
        for client in clients:
            try:
                count += client.get(f"{server.url}/seen").status_code == 200
            except httpx.HTTPError:
                continue
        for client in clients:
            client.close()
        return count

    assert connected(PROXY) == 5
    assert connected(OTHER) == 2


def test_links_are_those_of_the_public_address(behind: tuple[Server, Settings]) -> None:
    server, settings = behind
    with in_force(settings), acting_as(Tenant(ATTACKER, "admin")), providing() as provider:
        given = {"issuer": provider.issuer, "client_id": CLIENT, "client_secret": SECRET}
        sso_providers.put(sso_providers.parsed({**given, "domains": ["shop.example"]}))
        begun = httpx.get(f"{server.url}/desk/sso/{ATTACKER}", headers={"Host": "help.shop.example"})
    target = httpx.URL(begun.headers["location"])
    assert target.params["redirect_uri"] == f"{PUBLIC}/desk/sso-callback/{ATTACKER}"


def test_the_service_says_how_it_sees_a_request(behind: tuple[Server, Settings], direct: Server) -> None:
    headers = {"X-Forwarded-For": "198.51.100.7", "X-Forwarded-Proto": "https"}
    with httpx.Client(transport=httpx.HTTPTransport(local_address=PROXY)) as client:
        assert client.get(f"{behind[0].url}/seen", headers=headers).json() == {
            "address": "198.51.100.7",
            "scheme": "https",
        }
        assert client.get(f"{direct.url}/seen", headers=headers).json() == {"address": PROXY, "scheme": "http"}
    problem(httpx.post(f"{direct.url}/seen"), 404, "not_found")


@pytest.mark.parametrize(
    ("sent", "found"),
    [
        ({"X-Forwarded-For": "198.51.100.7", "X-Forwarded-Proto": "http"}, None),
        ({"X-Forwarded-Proto": "http"}, "address_not_forwarded"),
        ({"X-Forwarded-For": "", "X-Forwarded-Proto": "http"}, "address_forged"),
        ({"X-Forwarded-For": "198.51.100.7", "X-Forwarded-Proto": "https"}, "scheme_not_forwarded"),
    ],
    ids=["well set up", "no address", "the client's own", "another scheme"],
)
def test_the_doctor_sees_how_a_proxy_is_set_up(
    behind: tuple[Server, Settings], sent: dict[str, str], found: str | None
) -> None:
    server, settings = behind

    class Proxy(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            """Pass the request on; an empty header is passed through from the client."""
            headers = {name: value or self.headers[name] for name, value in sent.items()}
            with httpx.Client(transport=httpx.HTTPTransport(local_address=PROXY)) as client:
                answer = client.get(f"{server.url}{self.path}", headers=headers)
            self.send_response(answer.status_code)
            self.end_headers()
            self.wfile.write(answer.content)

        def log_message(self, *arguments: object) -> None:
            """Log nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Proxy) as proxy, in_force(settings):
        Thread(target=proxy.serve_forever, daemon=True).start()
        told = {"public_url": f"http://127.0.0.1:{proxy.server_port}", "trusted_proxies": f"{PROXY}/32"}
        findings = list(check_proxy(settings.model_copy(update=told)))
        assert [(one.status, one.code) for one in findings] == [("problem", found) if found else ("ok", "proxy")]
        proxy.shutdown()
