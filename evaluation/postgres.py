"""A PostgreSQL server of a benchmark's own, on a free local port, which can be killed and started again."""

import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self

_UNPRIVILEGED = "postgres"
"""Whom the server runs as when this process is root: PostgreSQL refuses to be root."""


class PostgresServer:
    """Needs `initdb` and `pg_ctl` on the path. Durable: a commit that was acknowledged survives its death.

    :param folder: where the cluster lives; made.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._port = _free_port()
        self._user = _UNPRIVILEGED if os.geteuid() == 0 else None

    @property
    def url(self) -> str:
        """The SQLAlchemy URL."""
        return f"postgresql+psycopg://opora@127.0.0.1:{self._port}/postgres"

    def __enter__(self) -> Self:
        self._folder.mkdir(parents=True)
        if self._user:
            shutil.chown(self._folder, self._user)
            for above in self._folder.parents[:-2]:
                above.chmod(above.stat().st_mode | 0o011)
        self._run("initdb", "--username=opora", "--auth=trust", "--encoding=UTF8", "--no-locale")
        self._start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._run("pg_ctl", "stop", "--mode=immediate")

    @contextmanager
    def away(self) -> Iterator[None]:
        """Killed as the block begins, started again as it ends."""
        self._run("pg_ctl", "stop", "--mode=immediate")
        try:
            yield
        finally:
            self._start()

    def _start(self) -> None:
        options = f"-p {self._port} -c listen_addresses=127.0.0.1 -c unix_socket_directories="
        self._run("pg_ctl", "start", "--wait", f"--log={self._folder / 'log'}", f"--options={options}")

    def _run(self, *command: str) -> None:
        program, *rest = command
        subprocess.run(  # noqa: S603 - our own words
            [shutil.which(program) or program, *rest, f"--pgdata={self._folder / 'cluster'}"],
            check=True,
            user=self._user,
            cwd="/",
            stdout=subprocess.DEVNULL,
        )


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
