"""Phoenix, the viewer of traces: a separate process, run by the Python it is installed for (`make phoenix`).

Opora's modules and this one do not import each other: Phoenix is no dependency of the service.

Phoenix 20.26 accepts spans over gRPC on all addresses of the machine, whatever `PHOENIX_HOST` says; here that listener
uses the same address as the pages.
"""

import os
import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import Protocol

_ANY_ADDRESS = "[::]:"

SETTINGS: Mapping[str, str] = MappingProxyType(
    {
        "PHOENIX_HOST": "127.0.0.1",
        "PHOENIX_PORT": "6006",
        "PHOENIX_GRPC_PORT": "4317",
        "PHOENIX_WORKING_DIR": str(Path(os.environ.get("OPORA_DATA_DIR", ".opora"), "phoenix").resolve()),
        "PHOENIX_DEFAULT_RETENTION_POLICY_DAYS": "90",
        "PHOENIX_TELEMETRY_ENABLED": "false",
        "PHOENIX_ALLOW_EXTERNAL_RESOURCES": "false",
        "PHOENIX_DISABLE_AGENT_ASSISTANT": "true",
        "PHOENIX_ENABLE_MCP_SERVER": "false",
        "PHOENIX_ALLOWED_SANDBOX_PROVIDERS": "NONE",
    }
)
"""Defaults of the environment variables."""


class _Listener(Protocol):
    add_insecure_port: Callable[[str], int]


def main() -> None:
    for name, value in SETTINGS.items():
        os.environ.setdefault(name, value)
    Path(os.environ["PHOENIX_WORKING_DIR"]).mkdir(parents=True, exist_ok=True)
    grpc = import_module("grpc.aio")
    setattr(grpc, "server", _bound_server(os.environ["PHOENIX_HOST"], grpc.server))  # noqa: B010 - a module's, by design
    sys.argv = ["phoenix", "serve"]
    import_module("phoenix.server.main").main()


def _bound_server(host: str, make: Callable[..., _Listener]) -> Callable[..., _Listener]:
    """Wrap a factory of servers, so that they listen on one address instead of all."""

    def listening_at_host(*arguments: object, **options: object) -> _Listener:
        server = make(*arguments, **options)
        opens = server.add_insecure_port
        server.add_insecure_port = lambda address: opens(address.replace(_ANY_ADDRESS, f"{host}:"))
        return server

    return listening_at_host


if __name__ == "__main__":
    main()
