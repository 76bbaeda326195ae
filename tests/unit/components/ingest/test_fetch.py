"""No address inside the service's own network can be reached, however it is spelt, resolved or redirected to."""

import gzip
import socket
import threading
from collections.abc import Callable

import pytest

from components.ingest.fetch import Fetcher, canonical, is_public, same_site
from tenants.core.errors import CallerError
from tests.unit.components.ingest.site import HTML, moved, page, serving

INSIDE = """
127.0.0.1 127.8.9.10 10.0.0.1 172.16.0.1 172.31.255.255 192.168.1.1 169.254.169.254 100.64.0.1 0.0.0.0 0.1.2.3
192.0.0.8 192.0.2.1 192.88.99.1 198.18.0.1 198.51.100.7 203.0.113.9 224.0.0.1 224.0.1.1 239.255.255.250 240.0.0.1
255.255.255.255 :: ::1 ::ffff:127.0.0.1 ::ffff:8.8.8.8 ::127.0.0.1 fe80::1 fe80::1%eth0 fec0::1 fc00::1 fd00:ec2::254
ff02::1 ff0e::1 64:ff9b::7f00:1 64:ff9b:1::1 100::1 2001::1 2001:0:4136:e378:8000:63bf:3fff:fdd2 2001:db8::1
2002:7f00:1:: 3fff::1 5f00::1
""".split()
OUTSIDE = ["8.8.8.8", "93.184.216.34", "1.1.1.1", "172.32.0.1", "2606:4700::1111", "2a00:1450:4010:c0a::71"]

SPELLINGS = """
http://127.0.0.1/ http://127.1/ http://2130706433/ http://0x7f000001/ http://0177.0.0.1/ http://0/ http://localhost/
http://localhost./ http://[::1]/ http://[::ffff:127.0.0.1]/ http://[::ffff:7f00:1]/ http://[0:0:0:0:0:0:0:1]/
http://①②⑦.⓪.⓪.①/ http://127。0。0。1/ http://169.254.169.254/latest/meta-data/ http://[::]/ http://0.0.0.0:80/
""".split()
NO_ADDRESSES = [
    "file:///etc/passwd",
    "ftp://example.com/",
    "gopher://example.com/",
    "javascript:alert(1)",
    "//example.com/",
    "example.com",
    "",
    "http://",
    "http:///path",
    "http://user:secret@example.com/",
    "http://example.com@127.0.0.1/",
    "http://example.com\\@127.0.0.1/",
    "http://example.com /",
    "http://example.com/\r\nHost: inside",
    "http://exam\tple.com/",
    "http://example.com:0/",
    "http://example.com:99999/",
    "http://[::1/",
    "http://" + "a" * 70 + "я.example/",
    "http://example.com/" + "a" * 2_000,
]


def resolving(*addresses: str) -> Callable[..., list[tuple[object, ...]]]:
    """Return a resolver that gives every name these addresses."""
    return lambda host, port, **_: [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (each, port)) for each in addresses]


def code(url: str, fetcher: Fetcher | None = None, site: str = "") -> str:
    with pytest.raises(CallerError) as refused:
        (fetcher or Fetcher()).fetch(url, site=site)
    return refused.value.code


@pytest.fixture
def no_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("a connection was opened")

    monkeypatch.setattr(socket.socket, "connect", refuse)


def loopback(seconds: float = 20.0, largest: int = 1_000_000) -> Fetcher:
    return Fetcher(permitted=lambda address: address == "127.0.0.1", seconds=seconds, largest=largest)


@pytest.mark.parametrize("address", OUTSIDE)
def test_internet_addresses_are_public(address: str) -> None:
    assert is_public(address)


@pytest.mark.usefixtures("no_connections")
def test_no_spelling_of_an_internal_address_is_connected_to(subtests: pytest.Subtests) -> None:
    for url in SPELLINGS:
        with subtests.test(url=url):
            assert code(url) in {"url_forbidden", "url_unreachable", "url_invalid"}


@pytest.mark.usefixtures("no_connections")
def test_what_is_no_address_is_refused_before_it_is_resolved(
    subtests: pytest.Subtests, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(socket, "getaddrinfo", resolving("8.8.8.8"))
    for url in NO_ADDRESSES:
        with subtests.test(url=url):
            assert code(url) == "url_invalid"


@pytest.mark.usefixtures("no_connections")
def test_a_name_that_resolves_to_an_internal_address_is_refused(
    subtests: pytest.Subtests, monkeypatch: pytest.MonkeyPatch
) -> None:
    for address in INSIDE:
        with subtests.test(address=address):
            monkeypatch.setattr(socket, "getaddrinfo", resolving(address))
            assert code("https://innocent.example/") == "url_forbidden"


@pytest.mark.usefixtures("no_connections")
def test_one_internal_address_among_many_refuses_the_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "getaddrinfo", resolving("8.8.8.8", "10.0.0.1"))
    assert code("https://innocent.example/") == "url_forbidden"


def test_the_connection_goes_to_the_address_that_was_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = iter(("127.0.0.1", "10.0.0.1"))
    with serving({"/": page("text")}) as site:
        port = site.url.rpartition(":")[2]
        monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: resolving(next(answers))("", int(port)))
        assert loopback().fetch(f"http://rebinding.example:{port}/").status == 200
    assert next(answers) == "10.0.0.1"


def test_a_redirect_to_an_internal_address_is_refused() -> None:
    with serving({"/": lambda: moved("http://169.254.169.254/latest"), "/file": moved("file:///etc/passwd")}) as site:
        assert code(site.url, loopback()) == "url_forbidden"
        assert code(site.url + "/file", loopback()) == "url_invalid"


def test_a_redirect_to_another_host_leaves_the_site() -> None:
    with serving({"/": lambda: moved("http://elsewhere.example/")}) as site:
        assert code(site.url, loopback(), canonical(site.url)) == "redirect_elsewhere"


def test_redirects_are_limited() -> None:
    with serving({"/": moved("/"), "/old": moved("/new"), "/new": page("here")}) as site:
        assert code(site.url, loopback()) == "redirects_too_many"
        assert loopback().fetch(site.url + "/old").url == site.url + "/new"


def test_the_size_of_a_page_is_limited() -> None:
    packed = gzip.compress(b"a" * 5_000_000)
    with serving(
        {"/": (200, HTML, b"a" * 200_000), "/gz": (200, {**HTML, "Content-Encoding": "gzip"}, packed)}
    ) as site:
        assert code(site.url, loopback(largest=100_000)) == "page_too_large"
        assert code(site.url + "/gz", loopback()) == "page_too_large"
        assert loopback(largest=6_000_000).fetch(site.url + "/gz").data == b"a" * 5_000_000


def test_the_time_of_a_page_is_limited() -> None:
    over = threading.Event()

    def hanging() -> tuple[int, dict[str, str], bytes]:
        over.wait()
        return 200, {}, b""

    with serving({"/": hanging, "/half": (200, {"Content-Length": "100"}, b"half")}) as site:
        slow = code(site.url, loopback(seconds=0.2))
        over.set()
        half = code(site.url + "/half", loopback())
    assert (slow, half) == ("page_too_slow", "url_unreachable")


def test_an_unreachable_server_is_reported() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        assert code(f"http://127.0.0.1:{taken.getsockname()[1]}/", loopback()) == "url_unreachable"


def test_addresses_are_canonicalised() -> None:
    for address, expected in (
        ("HTTP://Example.COM:80", "http://example.com/"),
        ("https://example.com:443/a b".replace(" ", "%20") + "#part", "https://example.com/a%20b"),
        (
            "https://пример.рф/Справка?q=я",
            "https://xn--e1afmkfd.xn--p1ai/%D0%A1%D0%BF%D1%80%D0%B0%D0%B2%D0%BA%D0%B0?q=%D1%8F",
        ),
        ("http://example.com.:8080/", "http://example.com:8080/"),
        ("http://[2606:4700::1111]/", "http://[2606:4700::1111]/"),
    ):
        assert canonical(address) == expected
        assert canonical(expected) == expected


def test_a_site_is_one_host() -> None:
    assert same_site("http://example.com/a", "https://www.example.com/b")
    assert not same_site("http://example.com/", "http://example.com:8080/")
    assert not same_site("http://example.com/", "http://example.com.evil.example/")
    assert not same_site("http://example.com/", "http://sub.example.com/")
