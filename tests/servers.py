"""Servers for tests: PostgreSQL, PgBouncer and Redis, and HTTP servers in a thread.

The first three are started from the machine's own binaries and stopped by process id. Each listens on a Unix socket in
a private folder, so that ports do not conflict and no other user has access. If the binaries are missing (Debian:
`postgresql`, `pgbouncer`, `redis-server`), the tests are skipped and the summary of the run reports that.
"""

import os
import pwd
import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from secrets import token_hex
from signal import SIGINT
from ssl import SSLContext
from tempfile import mkdtemp
from threading import Thread
from time import monotonic
from typing import NoReturn

import psycopg
import pytest
from redis import Redis, RedisError
from sqlalchemy import URL, create_engine, make_url, text

ORDINARY = "opora_service"
"""Role that owns the databases of tests: row-level security does not restrict superusers."""

MISSING = "no server: "
"""Prefix of the reason for a test skipped because its server is missing."""

_BOUNCER_PORT = 6432
_PATIENCE_SECONDS = 60.0
_POLL_SECONDS = 0.05
_LOOK_SECONDS = 0.01


def absent(backend: str, remedy: str) -> NoReturn:
    """Skip a test whose backend is missing. Fail it if `CI` is `true`: a skip there would hide the whole backend.

    :param backend: its name in `OPORA_TEST_WITHOUT`, which lists backends that may be missing in CI.
    :param remedy: names the backend, and says how to get it.
    """
    if os.environ.get("CI") == "true" and backend not in os.environ.get("OPORA_TEST_WITHOUT", "").split():
        pytest.fail(f"{MISSING}{remedy}", pytrace=False)
    pytest.skip(f"{MISSING}{remedy}")


@contextmanager
def postgres(**options: str) -> Iterator[str]:
    """Yield the URL of a PostgreSQL server: `OPORA_TEST_POSTGRES_URL`, or a server that runs until the block ends.

    :param options: further settings of a server that is started here.
    """
    if url := os.environ.get("OPORA_TEST_POSTGRES_URL"):
        yield url
        return
    # Debian keeps them out of the search path: several versions may be installed.
    newest = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: int(path.parent.name))[-1:]
    initdb, server = (_binary(name, *newest) for name in ("initdb", "postgres"))
    if initdb is None or server is None:
        absent("postgresql", "PostgreSQL (apt-get install postgresql, or set OPORA_TEST_POSTGRES_URL)")
    with folder() as place:
        data = place / "data"
        _run([initdb, "-D", data, "-U", "opora", "-E", "UTF8", "--locale=C.UTF-8", "--auth=trust", "--no-sync"])
        settings = {"listen_addresses": "", "unix_socket_directories": place, "fsync": "off", "max_connections": 60}
        settings["autovacuum"] = "off"  # it would look at databases that live for the length of a test
        arguments = [part for name, value in (settings | options).items() for part in ("-c", f"{name}={value}")]
        with _running([server, "-D", data, *arguments], lambda: _accepts(place)):
            with psycopg.connect(host=str(place), user="opora", dbname="postgres", autocommit=True) as admin:
                admin.execute(f"CREATE ROLE {ORDINARY} LOGIN")
            yield f"postgresql+psycopg://opora@/postgres?host={place}"


@contextmanager
def own_database(server: str, template: str = "template1") -> Iterator[URL]:
    """Create a database on the server until the block ends, as a copy of `template`. An ordinary role owns it."""
    name = f"opora_{token_hex(8)}"
    url = make_url(server).set(database=name)
    admin = create_engine(server, isolation_level="AUTOCOMMIT")
    with admin.connect() as connection:
        # Copied as files, a third faster than by the log. PostgreSQL 15 and newer.
        connection.execute(text(f"CREATE DATABASE {name} TEMPLATE {template} STRATEGY FILE_COPY"))
        if connection.scalar(text("SELECT 1 FROM pg_roles WHERE rolname = :role"), {"role": ORDINARY}):
            connection.execute(text(f"ALTER DATABASE {name} OWNER TO {ORDINARY}"))
            url = url.set(username=ORDINARY)
    try:
        yield url
    finally:
        with admin.connect() as connection:
            connection.execute(text(f"DROP DATABASE {name} WITH (FORCE)"))
        admin.dispose()


class EmptiedDatabase:
    """A database that tests use one after the other: emptying it takes a fraction of the time of copying a template."""

    def __init__(self, server: str, template: str) -> None:
        self._server, self._template = server, template
        self._stack = ExitStack()
        self._url: URL | None = None
        self._admin: psycopg.Connection | None = None
        self._schema: object = None

    @contextmanager
    def lent(self) -> Iterator[URL]:
        """Yield a URL of the database, empty. Later blocks get another database if this one changes its schema.

        No two URLs are the same, because caches of the product go by it.
        """
        if self._url is None or self._admin is None:
            self._url = self._stack.enter_context(own_database(self._server, self._template))
            admin = make_url(self._server).set(drivername="postgresql", database=self._url.database)
            # Open for long: a new connection would read the catalogue of all tables first.
            self._admin = self._stack.enter_context(
                psycopg.connect(admin.render_as_string(hide_password=False), autocommit=True)
            )
            self._schema = _emptied(self._admin)
        try:
            yield self._url.update_query_dict({"fallback_application_name": token_hex(8)})
        finally:
            if _emptied(self._admin) != self._schema:
                self.drop()

    def drop(self) -> None:
        """Drop the database."""
        self._stack.close()
        self._url = self._admin = None


def _emptied(admin: psycopg.Connection) -> object:
    """End the other connections, delete all rows, and return the version and the number of columns."""
    admin.execute(
        "SELECT pg_terminate_backend(pid, 1000) FROM pg_stat_activity"
        " WHERE datname = current_database() AND pid <> pg_backend_pid()"
    )
    admin.execute(_EMPTY)
    return admin.execute(_SCHEMA).fetchone()


_EMPTY = """
DO $$
DECLARE one record;
BEGIN
    PERFORM set_config('session_replication_role', 'replica', true);  -- no foreign key is checked
    FOR one IN SELECT oid::regclass AS name FROM pg_class
        WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace AND relname <> 'alembic_version' LOOP
        EXECUTE format('DELETE FROM %s', one.name);
    END LOOP;
    PERFORM setval(seqrelid::regclass, seqstart, false) FROM pg_sequence;
END $$
"""
_SCHEMA = """
SELECT (SELECT string_agg(version_num, ' ') FROM alembic_version),
    (SELECT count(*) FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid
     WHERE relnamespace = 'public'::regnamespace AND NOT attisdropped)
"""


@contextmanager
def pgbouncer(server: str, pool_size: int = 3) -> Iterator[Callable[[URL], URL]]:
    """Run PgBouncer in transaction mode in front of a PostgreSQL server until the block ends.

    :param pool_size: connections to the server; few by default, so that tenants share them.
    :returns: gives the URL by which a database of the server is reached through it.
    """
    binary = _binary("pgbouncer", Path("/usr/sbin"))
    if binary is None:
        absent("pgbouncer", "PgBouncer (apt-get install pgbouncer)")
    url = make_url(server)
    with folder() as place:
        target = {"host": url.host or url.query.get("host"), "port": url.port or 5432}
        users = {url.username: url.password or "", ORDINARY: ""}
        (place / "users.txt").write_text("".join(f'"{name}" "{password}"\n' for name, password in users.items()))
        (place / "pgbouncer.ini").write_text(
            f"[databases]\n* = {' '.join(f'{name}={value}' for name, value in target.items())}\n"
            f"[pgbouncer]\nlisten_addr =\nlisten_port = {_BOUNCER_PORT}\nunix_socket_dir = {place}\n"
            f"auth_type = trust\nauth_file = {place}/users.txt\n"
            f"stats_users = {url.username}\n"
            f"pool_mode = transaction\ndefault_pool_size = {pool_size}\nmax_client_conn = 200\n"
        )
        behind = {"host": str(place), "port": str(_BOUNCER_PORT)}
        with _running(
            [binary, "--quiet", place / "pgbouncer.ini"], lambda: _accepts(place, _BOUNCER_PORT, url.username)
        ):
            yield lambda direct: direct.set(host="", port=None, query={**direct.query, **behind})


@contextmanager
def redis() -> Iterator[str]:
    """Yield the URL of a Redis server: `OPORA_TEST_REDIS_URL`, or a server that runs until the block ends."""
    if redis_url := os.environ.get("OPORA_TEST_REDIS_URL"):
        yield redis_url
        return
    with folder() as place, redis_in(place) as url:
        yield url


@contextmanager
def redis_in(place: Path) -> Iterator[str]:
    """Yield the URL of a Redis server that runs until the block ends; the next one in a folder has the same URL."""
    server = _binary("redis-server") or _binary("valkey-server")
    if server is None:
        absent("redis", "Redis (apt-get install redis-server, or set OPORA_TEST_REDIS_URL)")
    url = f"unix://{place}/redis.sock?db=0"
    socket: list[str | Path] = ["--port", "0", "--unixsocket", place / "redis.sock"]
    with _running([server, *socket, "--save", "", "--dir", place], lambda: _answers(url)):
        yield url


class Quiet:
    """A handler of HTTP requests that logs nothing."""

    def log_message(self, format: str, *args: object) -> None:
        pass


@contextmanager
def http(handler: Callable[..., BaseHTTPRequestHandler], tls: SSLContext | None = None) -> Iterator[str]:
    """Yield the address of an HTTP server that runs in a thread until the block ends."""
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        if tls is not None:
            server.socket = tls.wrap_socket(server.socket, server_side=True)
        # Stopping it takes until its next look.
        thread = Thread(target=server.serve_forever, args=(_LOOK_SECONDS,), daemon=True)
        thread.start()
        try:
            yield f"{'https' if tls else 'http'}://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


@contextmanager
def replying(status: int, body: bytes = b"") -> Iterator[str]:
    """Yield the URL of an HTTP server that gives the same reply to every request."""

    class Handler(Quiet, BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_POST = do_GET  # noqa: N815 - the standard library's name

    with http(Handler) as url:
        yield url


def openai() -> str:
    """Return the URL of a language model's server, `OPORA_TEST_OPENAI_URL`: OpenAI's protocol below `/v1`."""
    if url := os.environ.get("OPORA_TEST_OPENAI_URL"):
        return url.rstrip("/").removesuffix("/v1")
    absent("openai", "a language model (set OPORA_TEST_OPENAI_URL to a server of OpenAI's protocol)")


def _binary(name: str, *folders: Path) -> str | None:
    return shutil.which(name, path=os.pathsep.join([*map(str, folders), os.environ.get("PATH", os.defpath)]))


def _account() -> str | None:
    """Return the account for a server: PostgreSQL refuses to run as root."""
    return "nobody" if os.geteuid() == 0 else None


@contextmanager
def folder() -> Iterator[Path]:
    """Create a folder for a server's files until the block ends."""
    # Not pytest's folder: only its owner may enter that, and the path of a socket is limited to 107 characters.
    place = Path(mkdtemp(prefix="opora-"))
    try:
        if account := _account():
            shutil.chown(place, account, pwd.getpwnam(account).pw_gid)
        yield place
    finally:
        shutil.rmtree(place)


def _run(command: Sequence[str | Path]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, user=_account(), cwd="/", check=False)
    assert done.returncode == 0, done.stderr


@contextmanager
def _running(command: Sequence[str | Path], ready: Callable[[], bool]) -> Iterator[None]:
    process = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, user=_account(), cwd="/", start_new_session=True
    )
    try:
        deadline = monotonic() + _PATIENCE_SECONDS
        while not ready():
            assert monotonic() < deadline, f"{command[0]} does not answer"
            with pytest.raises(subprocess.TimeoutExpired):  # when it ends by itself, nothing is raised
                process.wait(_POLL_SECONDS)
        yield
    finally:
        process.send_signal(SIGINT)
        process.wait(_PATIENCE_SECONDS)


def _accepts(place: Path, port: int = 5432, user: str | None = "opora") -> bool:
    try:
        psycopg.connect(host=str(place), port=port, user=user, dbname="postgres").close()
    except psycopg.OperationalError:
        return False
    return True


def _answers(url: str) -> bool:
    try:
        with Redis.from_url(url) as client:
            return bool(client.ping())
    except RedisError:
        return False
