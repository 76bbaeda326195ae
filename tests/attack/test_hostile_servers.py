"""Servers that a tenant names, such as of tools, webhooks and identity providers, which hold threads of all tenants."""

import socket
from time import perf_counter

import pytest

from components.ingest.fetch import Fetcher
from tenants.core.errors import TooLarge

HANDSHAKE_SECONDS = 6.0
"""Less than the ten seconds that a handshake alone may take."""


def test_the_time_limit_includes_the_handshake() -> None:
    fetcher = Fetcher(permitted=lambda _: True, seconds=2.0)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        started_at = perf_counter()
        with pytest.raises(TooLarge, match="page_too_slow"):
            fetcher.fetch(f"https://127.0.0.1:{silent.getsockname()[1]}/")
        assert perf_counter() - started_at < HANDSHAKE_SECONDS
