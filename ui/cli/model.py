"""`opora models`: the embedding model, its download on the first start, and health checks of language models."""

from typing import Annotated

import typer

from components.language.texts import terminal_locale, text
from settings import get_settings
from tenants.core.errors import NotFound
from ui.cli.terminal import DEFAULT_TENANT, Group, Json, TenantOption, acting_for, print_json, terminal_console

E5_SMALL = "e5-small"


def message(key: str, **params: str | int) -> str:
    """Return a text of these commands in the terminal's language."""
    return text(f"models.{key}", terminal_locale(), **params)


app = typer.Typer(cls=Group, help=message("help.group"), no_args_is_help=True)


@app.command("add", help=message("help.add"))
def add(
    name: Annotated[str, typer.Argument(help=message("help.name"))] = E5_SMALL,
    source: Annotated[str, typer.Option("--from", metavar="PATH|URL", help=message("help.source"))] = "",
    as_json: Json = False,
) -> None:
    """Install a model. Without a source, keep an intact one."""
    from components.embed.install import install

    if name != E5_SMALL:
        raise NotFound("model_unknown", name=name, known=E5_SMALL)
    typer.echo(message("fetching"), err=True)
    model = install(get_settings().models, source)
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


@app.command("test", help=message("help.test"))
def call_models(
    profile: Annotated[str, typer.Argument(help=message("help.profile"))] = "",
    tenant: TenantOption = DEFAULT_TENANT,
    as_json: Json = False,
) -> None:
    """Call each model of a profile once. Exits with 1 if one does not answer."""
    with acting_for(tenant):
        from pipelines.ask import named_models, profiles

        results = named_models.tested(named_models.profile(profile or profiles.chosen()))
    if as_json:
        print_json(
            [
                {
                    "kind": one.model.kind,
                    "role": one.model.role,
                    "provider": one.model.provider,
                    "name": one.model.name,
                    "address": one.model.address,
                    "file": one.model.file,
                    "milliseconds": one.milliseconds,
                    "fault": one.fault,
                }
                for one in results
            ]
        )
    else:
        from rich.table import Table

        table = Table(*(message(f"test.{column}") for column in ("model", "provider", "address", "result")))
        for one in results:
            answered = message("test.answered", milliseconds=one.milliseconds)
            result = message(f"fault.{one.fault}") if one.fault else answered
            table.add_row(one.model.name, one.model.provider, one.model.address, result)
        terminal_console().print(table)
    if any(one.fault for one in results):
        raise typer.Exit(1)


def fetch_encoder() -> None:
    """Download the default encoder, unless it is installed or the settings forbid it. On failure, one line on standard
    error says that search is by keywords only.

    Call it before ingesting: an index built without the encoder has to be rebuilt.
    """
    from components.embed.install import ModelUnavailable, install, installed

    settings = get_settings()
    if not settings.fetch_models or installed(settings.models) is not None:
        return
    typer.echo(message("fetching"), err=True)
    try:
        install(settings.models)
    except ModelUnavailable:
        typer.echo(message("words_alone"), err=True)
