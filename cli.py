"""Command line: the same use cases as the HTTP API, for people and scripts. Shared code is in `ui.cli.terminal`."""

import gc
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from components.language.texts import terminal_locale, text
from evaluation.datasets import DATA_SETS
from tenants.core.errors import CallerError
from ui.cli.terminal import Group, LazyCommand, first_tenant, message

if TYPE_CHECKING:
    from settings import Settings

_help = partial(text, locale=terminal_locale())

COMMANDS = {
    "backup": ("ui.cli.installation:backup", _help("installation.help.backup")),
    "doctor": ("ui.cli.doctor:doctor", _help("doctor.help")),
    "restore": ("ui.cli.installation:restore", _help("installation.help.restore")),
    "ingest": ("ui.cli.ingest:ingest", _help("cli.help.ingest")),
    "replay": ("ui.cli.replay:replay", _help("records.help.replay")),
    "demo": ("evaluation.demo_command:demo", _help("cli.help.demo")),
    "up": ("cli:up", _help("up.help.up")),
    "serve": ("cli:serve", _help("cli.help.serve")),
    "worker": ("ui.cli.worker:worker", _help("cli.help.worker")),
    "migrate": ("ui.cli.installation:migrate", _help("cli.help.migrate")),
    "ask": ("ui.cli.ask:ask", _help("cli.help.ask")),
    "tenant": ("ui.cli.tenant:group", _help("cli.help.tenant")),
    "job": ("ui.cli.ingest:job_group", _help("jobs.help.group")),
    "edge": ("ui.cli.relation:edge_group", _help("relations.help.edge")),
    "rejected": ("ui.cli.relation:rejected_group", _help("relations.help.rejected")),
    "contradiction": ("ui.cli.relation:contradiction_group", _help("relations.help.contradiction")),
    "agreement": ("ui.cli.relation:agreement_group", _help("relations.help.agreement")),
    "tool": ("ui.cli.tool:group", _help("tools.help.tool")),
    "token": ("ui.cli.token:tokens", _help("tokens.help.token")),
    "keys": ("ui.cli.token:signing_keys", _help("tokens.help.keys")),
    "site": ("ui.cli.site:group", _help("sites.help.site")),
    "chat": ("ui.cli.chat:group", _help("chats.help.chat")),
    "webhook": ("ui.cli.webhook:group", _help("webhooks.help.webhook")),
    "operator": ("ui.cli.operators:group", _help("desk.command.help.operator")),
    "audit": ("ui.cli.records:audit_group", _help("records.help.audit")),
    "insight": ("ui.cli.insight:group", _help("records.help.insight")),
    "evaluation": ("ui.cli.evaluation:group", _help("evaluation.own.help.group")),
    "gap": ("ui.cli.records:gap_group", _help("records.help.gap")),
    "article": ("ui.cli.articles:group", _help("articles.help.article")),
    "feedback": ("ui.cli.feedback:group", _help("records.help.feedback")),
    "person": ("ui.cli.records:person_group", _help("records.help.person")),
    "evaluate": ("evaluation.commands:app", _help("evaluation.help.group", names=", ".join(DATA_SETS))),
    "pipeline": ("ui.cli.pipelines:group", _help("pipeline.help.group")),
    "document": ("ui.cli.document:group", _help("library.help.group")),
    "index": ("ui.cli.index:group", _help("library.help.index")),
    "models": ("ui.cli.model:group", _help("models.help.group")),
}
"""Where each command is, and its help text. It is imported when it runs."""


class LazyGroup(Group):
    """The commands of `COMMANDS`."""

    def __init__(self, **params: Any) -> None:  # noqa: ANN401 - as Typer calls it
        super().__init__(**params)
        self.commands = {name: LazyCommand(name, *place) for name, place in COMMANDS.items()}


app = typer.Typer(
    cls=LazyGroup,
    help=message("help.app"),
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


def _print_version(requested: bool) -> None:
    if requested:
        typer.echo(f"opora {version('opora')}")
        raise typer.Exit


@app.callback()
def main_options(
    show_version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help=message("help.version"))
    ] = False,
) -> None:
    """Options that precede any command."""


def serve(
    port: Annotated[int | None, typer.Option(help=message("help.port"), min=1, max=65535)] = None,
    host: Annotated[str | None, typer.Option(help=message("help.host"))] = None,
) -> None:
    """Run the service until it is stopped. Settings come from the environment; options override them."""
    settings = _overridden(OPORA_PORT=port, OPORA_HOST=host)
    with _importing():
        _check_start(settings)
        from app import serve as serve_http
        from tenants.desk import first_run, operators
        from ui.cli.model import fetch_encoder

    def announce() -> None:
        typer.echo(message("serve.listening", host=settings.host, port=settings.port), err=True)
        if (secret := first_run.open_link()) is not None:
            typer.echo(message("serve.first_run", link=f"{settings.browsed_at}/desk/first-run/{secret}"), err=True)
        elif not operators.anybody():
            typer.echo(message("serve.nobody"), err=True)

    fetch_encoder()
    serve_http(settings, announce)


def up(
    folder: Annotated[Path | None, typer.Argument(help=_help("up.help.folder"))] = None,
    tenant: Annotated[str, typer.Option("--tenant", help=message("help.tenant_option"))] = "",
    port: Annotated[int | None, typer.Option(help=message("help.port"), min=1, max=65535)] = None,
    host: Annotated[str | None, typer.Option(help=message("help.host"))] = None,
) -> None:
    """Create what is missing, watch a folder, run the service, and print where everything is."""
    from tenants.work import locks
    from ui.cli import first_start
    from ui.cli.model import fetch_encoder

    settings = _overridden(OPORA_PORT=port, OPORA_HOST=host)
    if (running := locks.service_place(settings)) is not None:
        raise CallerError("service_running", address=running.browsed_at)
    _check_start(settings)
    tenant_id = first_tenant(tenant)
    fetch_encoder()
    prepared = first_start.prepare(tenant_id, settings)
    watched_folder = first_start.watch(tenant_id, folder, settings)
    first_start.ingest_changes(tenant_id, watched_folder)
    settings = _overridden(OPORA_WATCH_DIR=first_start.watch_dir(settings))
    from app import serve as serve_http

    serve_http(settings, lambda: first_start.announce(prepared, watched_folder, settings))


@contextmanager
def _importing() -> Iterator[None]:
    """Switch garbage collection off, which takes a sixth of the time to import and finds next to nothing."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def _overridden(**variables: object) -> "Settings":
    """Return the settings with options of a command over the environment, for this whole process."""
    from settings import get_settings

    os.environ.update({name: str(value) for name, value in variables.items() if value is not None})
    get_settings.cache_clear()
    return get_settings()


def _check_start(settings: "Settings") -> None:
    """Raise an error that would keep the service from starting."""
    from pipelines.ask import profiles
    from tenants.backup import restoring
    from tenants.storage import database, sealed
    from tenants.work import queue

    if settings.worker == "external":
        queue.check_shared(settings)
    restoring.check_finished(settings)
    sealed.check_given(settings)
    _check_port(settings.host, settings.port)
    database.check(settings)
    profiles.check_file(settings.profile)


def _check_port(host: str, port: int) -> None:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        with CallerError("port_taken", port=port).instead_of(OSError):
            probe.bind((host, port))


def main() -> None:
    """Run the `opora` command."""
    os.umask(0o077)  # Keep our files private to the owner, whatever the folder's permissions.
    app()


if __name__ == "__main__":
    main()
