"""`opora pipeline`: pipelines, drawn and checked."""

from pathlib import Path
from typing import Annotated

import typer

from components.language.texts import terminal_locale, text
from tenants.core.errors import Invalid, NotFound
from ui.cli.terminal import Group


def message(key: str, **params: str | int) -> str:
    """Return a text of these commands in the terminal's language."""
    return text(f"pipeline.{key}", terminal_locale(), **params)


app = typer.Typer(cls=Group, help=message("help.group"), no_args_is_help=True)


@app.callback()
def group() -> None:
    """Keep the subcommand name, although there is only one command."""


@app.command("draw", help=message("help.draw"))
def draw(
    pipeline: Annotated[str, typer.Argument(help=message("help.pipeline"))],
    out: Annotated[Path | None, typer.Option(help=message("help.out"), dir_okay=False)] = None,
) -> None:
    """Draw a pipeline from its YAML as Mermaid text."""
    from pipelines import definition
    from pipelines.draw import mermaid, names, path_of

    path = Path(pipeline)
    if pipeline in names():
        path = path_of(pipeline)
    elif not path.is_file():
        raise NotFound("pipeline_unknown", name=pipeline, names=", ".join(names()))
    _check(path)
    drawn = mermaid(definition.source(path))
    if out is None:
        typer.echo(drawn, nl=False)
    else:
        out.write_text(drawn, encoding="utf-8")


def _check(path: Path) -> None:
    from pipelines.lint import lint_file

    if findings := lint_file(path):
        raise Invalid("pipeline_faulty", path=str(path), fault=findings[0].describe(terminal_locale()))
