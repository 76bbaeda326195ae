"""Shared code of the command groups: texts, errors, tables, progress, and the tenant to act for.

Nothing heavy is imported before a command needs it, so that `opora tenant list` answers at once. With `--json`,
standard output holds JSON and nothing else; everything for people goes to standard error.
"""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer
from pydantic import ValidationError
from typer.core import TyperGroup

from components.language.texts import LOCALES, terminal_locale, text
from tenants.core.errors import CallerError, Invalid, OporaError

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress
    from typer._click.core import Context

    from pipelines.ingest.report import OnProgress
    from pipelines.ingest.report import Progress as Counted
    from tenants.core.context import Tenant

DEFAULT_TENANT = "default"
"""Default tenant."""
SUBJECT = "cli"
_FAULT = 2


def message(key: str, locale: str | None = None, **params: str | int | float) -> str:
    """Return a text of the command line in the terminal's language, or in `locale`."""
    return text(f"cli.{key}", locale or terminal_locale(), **params)


Json: TypeAlias = Annotated[bool, typer.Option("--json", help=message("help.json"))]
TenantOption: TypeAlias = Annotated[str, typer.Option("--tenant", help=message("help.tenant_option"))]
LocaleOption: TypeAlias = Annotated[str, typer.Option("--locale", help=message("help.locale"))]


def explained(error: OporaError) -> str:
    """Format an error as one line that says what to do."""
    for key in (f"cli.error.{error.code}", f"service.{error.code}.detail"):
        try:
            return text(key, terminal_locale(), **error.params)
        except KeyError:
            continue
    if "path" in error.params:
        return f"{error.params['path']}: {refused(error)}"
    return refused(error)


def refused(error: OporaError) -> str:
    """Return why an article or a file was rejected, without naming it."""
    try:
        return text(f"cli.refusal.{error.code}", terminal_locale(), **error.params)
    except KeyError:
        return message("error.unknown", code=error.code)


def flag_text(flag: str) -> str:
    """Return the meaning of a document's flag; unknown flags from sources are returned unchanged."""
    try:
        return text(f"documents.flag.{flag}", terminal_locale())
    except KeyError:
        return flag


class Group(TyperGroup):
    """Turn Opora's errors into one line on standard error and exit code 2."""

    def invoke(self, ctx: "Context") -> object:
        try:
            return super().invoke(ctx)
        except OporaError as error:
            fault = error
        except ValidationError as unfit:
            name = ".".join(map(str, unfit.errors()[0]["loc"])).upper()
            fault = CallerError("settings_invalid", name=f"OPORA_{name}")
        except PermissionError as denied:
            fault = CallerError("folder_unusable", path=str(denied.filename))
        typer.echo(f"{message('error.label')}: {explained(fault)}", err=True)
        raise typer.Exit(_FAULT)


def ensure_tenant(tenant_id: str, locale: str = "", name: str = "") -> None:
    """Register a tenant unless it exists."""
    from tenants.accounts.registry import Registry

    registry = Registry()
    if not registry.exists(tenant_id):
        registry.add(tenant_id, name=name, locale=locale)


@contextmanager
def acting_for(tenant_id: str) -> Iterator["Tenant"]:
    """Act for a registered tenant with every scope: access to the data folder grants all. Raises `NotFound`.

    While a service runs on the data folder, the embedded index is reached through it.
    """
    from settings import get_settings
    from tenants.accounts.registry import Registry
    from tenants.core.context import SCOPES, Tenant, acting_as
    from tenants.work import claims

    if claims.index_is_held(get_settings()):
        from tenants import index

        index.attach()
    Registry().get(tenant_id)
    with acting_as(Tenant(tenant_id, subject=SUBJECT, scopes=SCOPES)) as tenant:
        yield tenant


def checked_locale(locale: str) -> str:
    """Return the locale, empty if not given. Raises `Invalid` with the code `locale_unknown`."""
    if locale and locale not in LOCALES:
        raise Invalid("locale_unknown", language=locale)
    return locale


def terminal_console() -> "Console":
    """Return the console for people, on standard output."""
    from rich.console import Console

    return Console(soft_wrap=True)


@contextmanager
def progress_bar(label: str) -> Iterator["Progress"]:
    """Show a progress bar on standard error and remove it at the end; do nothing if that is not a terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        progress.add_task(label, total=None)
        yield progress


def print_json(value: object) -> None:
    """Return the console for programs, on standard output."""
    typer.echo(json.dumps(value, ensure_ascii=False, indent=2))


def counted_by(progress: "Progress") -> "OnProgress":
    """Show the progress of an ingestion run on the bar."""
    task = progress.task_ids[0]

    def count(now: "Counted") -> None:
        read = message("ingest.counted", pages=now.pages, chunks=now.chunks)
        progress.update(task, completed=now.documents, total=now.total or None, description=read)

    return count


def shown_by(progress: "Progress") -> Callable[[str, int, int], None]:
    """Show (what, done, total) on the bar."""
    task = progress.task_ids[0]

    def show(stage: str, done: int, total: int) -> None:
        progress.update(task, description=stage, completed=done, total=total or None)

    return show
