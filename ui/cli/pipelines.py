"""`opora pipeline`: pipelines, drawn and checked."""

from pathlib import Path
from typing import Annotated

import typer

from pipelines import definition, lint
from pipelines import draw as drawing
from pipelines.ask import profiles
from pipelines.draw import names, path_of
from settings import get_settings
from tenants.core.errors import NotFound
from ui.cli.terminal import CommandGroup, write_lines

group = CommandGroup("pipeline")
message = group.message


@group.installation_command("draw")
def draw(
    pipeline: Annotated[str, typer.Argument(help=message("help.pipeline"))],
    out: Annotated[Path | None, typer.Option(help=message("help.out"), dir_okay=False)] = None,
    overview: Annotated[bool, typer.Option("--overview", help=message("help.overview"))] = False,
) -> None:
    path = Path(pipeline)
    if pipeline in names():
        path = path_of(pipeline)
    elif pipeline in (known := get_settings().profiles):
        path = profiles.path_of(pipeline)
    elif not path.is_file():
        raise NotFound("pipeline_unknown", name=pipeline, names=", ".join((*names(), *known)))
    lint.check(path)
    drawn = (drawing.overview if overview else drawing.mermaid)(definition.source(path))
    write_lines([drawn], out)
