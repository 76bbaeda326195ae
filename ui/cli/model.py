"""`opora models`: the embedding model, its download on the first start, and health checks of language models."""

from collections.abc import Sequence
from typing import Annotated

import typer

from components.embed import install
from components.embed.install import ModelUnavailable
from pipelines.ask import named_models, profiles
from pipelines.ask.named_models import Tested
from settings import get_settings
from tenants.core.errors import NotFound
from ui.cli.terminal import CommandGroup, Json, print_json, print_table

E5_SMALL = "e5-small"


group = CommandGroup("models")
message = group.message


@group.installation_command("add")
def add(
    name: Annotated[str, typer.Argument(help=message("help.name"))] = E5_SMALL,
    source: Annotated[str, typer.Option("--from", metavar="PATH|URL", help=message("help.source"))] = "",
    as_json: Json = False,
) -> None:
    """Install a model. Without a source, keep an intact one."""
    if name != E5_SMALL:
        raise NotFound("model_unknown", name=name, known=E5_SMALL)
    typer.echo(message("fetching"), err=True)
    model = install.install(get_settings().models, source)
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


def _print_tested(results: Sequence[Tested]) -> None:
    rows = (
        (
            one.model.name,
            one.model.provider,
            one.model.address,
            message(f"fault.{one.fault}") if one.fault else message("test.answered", milliseconds=one.milliseconds),
        )
        for one in results
    )
    print_table((message(f"test.{column}") for column in ("model", "provider", "address", "result")), rows)


@group.tenant_command("test")
def call_models(
    profile: Annotated[str, typer.Argument(help=message("help.profile"))] = "", as_json: Json = False
) -> None:
    """Call each model of a profile once. Exits with 1 if one does not answer."""
    results = named_models.tested(named_models.profile(profile or profiles.chosen()))
    if as_json:
        print_json([_as_json(one) for one in results])
    else:
        _print_tested(results)
    if any(one.fault for one in results):
        raise typer.Exit(1)


def _as_json(result: Tested) -> dict[str, object]:
    named = ("kind", "role", "provider", "name", "address", "file")
    fields = {name: getattr(result.model, name) for name in named}
    return {**fields, "milliseconds": result.milliseconds, "fault": result.fault}


def fetch_encoder() -> None:
    """Download the default encoder, unless it is installed or the settings forbid it. On failure, one line on standard
    error says that search is by keywords only.

    Call it before ingesting: an index built without the encoder has to be rebuilt.
    """
    settings = get_settings()
    if not settings.fetch_models or install.installed(settings.models) is not None:
        return
    typer.echo(message("fetching"), err=True)
    try:
        install.install(settings.models)
    except ModelUnavailable:
        typer.echo(message("words_alone"), err=True)
