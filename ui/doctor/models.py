"""Checks of models: the encoder, the servers of the profiles in use, and the indexes built with the encoder."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from components.embed import install
from pipelines.ask import model_checks, model_servers, named_models, profiles
from pipelines.ask.model_checks import ModelResult
from pipelines.ask.named_models import NamedModel
from pipelines.ingest.usecase import Ingest
from settings import Settings
from tenants.accounts.registry import Registry
from tenants.core.context import Tenant, acting_as
from tenants.core.errors import OporaError
from tenants.knowledge import generations
from tenants.storage.diagnosis import database_state
from ui.doctor.finding import SECONDS, Finding, of_error, ok, problem, warning

_ADD = "opora models add e5-small"
_EMBED_SECONDS = 8.0
_NAMED = 5


def check_encoder(settings: Settings) -> Iterator[Finding]:
    """Check the embedder of search by meaning, that every index was built with it, and that it is where it belongs."""
    embedder = named_models.embedder()
    if embedder is None:
        yield ok("encoder", "encoder_none")
    elif embedder.name == install.MODEL:
        yield _local(settings)
    else:
        yield _served(embedder)
    rebuilds, moves = _due(settings)
    for code, due in (("rebuild_due", rebuilds), ("move_due", moves)):
        if due:
            rebuild = " && ".join(f"opora index rebuild --tenant {tenant}" for tenant in due[:_NAMED])
            yield warning("encoder", code, rebuild, count=len(due), tenants=", ".join(due[:_NAMED]))


def check_profiles(settings: Settings) -> Iterator[Finding]:
    for name in sorted(_profiles(settings)):
        try:
            profiles.check_file(name)
        except OporaError as error:
            yield of_error("profile", error)
        else:
            yield ok("profile", "profile", name=name)


def check_models(settings: Settings) -> Iterator[Finding]:
    """Check that the servers of the profiles in use answer and have their models. No language model is called."""
    seen: set[tuple[str, str]] = set()
    silent: set[str] = set()
    for name in sorted(_profiles(settings)):
        try:
            named = named_models.profile(name)
        except OporaError as unknown:
            yield of_error("models", unknown, "export OPORA_PROFILE=ollama")
            continue
        chat = [one for one in named.models if one.kind == "chat"]
        if not chat:
            yield ok("models", "models_none", profile=name)
        results: list[ModelResult] = []
        for one in chat:
            server = model_servers.server(one)
            if server in silent or (server, one.name) in seen:
                continue
            seen.add((server, one.name))
            results.append(ModelResult(one, 0, model_servers.lack(one, SECONDS)))
            if results[-1].fault not in (None, "model_missing"):
                silent.add(server)
        yield from (_listed(one, results) for one in results)


def _listed(result: ModelResult, results: Sequence[ModelResult]) -> Finding:
    if result.fault is None:
        return ok("models", "model", **_shown(result.model))
    # Gateways of the OpenAI protocol do not list every model that they serve.
    uncertain = result.fault == "model_missing" and result.model.provider != "ollama"
    return replace(_fault(result), status="warning" if uncertain else model_checks.status(result, results))


def _local(settings: Settings) -> Finding:
    model = install.installed(settings.models)
    if model is None:
        return warning("encoder", "encoder_missing", _ADD, folder=str(settings.models))
    if not install.intact(model):
        return problem("encoder", "encoder_damaged", _ADD, folder=str(model.folder))
    return ok("encoder", "encoder", name="e5-small", megabytes=model.bytes // 10**6)


def _served(embedder: NamedModel) -> Finding:
    result = model_checks.check_one(embedder, _EMBED_SECONDS)
    if result.fault is None:
        return ok("encoder", "embedder", dimensions=result.dimensions, **_shown(embedder))
    found = _fault(result)
    # A model that is still loading answers later.
    return replace(found, check="encoder", status="warning" if result.fault == "timeout" else "problem")


def _fault(result: ModelResult) -> Finding:
    key = f"models.fault.{result.fault}"
    return Finding("models", "problem", key, model_checks.fault_params(result), result.command)


def _shown(model: NamedModel) -> dict[str, str]:
    return {"model": model.name, "address": model_servers.shown_server(model)}


def _profiles(settings: Settings) -> set[str]:
    used = {settings.profile}
    for tenant in _tenants(settings):
        with acting_as(tenant):
            used.add(profiles.chosen())
    return used


def _due(settings: Settings) -> tuple[list[str], list[str]]:
    """Return the tenants whose index was built by other settings, and those whose size asks for another collection."""
    tenants, rebuilds, moves = _tenants(settings), [], []
    ingest = Ingest() if tenants else None
    for tenant in tenants:
        with acting_as(tenant):
            if ingest is not None and ingest.rebuild_due():
                rebuilds.append(tenant.tenant_id)
            if generations.move_due():
                moves.append(tenant.tenant_id)
    return sorted(rebuilds), sorted(moves)


def _tenants(settings: Settings) -> list[Tenant]:
    try:
        if database_state(settings, SECONDS).access != "current":
            return []
        return [Tenant(one.tenant_id, "doctor") for one in Registry().list()]
    except OporaError:
        return []
