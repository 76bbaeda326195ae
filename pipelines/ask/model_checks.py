"""Tests of the models that a profile names, for `/desk/settings/models` and `opora models test`.

A chat model streams a short reply and fills in a form, an embedder returns a vector, a ranker orders two documents.
"""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass, field
from secrets import token_hex
from time import monotonic
from typing import Literal, TypeAlias

from haystack import Document
from haystack.dataclasses import ChatMessage
from pydantic import ValidationError

from components.embed.protocol import known_dimensions
from components.language.texts import number, text
from components.models.attempts import attempt
from components.models.breaker import Upstream
from components.models.call_format import Generator
from components.models.calls import CallOutcome, collect_calls
from components.models.chat import ChatModels
from components.models.failures import ModelFailed
from components.models.structured import Form, parsed
from components.serialisation import from_description
from pipelines.ask import model_servers
from pipelines.ask.model_servers import Lack
from pipelines.ask.named_models import STOCK, Kind, NamedModel, Profile

Fault: TypeAlias = (
    CallOutcome
    | Lack
    | Literal["schema_ignored", "dimensions_differ", "dimensions_misdeclared", "dimensions_foreign", "files_missing"]
)

CHECK_SECONDS = 60.0
"""Time limit of a test while a person waits at the desk; most models are loaded within it."""

_LISTING_SECONDS = 5.0
_COUNT = "Write the numbers from 1 to 20, separated by spaces."
_QUESTION = "What is the capital of France?"


class _Answer(Form):
    """The question does not name these fields: a reply that has them follows the schema."""

    capital: str
    is_in_europe: bool


@dataclass(frozen=True, slots=True)
class ModelResult:
    """Result of a test. A success has no fault; values that were not measured are 0.

    :param dimensions: numbers of the vector that an embedder returned.
    """

    model: NamedModel
    milliseconds: int
    fault: Fault | None
    first_token_ms: int = 0
    tokens_per_second: float = 0.0
    dimensions: int = 0

    @property
    def command(self) -> str:
        return model_servers.command(self.model, self.fault) if self.fault else ""


def check(named: Profile, seconds: float = CHECK_SECONDS) -> tuple[ModelResult, ...]:
    """Test all models at once, through the components of turns. Takes `seconds` at most.

    Call it in a tenant's context: the cost of the calls is recorded.
    """
    if not named.models:
        return ()
    with ThreadPoolExecutor(len(named.models), thread_name_prefix="model-test") as pool:
        contexts = [(copy_context(), model) for model in named.models]
        return tuple(pool.map(lambda pair: pair[0].run(check_one, pair[1], seconds), contexts))


def status(result: ModelResult, results: Sequence[ModelResult]) -> Literal["ok", "warning", "problem"]:
    """Return how serious a result is: a missing model is no problem where another one answers its questions."""
    if result.fault is None:
        return "ok"
    answering = any(one.fault is None and one.model.kind == "chat" for one in results)
    if result.model.role == STOCK:
        # Not every component of Haystack needs JSON, but all need their model.
        return "warning" if result.fault == "schema_ignored" else "problem"
    is_optional = result.model.kind == "chat" and result.fault == "model_missing"
    return "warning" if is_optional and answering else "problem"


def explained(result: ModelResult, locale: str) -> str:
    """Return the result in words: what was measured, or what is wrong and which setting it concerns."""
    model = result.model
    if result.fault is None:
        in_one_piece = model.kind == "chat" and not result.tokens_per_second
        return text(
            "models.test.chat_at_once" if in_one_piece else f"models.test.{model.kind}",
            locale,
            milliseconds=number(result.milliseconds, locale=locale),
            first=number(result.first_token_ms / 1_000, 1, locale=locale),
            rate=number(result.tokens_per_second, locale=locale),
            dimensions=result.dimensions,
        )
    return text(f"models.fault.{result.fault}", locale, **fault_params(result))


def fault_params(result: ModelResult) -> Mapping[str, str | int]:
    model = result.model
    return {
        "model": model.name,
        "address": model_servers.shown_server(model),
        "setting": "OPORA_OLLAMA_URL" if model.provider == "ollama" else "api_base_url",
        "variable": " / ".join(model_servers.variables(model)),
        "file": model.file,
        "dimensions": result.dimensions,
        "declared": model.description.get("init_parameters", {}).get("dimensions", 0),
    }


class _CheckFailed(Exception):
    def __init__(self, fault: Fault, dimensions: int = 0) -> None:
        super().__init__(fault)
        self.fault: Fault = fault
        self.dimensions = dimensions


def check_one(model: NamedModel, seconds: float) -> ModelResult:
    """Test one model, in a tenant's context if it is a language model."""
    ways: Mapping[Kind, Callable[[NamedModel, float], Mapping[str, float]]] = {
        "chat": _ask,
        "embedder": _embed,
        "ranker": _rank,
    }
    started_at, dimensions = monotonic(), 0
    fault: Fault | None = None
    measured: Mapping[str, float] = {}
    try:
        measured = ways[model.kind](model, seconds)
    except ModelFailed as failed:
        # The call itself does not tell a missing model from a missing server.
        fault = model_servers.lack(model, _LISTING_SECONDS) or failed.outcome
    except _CheckFailed as failed:
        fault, dimensions = failed.fault, failed.dimensions
    spent = round((monotonic() - started_at) * 1_000)
    return ModelResult(
        model,
        spent,
        fault,
        round(measured.get("first_token_ms", 0)),
        measured.get("tokens_per_second", 0.0),
        int(measured.get("dimensions", dimensions)),
    )


@dataclass(slots=True)
class _Pace:
    """Times of the pieces of a streamed reply; servers send a token in each."""

    started_at: float = field(default_factory=monotonic)
    times: list[float] = field(default_factory=list)

    def add(self, piece: str) -> None:  # noqa: ARG002 - a callback for text
        self.times.append(monotonic())

    def measured(self) -> Mapping[str, float]:
        taken = self.times[-1] - self.times[0]
        rate = (len(self.times) - 1) / taken if taken else 0.0
        return {"first_token_ms": (self.times[0] - self.started_at) * 1_000, "tokens_per_second": rate}


def _ask(model: NamedModel, seconds: float) -> Mapping[str, float]:
    models: ChatModels = from_description(model.around, "models")
    generator = models.fast if model.role == STOCK else getattr(models, model.role)
    if not _has_key(generator):
        raise _CheckFailed("key_missing")
    forms = {"fast": models.schema_arguments[model.role]} if model.role in models.schema_arguments else {}
    alone = ChatModels(
        generator,
        timeout=models.timeout,
        loading=models.loading,
        failures=models.failures,
        pause=models.pause,
        concurrent=models.concurrent,
        prices=models.prices,
        schema_arguments=forms,
    )
    pace = _Pace()
    try:
        with collect_calls(monotonic() + seconds):
            alone.ask([ChatMessage.from_user(_COUNT)], step="test", prompt="test", temperature=0, on_text=pace.add)
            schema, question = _Answer.model_json_schema(), [ChatMessage.from_user(_QUESTION)]
            reply = alone.ask(question, step="test", prompt="test", temperature=0, schema=schema)
    except ModelFailed as failed:
        if failed.outcome != "timeout":  # closing the connection would abort the load of a model
            alone.close()
        raise
    alone.close()
    try:
        parsed(_Answer, reply)
    except ValidationError as wrong:
        raise _CheckFailed("schema_ignored") from wrong
    return pace.measured()


def _has_key(generator: Generator) -> bool:
    key = getattr(generator, "api_key", None)
    try:
        return key is None or key.resolve_value() is not None
    except ValueError:  # of Haystack, if the key is mandatory
        return False


def _embed(model: NamedModel, seconds: float) -> Mapping[str, float]:
    embedder = from_description(model.description, "embedder")
    if not embedder.available:
        raise _CheckFailed("files_missing")
    vector = attempt("embedder", Upstream(1, 0, 1), lambda: embedder.question(f"test {token_hex(4)}"), seconds)
    if len(vector) != embedder.dimensions:
        raise _CheckFailed(_difference(model.name, len(vector), embedder.dimensions), len(vector))
    return {"dimensions": len(vector)}


def _difference(model: str, dimensions: int, declared: int) -> Fault:
    """Return which side is wrong, as far as the model is known: the file, or the server."""
    known = known_dimensions(model)
    if known == dimensions:
        return "dimensions_misdeclared"
    return "dimensions_foreign" if known == declared else "dimensions_differ"


def _rank(model: NamedModel, seconds: float) -> Mapping[str, float]:
    ranker = from_description(model.description, "ranker")

    def ranked() -> None:
        if hasattr(ranker, "warm_up"):
            ranker.warm_up()
        ranker.run(query="delivery", documents=[Document(content="Delivery takes a day"), Document(content="Payment")])

    attempt("ranker", Upstream(1, 0, 1), ranked, seconds)
    return {}
