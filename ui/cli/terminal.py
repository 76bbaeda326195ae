"""Shared code of the command groups: texts, errors, tables, progress, and the tenant to act for.

The module of a command is imported when the command runs, so that `opora --help` answers at once. With `--json`,
standard output holds JSON and nothing else; everything for people goes to standard error.
"""

import inspect
import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, redirect_stdout
from functools import partial, wraps
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, ParamSpec, Protocol, TextIO, TypeAlias, TypeVar

import typer
from pydantic import ValidationError
from pydantic_core import to_jsonable_python
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from components.language.texts import LOCALES, terminal_locale, text, text_or
from tenants.core.errors import CallerError, Invalid, NotFound, OporaError
from ui.cli.help_page import TranslatedHelp, translated_usage_errors

if TYPE_CHECKING:
    from rich.console import Console
    from typer._click.core import Command, Context

    from pipelines.ingest.report import OnProgress
    from pipelines.ingest.report import Progress as Counted
    from tenants.core.context import Tenant

P = ParamSpec("P")
R = TypeVar("R")
Update: TypeAlias = Callable[..., None]

DEFAULT_TENANT = "default"
_FAULT = 2
_CONTROL = re.compile(r"\x1b(?!\[[0-9;]*m)|\r(?!\n)|[\x00-\x08\x0b\x0c\x0e-\x1a\x1c-\x1f\x7f-\x9f]")
"""Control characters, except line breaks, tabs and the beginning of a colour."""
_UNFOLDED = 10_000
_ID = re.compile(r"(?:[a-z]{1,10}[-_])?[0-9a-f-]{8,20}")
"""A short id. A longer one would leave too little of 80 columns for the rest of its row."""


class Message(Protocol):
    """Return a text in one language."""

    def __call__(self, key: str, **params: str | float) -> str: ...


def texts(section: str, locale: str | None = None) -> Message:
    """Return the function that finds the texts of one section of the locale files.

    :param locale: the terminal's own by default.
    """

    def message(key: str, **params: str | float) -> str:
        return text(f"{section}.{key}", locale or terminal_locale(), **params)

    return message


message = texts("cli")

Json: TypeAlias = Annotated[bool, typer.Option("--json", help=message("help.json"))]
TenantOption: TypeAlias = Annotated[str, typer.Option("--tenant", help=message("help.tenant_option"))]
LocaleOption: TypeAlias = Annotated[str, typer.Option("--locale", help=message("help.locale"))]


def _parameter(name: str, annotation: object, default: object) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=annotation, default=default)


def with_json(
    show: Callable[[Any], object],
    form: Callable[[Any], object] = lambda result: result,
    fails: Callable[[Any], object] = lambda _: False,
) -> Callable[[Callable[P, R]], Callable[..., None]]:
    """Add `--json` to a command, and print its result.

    :param show: prints the result for people.
    :param form: returns what is printed as JSON.
    :param fails: returns whether the command exits with 1.
    """

    def decorate(command: Callable[P, R]) -> Callable[..., None]:
        @wraps(command)
        def run(as_json: bool, **options: Any) -> None:  # noqa: ANN401 - the options of the command
            result = command(**options)  # type: ignore[call-arg]
            if as_json:
                print_json(form(result))
            else:
                show(result)
            if fails(result):
                raise typer.Exit(1)

        return _with_parameter(run, command, _parameter("as_json", Json, False))

    return decorate


def for_tenant(command: Callable[P, R]) -> Callable[..., R]:
    """Add `--tenant` to a command and run it in the context of that tenant, or of the only one."""

    @wraps(command)
    def run(tenant: str, **options: Any) -> R:  # noqa: ANN401 - the options of the command
        with acting_for(chosen_tenant(tenant)):
            return command(**options)  # type: ignore[call-arg]

    return _with_parameter(run, command, _parameter("tenant", TenantOption, ""))


def _with_parameter(
    run: Callable[..., R], command: Callable[..., object], parameter: inspect.Parameter
) -> Callable[..., R]:
    """Return `run` with the signature of `command` and one parameter more; `--json` stays the last option."""
    signature = inspect.signature(command, eval_str=True)
    parameters = sorted([*signature.parameters.values(), parameter], key=lambda found: found.name == "as_json")
    keyword_only = [found.replace(kind=inspect.Parameter.KEYWORD_ONLY) for found in parameters]
    run.__signature__ = signature.replace(parameters=keyword_only)  # type: ignore[attr-defined]
    return run


class _Command(TranslatedHelp, TyperCommand):
    pass


class _Group(TranslatedHelp, TyperGroup):
    pass


class CommandGroup(typer.Typer):
    """A group of commands whose texts are one section of the locale files; `help.NAME` is the help of a command.

    :param prefix: comes before `NAME`, if the section is shared by several groups.
    """

    def __init__(self, section: str, prefix: str = "") -> None:
        super().__init__(cls=_Group, no_args_is_help=True, add_completion=False)
        self.message, self._prefix = texts(section), prefix
        self.callback()(_keep_names)

    def installation_command(
        self, name: str, *, help_text: str = "", **printing: Callable[[Any], object]
    ) -> Callable[[Callable[P, R]], Callable[P, R]]:
        """Register a command of the whole installation.

        :param help_text: if it is not the text of the command's name.
        :param printing: parameters of `with_json`; without any, the command prints its result itself.
        """

        def register(command: Callable[P, R]) -> Callable[P, R]:
            shown: Callable[..., object] = with_json(**printing)(command) if printing else command
            key = f"help.{self._prefix}{name.replace('-', '_')}"
            self.command(name, cls=_Command, help=help_text or self.message(key))(shown)
            return command

        return register

    def tenant_command(
        self, name: str, *, help_text: str = "", **printing: Callable[[Any], object]
    ) -> Callable[[Callable[P, R]], Callable[P, R]]:
        """Register a command that acts for the tenant of `--tenant`. The result is shown in its context, too."""

        def register(command: Callable[P, R]) -> Callable[P, R]:
            shown: Callable[..., object] = with_json(**printing)(command) if printing else command
            self.installation_command(name, help_text=help_text)(for_tenant(shown))
            return command

        return register

    def print_columns(self, names: Iterable[str], rows: Iterable[Sequence[object]], section: str = "column") -> None:
        print_table((self.message(f"{section}.{name}") for name in names), rows)


def _keep_names() -> None:
    """Keep the names of subcommands in a group with only one."""


class LazyCommand(_Command):
    """A command whose module is imported when it runs; help of the group above needs only its help text.

    :param place: `module:attribute`, a `Typer` or a function.
    """

    def __init__(self, name: str, place: str, help_text: str) -> None:
        super().__init__(name, help=help_text)
        self._place = place

    def load(self) -> "Command":
        module, _, attribute = self._place.partition(":")
        target = getattr(import_module(module), attribute)
        if not isinstance(target, typer.Typer):
            function, target = target, typer.Typer(add_completion=False)
            target.command(self.name, cls=_Command)(function)
        command: Command = get_command(target)
        command.name, command.help = self.name, self.help
        return command

    def make_context(
        self,
        info_name: str | None,
        args: list[str],
        parent: "Context | None" = None,
        **extra: Any,  # noqa: ANN401 - as in the base class
    ) -> "Context":
        return self.load().make_context(info_name, args, parent, **extra)


def explained(error: OporaError) -> str:
    unnamed = f"{error.params['path']}: {refused(error)}" if "path" in error.params else refused(error)
    general = text_or(unnamed, f"service.{error.code}.detail", terminal_locale(), **error.params)
    return text_or(general, f"cli.error.{error.code}", terminal_locale(), **error.params)


def refused(error: OporaError) -> str:
    unknown = message("error.unknown", code=error.code)
    return text_or(unknown, f"cli.refusal.{error.code}", terminal_locale(), **error.params)


def flag_texts(flags: Iterable[str]) -> str:
    """Return the meanings of a document's flags; unknown flags from sources are returned unchanged."""
    return ", ".join(text_or(flag, f"documents.flag.{flag}", terminal_locale()) for flag in flags)


class _Terminal:
    """A terminal that colours text and obeys no other control character.

    Threat: a customer's message that sets the clipboard or the title of an operator's terminal, or writes over what
    was printed before.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, words: str) -> int:
        self._stream.write(_CONTROL.sub("\ufffd", words))
        return len(words)

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever the stream has
        return getattr(self._stream, name)


class Group(_Group):
    """Turn Opora's errors into one line on standard error and exit code 2, and translate usage errors."""

    @translated_usage_errors()
    def make_context(self, *args: Any, **extra: Any) -> "Context":  # noqa: ANN401 - as in the base class
        return super().make_context(*args, **extra)

    @translated_usage_errors()
    def invoke(self, ctx: "Context") -> object:
        try:
            with redirect_stdout(_Terminal(sys.stdout)) if sys.stdout.isatty() else nullcontext():
                return super().invoke(ctx)
        except OporaError as error:
            fault = error
        except ValidationError as unfit:
            reason = unfit.errors()[0]
            name = ".".join(map(str, reason["loc"])).upper()
            code = "placement_embedded" if reason["type"] == "placement_embedded" else "settings_invalid"
            fault = CallerError(code, name=f"OPORA_{name}")
        except PermissionError as denied:
            fault = CallerError("folder_unusable", path=str(denied.filename))
        typer.echo(f"{message('error.label')}: {explained(fault)}", err=True)
        raise typer.Exit(_FAULT)


def ensure_tenant(tenant_id: str, locale: str = "", name: str = "") -> None:
    from tenants.accounts.registry import Registry

    registry = Registry()
    if not registry.exists(tenant_id):
        registry.add(tenant_id, name=name, locale=locale)


def chosen_tenant(named: str) -> str:
    """Return the named tenant, the only one, or the default one, which an empty installation does not have yet.

    :raises NotFound: `tenant_unknown`; `records_missing`, if nothing was ever stored.
    :raises Invalid: `tenant_unnamed`, if there are several.
    """
    from tenants.accounts.registry import Registry

    _refuse_without_records()
    known = [one.tenant_id for one in Registry().list()]
    if named:
        return Registry().get(named).tenant_id
    if len(known) == 1:
        return known[0]
    if known and DEFAULT_TENANT not in known:
        raise Invalid("tenant_unnamed", tenants=", ".join(known))
    return DEFAULT_TENANT


def first_tenant(named: str) -> str:
    """Return the same tenant; create the default one in an empty installation."""
    from settings import get_settings

    tenant_id = chosen_tenant(named) if named or get_settings().has_records else DEFAULT_TENANT
    ensure_tenant(tenant_id, terminal_locale())
    return tenant_id


def _refuse_without_records() -> None:
    """Refuse a command in a folder where Opora has never run, before a new database is created there."""
    from settings import get_settings

    settings = get_settings()
    if not settings.has_records:
        raise NotFound("records_missing", path=str(settings.data_dir.resolve()))


@contextmanager
def acting_for(tenant_id: str) -> Iterator["Tenant"]:
    """Act for a registered tenant with every scope: access to the data folder grants all. Raises `NotFound`.

    While a service runs on the data folder, the embedded index is reached through it.
    """
    from settings import get_settings
    from tenants.accounts.registry import Registry
    from tenants.core.context import COMMAND_LINE, SCOPES, Tenant, acting_as
    from tenants.work import locks

    _refuse_without_records()
    if locks.index_is_held(get_settings()):
        from tenants import index

        index.attach()
    Registry().get(tenant_id)
    with acting_as(Tenant(tenant_id, subject=COMMAND_LINE, scopes=SCOPES)) as tenant:
        yield tenant


def checked_locale(locale: str) -> str:
    """Return the locale, empty if not given. Raises `Invalid` with the code `locale_unknown`."""
    if locale and locale not in LOCALES:
        raise Invalid("locale_unknown", language=locale)
    return locale


def read_json(path: Path, /, code: str, **params: str) -> dict[str, Any]:
    """Return the JSON object of a file. Raises `Invalid` with this code for any other file."""
    with Invalid(code, **params).instead_of(ValueError):
        value = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(value, dict):
        raise Invalid(code, **params)
    return value


def terminal_console() -> "Console":
    from rich.console import Console

    return Console(soft_wrap=True)


@contextmanager
def progress_bar(label: str) -> Iterator[Update]:
    """Show a progress bar on standard error and remove it at the end; do nothing if that is not a terminal.

    Yields what updates it, by `description`, `completed` and `total`.
    """
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        yield partial(progress.update, progress.add_task(label, total=None))


def print_finding(status: Literal["ok", "warning", "problem"], subject: str, words: str, command: str = "") -> None:
    from rich.markup import escape

    colour = {"ok": "green", "warning": "yellow", "problem": "red"}[status]
    label = message(f"status.{status}")
    console = terminal_console()
    console.print(f"[{colour}]{label:<9}[/] [bold]{escape(subject)}[/]: {escape(words)}", highlight=False)
    if command:
        console.print(f"{'':9} → {escape(command)}", highlight=False)


def print_json(value: object) -> None:
    typer.echo(json.dumps(to_jsonable_python(value), ensure_ascii=False, indent=2))


def print_table(headers: Iterable[str], rows: Iterable[Sequence[object]]) -> None:
    """Print rows of cells under headers. Cells are folded, never truncated; ids are copied into the next command, so a
    column of short ids stays on one line, and so does every row that is not printed to a terminal.
    """
    from rich.markup import escape
    from rich.table import Table

    cells = [["" if cell is None else str(cell) for cell in row] for row in rows]
    table = Table()
    for position, header in enumerate(headers):
        column = [row[position] for row in cells if row[position]]
        longest = max(map(len, column), default=0)
        are_ids = bool(column) and all(map(_ID.fullmatch, column))
        table.add_column(header, overflow="fold", no_wrap=are_ids, min_width=longest if are_ids else None)
    for row in cells:
        table.add_row(*map(escape, row))
    console = terminal_console()
    if not console.is_terminal:
        console.width = _UNFOLDED
    console.print(table)


def write_lines(lines: Iterable[str], out: Path | None) -> None:
    if out is None:
        for line in lines:
            typer.echo(line, nl=False)
    else:
        with out.open("w", encoding="utf-8", newline="") as file:
            file.writelines(lines)


def counted_by(update: Update) -> "OnProgress":
    def count(now: "Counted") -> None:
        if now.chunks:
            update(description=message("ingest.counted", chunks=now.chunks))
        if now.documents:  # until then the bar only moves
            update(completed=now.documents, total=now.total or None)

    return count


def shown_by(update: Update) -> Callable[[str, int, int], None]:
    return lambda stage, done, total: update(description=stage, completed=done, total=total or None)
