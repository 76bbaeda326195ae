"""A website on the loopback interface, for tests of fetching pages."""

import ssl
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler

from tests.servers import Quiet, http

Answer = tuple[int, Mapping[str, str], bytes]
HTML = {"Content-Type": "text/html; charset=utf-8"}


def page(body: str) -> Answer:
    """Return a page with this body."""
    return 200, HTML, f"<html><head><title>t</title></head><body><main>{body}</main></body></html>".encode()


def moved(target: str) -> Answer:
    """Return a redirect."""
    return 302, {"Location": target}, b""


@dataclass
class Site:
    """Responses of the site by path, and the requests it received."""

    url: str
    pages: dict[str, Answer | Callable[[], Answer]]
    asked: list[str] = field(default_factory=list)


@contextmanager
def serving(pages: Mapping[str, Answer | Callable[[], Answer]], tls: ssl.SSLContext | None = None) -> Iterator[Site]:
    """Serve pages until the block ends, by https where there is a certificate; everything else is 404."""
    site = Site("", dict(pages))

    class Handler(Quiet, BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            site.asked.append(self.path)
            known = site.pages.get(self.path, (404, HTML, b"nothing here"))
            status, headers, body = known() if callable(known) else known
            self.send_response(status)
            for name, value in {"Content-Length": str(len(body)), **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            try:
                self.wfile.write(body)
            except OSError:
                self.close_connection = True

    with http(Handler, tls) as site.url:
        yield site
