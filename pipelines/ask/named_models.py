"""The models that each profile names, and whether they answer: for `/desk/settings/models`, `opora models test`."""

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from contextvars import copy_context
from dataclasses import dataclass
from secrets import token_hex
from time import monotonic
from typing import Any, Literal, TypeAlias
from urllib.parse import urlsplit

from haystack import Document
from haystack.dataclasses import ChatMessage

from components.embed.dense import EmbeddingFailed, embed_question, settings_of
from components.models.attempts import MAX_SHARE, attempt
from components.models.breaker import Upstream
from components.models.calls import CallOutcome, collect_calls
from components.models.chat import ChatModels
from components.models.failures import ModelFailed
from components.nested import from_description
from pipelines import definition
from pipelines.ask import profiles
from pipelines.ingest.usecase import current_path
from settings import get_settings
from tenants.core.errors import NotFound

Kind: TypeAlias = Literal["chat", "embedder", "ranker"]
Fault: TypeAlias = CallOutcome | Literal["key_missing", "files_missing", "unavailable"]
Description: TypeAlias = Mapping[str, Any]

TEST_SECONDS = 8.0
"""Time limit of a test, short because a person waits for it."""

_MODELS = "components.models.chat.ChatModels"
_RERANKER = "components.retrieve.model_reranker.ModelReranker"
_TIERS = ("fast", "strong", "fallback")
_SUFFIXES = ("ChatGenerator", "TextEmbedder", "Embedder", "CrossEncoder", "Ranker")


@dataclass(frozen=True, slots=True)
class NamedModel:
    """A model as a file names it; `address` is without user and password, empty where the file gives none."""

    kind: Kind
    role: str
    provider: str
    name: str
    address: str
    file: str
    description: Description
    around: Description


@dataclass(frozen=True, slots=True)
class Profile:
    """A profile and its models. `encoder_present` tells whether search by meaning can work."""

    name: str
    file: str
    models: tuple[NamedModel, ...]
    encoder_present: bool

    @property
    def has_language_model(self) -> bool:
        """Return whether answers are written by one."""
        return any(one.kind == "chat" for one in self.models)


@dataclass(frozen=True, slots=True)
class Tested:
    """Result of a small call of a model; `fault` is None on success."""

    model: NamedModel
    milliseconds: int
    fault: Fault | None


def listed() -> tuple[Profile, ...]:
    """Return all profiles of the installation."""
    return tuple(map(profile, get_settings().profiles))


def profile(name: str) -> Profile:
    """Return a profile. Raises `NotFound` (`profile_unknown`)."""
    if name not in (names := get_settings().profiles):
        raise NotFound("profile_unknown", name=name, names=", ".join(names))
    path = profiles.path_of(name)
    steps: Description = definition.load(path)["components"]
    file = path.relative_to(get_settings().pipelines_dir).as_posix()
    embedder = _embedder()
    models = (*_chat_models(steps, file), *_rankers(steps, file), *(() if embedder is None else (embedder,)))
    present = embedder is not None and bool(from_description(embedder.description, "embedder").available)
    return Profile(name, file, models, present)


def tested(named: Profile) -> tuple[Tested, ...]:
    """Test all models at once with a small call each, through the components of turns. Takes `TEST_SECONDS` at most.

    Call it in a tenant's context: the cost of the calls is recorded.
    """
    if not named.models:
        return ()
    with ThreadPoolExecutor(len(named.models), thread_name_prefix="model-test") as pool:
        return tuple(pool.map(lambda pair: pair[0].run(_tested, pair[1]), [(copy_context(), m) for m in named.models]))


def _tested(model: NamedModel) -> Tested:
    ways: Mapping[Kind, Callable[[NamedModel], Fault | None]] = {
        "chat": _ask,
        "embedder": _embed,
        "ranker": _rank,
    }
    started_at = monotonic()
    try:
        fault = ways[model.kind](model)
    except ModelFailed as failed:
        fault = failed.outcome
    return Tested(model, round((monotonic() - started_at) * 1_000), fault)


def _ask(model: NamedModel) -> Fault | None:
    models: ChatModels = from_description(model.around, "models")
    generator = getattr(models, model.role)
    key = getattr(generator, "api_key", None)
    if key is not None and key.resolve_value() is None:
        return "key_missing"
    forms = {"fast": models.schema_arguments[model.role]} if model.role in models.schema_arguments else {}
    alone = ChatModels(
        generator,
        timeout=min(models.timeout, TEST_SECONDS),
        failures=models.failures,
        pause=models.pause,
        concurrent=models.concurrent,
        prices=models.prices,
        schema_arguments=forms,
    )
    with closing(alone), collect_calls(monotonic() + TEST_SECONDS):
        alone.ask([ChatMessage.from_user("Reply with one word: OK")], step="test", prompt="test", temperature=0)
    return None


def _embed(model: NamedModel) -> Fault | None:
    embedder = from_description(model.description, "embedder")
    if not embedder.available:
        return "files_missing"
    try:
        with collect_calls(monotonic() + TEST_SECONDS / MAX_SHARE):
            embed_question(f"test {token_hex(4)}", settings_of(embedder))  # a unique text, because questions are cached
    except EmbeddingFailed as failed:
        cause = failed.__cause__
        return cause.outcome if isinstance(cause, ModelFailed) else "unavailable"
    return None


def _rank(model: NamedModel) -> Fault | None:
    ranker = from_description(model.description, "ranker")

    def ranked() -> None:
        if hasattr(ranker, "warm_up"):
            ranker.warm_up()
        ranker.run(query="delivery", documents=[Document(content="Delivery takes a day"), Document(content="Payment")])

    attempt("ranker", Upstream(1, 0, 1), ranked, TEST_SECONDS)
    return None


def _chat_models(steps: Description, file: str) -> Iterator[NamedModel]:
    seen: list[tuple[str, Description]] = []
    for found in _described(steps, _MODELS):
        for role in _TIERS:
            generator = found["init_parameters"].get(role)
            if generator is not None and (role, generator) not in seen:
                seen.append((role, generator))
                yield _named("chat", role, generator, file, found)


def _rankers(steps: Description, file: str) -> Iterator[NamedModel]:
    for found in _described(steps, _RERANKER):
        yield _named("ranker", "ranker", found["init_parameters"]["ranker"], file, found)


def _embedder() -> NamedModel | None:
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
    address = _public(str(inner.get("url") or inner.get("api_base_url") or ""))
    return NamedModel(kind, role, provider.lower(), str(inner.get("model", "")), address, file, description, around)


def _public(url: str) -> str:
    """Return an address without what may be secret in it: user, password, query."""
    parts = urlsplit(url)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment="").geturl()


def _described(node: object, kind: str) -> Iterator[Description]:
    """Yield all descriptions of a class below a node of a pipeline file."""
    if isinstance(node, dict):
        if node.get("type") == kind:
            yield node
        for part in node.values():
            yield from _described(part, kind)
    elif isinstance(node, list):
        for part in node:
            yield from _described(part, kind)
