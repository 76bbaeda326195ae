"""`opora models`: the model for search by meaning, and what the first start does about it."""

from typing import Annotated

import typer

from components.language.texts import terminal_locale, text
from pipelines.terminal import Group, Json, print_json
from settings import get_settings
from tenants.errors import NotFound

E5_SMALL = "e5-small"


def message(key: str, **params: str | int) -> str:
    """A text of these commands in the terminal's language."""
    return text(f"models.{key}", terminal_locale(), **params)


app = typer.Typer(cls=Group, help=message("help.group"), no_args_is_help=True)


@app.callback()
def _group() -> None:
    """Keeps `add` a command of its own, though it is the only one."""


@app.command("add", help=message("help.add"))
def add(name: Annotated[str, typer.Argument(help=message("help.name"))] = E5_SMALL, as_json: Json = False) -> None:
    """Fetch a model. Does nothing where it lies whole."""
    from components.embed.e5_small.install import install

    if name != E5_SMALL:
        raise NotFound("model_unknown", name=name, known=E5_SMALL)
    typer.echo(message("fetching"), err=True)
    model = install(get_settings().models)
    if as_json:
        print_json({"name": name, "folder": str(model.folder), "source": model.source, "new": model.new})
        return
    params = {"name": name, "folder": str(model.folder)}
    source = message(f"source.{model.source}")
    typer.echo(
        message("added", **params, megabytes=model.bytes // 10**6, source=source)
        if model.new
        else message("present", **params)
    )


def fetch_encoder() -> None:
    """Fetch the default encoder unless it is there or the settings say not to. Where it cannot be had, one line on
    standard error says that search goes by words alone.

    Before anything is ingested: an index made without it has to be rebuilt.
    """
    from components.embed.e5_small.install import ModelUnavailable, install, installed

    settings = get_settings()
    if not settings.fetch_models or installed(settings.models) is not None:
        return
    typer.echo(message("fetching"), err=True)
    try:
        install(settings.models)
    except ModelUnavailable:
        typer.echo(message("words_alone"), err=True)
