"""`opora models`: the embedding model, its download on the first start, and health checks of language models."""

import logging
from collections.abc import Sequence
from typing import Annotated

import typer

from components.embed import install
from components.embed.install import ModelUnavailable
from components.language.texts import terminal_locale, text
from pipelines.ask import model_checks, named_models, profiles
from pipelines.ask.model_checks import ModelResult
from settings import get_settings
from tenants.core.errors import NotFound
from ui.cli.terminal import CommandGroup, Json, TenantOption, acting_for, first_tenant, print_finding, print_json

E5_SMALL = "e5-small"
_LOADING_SECONDS = 180.0
"""Time limit of a test: a large model is loaded from a slow disk within it."""


group = CommandGroup("models")
message = group.message


@group.installation_command("add")
def add(
    name: Annotated[str, typer.Argument(help=message("help.name"))] = E5_SMALL,
    source: Annotated[str, typer.Option("--from", metavar="PATH|URL", help=message("help.source"))] = "",
    as_json: Json = False,
) -> None:
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


def _print_results(results: Sequence[ModelResult]) -> None:
    for one in results:
        role = text(f"desk.settings.models.role.{one.model.role}", terminal_locale())
        words = model_checks.explained(one, terminal_locale())
        print_finding(model_checks.status(one, results), f"{role}, {one.model.name}", words, one.command)


@group.installation_command("test")
def call_models(
    profile: Annotated[str, typer.Argument(help=message("help.profile"))] = "",
    tenant: TenantOption = "",
    as_json: Json = False,
) -> None:
    logging.getLogger("opora.models").setLevel(logging.ERROR)  # the results say what failed
    with acting_for(first_tenant(tenant)) as acting:
        named = named_models.profile(profile or profiles.chosen())
        origin = "named" if profile else "of_policy" if profiles.is_own() else "of_installation"
        profiles.check_file(named.name)
        results = model_checks.check(named, _LOADING_SECONDS)
    if as_json:
        print_json([_as_json(one) | {"status": model_checks.status(one, results)} for one in results])
    else:
        typer.echo(message(f"test.{origin}", profile=named.name, tenant=acting.tenant_id))
        _print_results(results)
        if not results:
            typer.echo(message("test.none", profile=named.name))
    if any(model_checks.status(one, results) == "problem" for one in results):
        raise typer.Exit(1)


def _as_json(result: ModelResult) -> dict[str, object]:
    model = {name: getattr(result.model, name) for name in ("kind", "role", "provider", "name", "address", "file")}
    measured = ("milliseconds", "first_token_ms", "tokens_per_second", "dimensions", "fault", "command")
    return model | {name: getattr(result, name) for name in measured}


def fetch_encoder() -> None:
    """Download the default encoder if indexes are built with it, unless it is installed or the settings forbid it.

    On failure, one line on standard error says that search is by keywords only.

    Call it before ingesting: an index built without the encoder has to be rebuilt.
    """
    settings = get_settings()
    embedder = named_models.embedder()
    if embedder is None or embedder.name != install.MODEL:
        return
    if not settings.fetch_models or install.installed(settings.models) is not None:
        return
    typer.echo(message("fetching"), err=True)
    try:
        install.install(settings.models)
    except ModelUnavailable:
        typer.echo(message("words_alone"), err=True)
