"""The real ask pipelines over scripted searches, with scripted models."""

from collections.abc import Mapping, Sequence
from copy import copy
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

from haystack import Document, Pipeline, component

from components.models.chat import ChatModels
from components.passages import relevance
from components.turn import Exchange, Quality, Turn
from pipelines.ask.engine import AskEngine
from pipelines.ask.profiles import path_of
from pipelines.definition import ALLOWED_MODULES, load
from tests.models import ScriptedModels
from tests.turns import document

QUESTION = "Сколько длится гарантия с доставкой?"
"""No scripted document holds anything about delivery, so that something is always missing."""

Pass: TypeAlias = Mapping[str, float]
"""The relevance of each document that a pass finds, by its id."""


@component
class ScriptedRetriever:
    """Finds what the script says for each pass; the last pass is repeated."""

    def __init__(self, passes: Sequence[Pass]) -> None:
        self.passes = passes
        self.searched: list[list[str]] = []

    @component.output_types(documents=list[Document], cached=bool)
    def run(
        self,
        query: str,
        variants: list[str] | None = None,
        queries: list[str] | None = None,
        filters: dict[str, Any] | None = None,
    ) -> dict[str, Any]:
        found = self.passes[min(len(self.searched), len(self.passes) - 1)]
        self.searched.append([query, *(queries or ())])
        return {"documents": [document(text_of(one), one, relevance=score) for one, score in found.items()]}


@component
class RelevanceRanker:
    """Orders documents by the relevance that the script has given them."""

    @component.output_types(documents=list[Document])
    def run(self, query: str, documents: list[Document]) -> dict[str, list[Document]]:
        return {"documents": sorted(documents, key=lambda one: -relevance(one))}


@component
class Unexpanded:
    """Returns its documents: the script has no sections."""

    @component.output_types(documents=list[Document])
    def run(self, documents: list[Document]) -> dict[str, list[Document]]:
        return {"documents": documents}


def text_of(chunk_id: str) -> str:
    """Return the text of a scripted document; no two are near duplicates."""
    return f"Гарантия по документу {chunk_id} длится {int(chunk_id, 36)} дней."


def play(
    passes: Sequence[Pass],
    quality: Quality = "balanced",
    models: ScriptedModels | None = None,
    history: Sequence[Exchange] = (),
) -> tuple[Turn, ScriptedRetriever]:
    """Return the finished turn and its searches, of the embedded pipeline, or of the profile `ollama` with these
    models."""
    retriever, path = ScriptedRetriever(passes), path_of("ollama" if models else "embedded")
    engine = copy(_engine(path))
    engine.pipeline = Pipeline.from_dict(
        load(path),
        allowed_modules=ALLOWED_MODULES,
        components={"retrieve": retriever, "rank": RelevanceRanker(), "expand": Unexpanded()},
    )
    if models is not None:
        for _, step in engine.pipeline.walk():
            _equip(step, models)
    return engine.run(Turn("t", QUESTION, quality=quality, history=tuple(history))), retriever


@cache
def _engine(path: Path) -> AskEngine:
    return AskEngine(path)


def _equip(holder: object, models: ChatModels) -> None:
    """Connect everything below a component to these models."""
    for name, part in vars(holder).items():
        if isinstance(part, ChatModels):
            setattr(holder, name, models)
        elif type(part).__module__.startswith("components.") and hasattr(part, "__dict__"):
            _equip(part, models)
