"""End of a benchmark: a table on standard error, JSON on standard output, and the exit code."""

import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence

import typer
from rich import box
from rich.console import Console
from rich.table import Table

from evaluation.datasets.rows import MissingData

Value = float | int | str

console = Console(stderr=True, width=None if sys.stderr.isatty() else 150)


def print_table(
    title: str, columns: Sequence[str], rows: Iterable[Sequence[Value]], faulty: Iterable[str] = ()
) -> None:
    """Print rows to standard error, in Markdown unless it is a terminal; those whose first cell is named in `faulty`
    in red."""
    style = box.HEAVY_HEAD if console.is_terminal else box.MARKDOWN
    table = Table(*columns, title=title, title_justify="left", box=style)
    wrong = frozenset(faulty)
    for first, *more in rows:
        table.add_row(str(first), *map(_cell, more), style="bold red" if first in wrong else "")
    console.print(table)


def print_faults(faults: Sequence[str], limit: int = 10) -> None:
    for fault in faults[:limit]:
        console.print(fault[:300], style="red", highlight=False, markup=False)


def finish(
    schema: str, figures: Mapping[str, Value], *, title: str, bounds: Mapping[str, float] = {}, **more: object
) -> None:
    """Print the figures as a table and as JSON, and end the program with exit code 1 if one is beyond its bound.

    :param bounds: the most that a figure may be, by name.
    """
    exceeded = [name for name, bound in bounds.items() if float(figures[name]) > bound]
    # Not by its colour alone, which is lost in a file.
    marks = dict.fromkeys(exceeded, "MISSED")
    rows = [(name, value, bounds.get(name, ""), marks.get(name, "")) for name, value in figures.items()]
    print_table(title, ("figure", "value", "at most", ""), rows, exceeded)
    end({"schema": schema, "figures": figures, "bounds": bounds, "exceeded": exceeded, **more}, bool(exceeded))


def end(result: Mapping[str, object], failed: bool) -> None:
    sys.stdout.write(json.dumps(result, ensure_ascii=False, indent=1) + "\n")
    raise typer.Exit(int(failed))


def run(main: Callable[..., None]) -> None:
    """Run a benchmark that needs a public data set; say which file is missing, if one is."""
    try:
        typer.run(main)
    except MissingData as missing:
        console.print(f"skipped: {missing.path} is absent", highlight=False)
        sys.exit(1)


def _cell(value: Value) -> str:
    return f"{value:.2f}" if isinstance(value, float) else str(value)
