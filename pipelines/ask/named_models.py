"""The models that each profile names."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias
from urllib.parse import urlsplit

from components.serialisation import from_description
from pipelines import definition
from pipelines.ask import profiles
from pipelines.definition import components_of_type
from pipelines.ingest.usecase import current_path
from settings import get_settings
from tenants.core.errors import NotFound

Kind: TypeAlias = Literal["chat", "embedder", "ranker"]
Description: TypeAlias = Mapping[str, Any]

_MODELS = "components.models.chat.ChatModels"
STOCK = "stock"
"""The role of a generator that a component of Haystack calls."""
_TIERS = ("fast", "strong", "fallback")
_SUFFIXES = ("ChatGenerator", "TextEmbedder", "Embedder", "CrossEncoder", "Ranker")


@dataclass(frozen=True, slots=True)
class NamedModel:
    """A model as a file names it; `address` is without user and password, empty where the file gives none.

    :param description: the component that calls the model or contains its callers.
    :param around: the component that `description` is a parameter of.
    :param parameters: parameters of the component that calls the model; do not show them.
    """

    kind: Kind
    role: str
    provider: str
    name: str
    address: str
    file: str
    description: Description
    around: Description
    parameters: Description


@dataclass(frozen=True, slots=True)
class Profile:
    """A profile and its models. `encoder_present` tells whether search by meaning can work."""

    name: str
    file: str
    models: tuple[NamedModel, ...]
    encoder_present: bool

    @property
    def has_language_model(self) -> bool:
        return any(one.kind == "chat" for one in self.models)


def listed() -> tuple[Profile, ...]:
    return tuple(map(profile, get_settings().profiles))


def profile(name: str) -> Profile:
    if name not in (names := get_settings().profiles):
        raise NotFound("profile_unknown", name=name, names=", ".join(names))
    path = profiles.path_of(name)
    steps: Description = definition.load(path)["components"]
    file = path.relative_to(get_settings().pipelines_dir).as_posix()
    searching = embedder()
    models = (*_chat_models(steps, file), *_rankers(steps, file), *(() if searching is None else (searching,)))
    present = searching is not None and bool(from_description(searching.description, "embedder").available)
    return Profile(name, file, models, present)


def _chat_models(steps: Description, file: str) -> Iterator[NamedModel]:
    seen: list[tuple[str, Description]] = []
    for found in components_of_type(steps, "ChatModels"):
        for role in _TIERS:
            generator = found["init_parameters"].get(role)
            if generator is not None and (role, generator) not in seen:
                seen.append((role, generator))
                yield _named("chat", role, generator, file, found)
    # Haystack's own components call generators that belong to no group of models.
    for generator in _stock_generators(steps):
        if generator not in [one for _, one in seen]:
            seen.append((STOCK, generator))
            yield _named("chat", STOCK, generator, file, {"type": _MODELS, "init_parameters": {"fast": generator}})


def _stock_generators(node: object) -> Iterator[Description]:
    """Yield the descriptions of generators below a node, other than those of `ChatModels`."""
    if isinstance(node, dict):
        if node.get("type") == _MODELS:
            return
        if str(node.get("type", "")).endswith("ChatGenerator") and "model" in (node.get("init_parameters") or {}):
            yield node
        for part in node.values():
            yield from _stock_generators(part)
    elif isinstance(node, list):
        for part in node:
            yield from _stock_generators(part)


def _rankers(steps: Description, file: str) -> Iterator[NamedModel]:
    """Yield the steps that run a ranking model themselves; a ranker that calls a chat model is listed by that."""
    for step in steps.values():
        said = step.get("init_parameters") or {}
        if str(step.get("type", "")).endswith("Ranker") and {"model", "model_name"} & set(said):
            yield _named("ranker", "ranker", step, file, step)


def embedder() -> NamedModel | None:
    """Return the installation's embedder; None where search uses words only."""
    path = current_path()
    writer = definition.load(path)["components"]["writer"]["init_parameters"]
    if not writer.get("embedder"):
        return None
    file = path.relative_to(get_settings().pipelines_dir).as_posix()
    return _named("embedder", "embedder", writer["embedder"], file, writer)


def _named(kind: Kind, role: str, description: Description, file: str, around: Description) -> NamedModel:
    said = description.get("init_parameters", {})
    caller = said.get("questions_by", description)  # Haystack's embedders are nested in ours
    inner = {**said, **caller.get("init_parameters", {})}
    provider = caller["type"].rpartition(".")[2]
    for suffix in _SUFFIXES:
        provider = provider.removesuffix(suffix)
    address = public_address(str(inner.get("url") or inner.get("api_base_url") or ""))
    name = str(inner.get("model") or inner.get("model_name") or "")
    return NamedModel(kind, role, provider.lower(), name, address, file, description, around, inner)


def public_address(url: str) -> str:
    """Return an address without what may be secret in it: user, password, query."""
    parts = urlsplit(url)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment="").geturl()
