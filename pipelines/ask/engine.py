"""The ask pipeline, loaded from its YAML and run for one turn."""

import asyncio
import json
import sys
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from types import MappingProxyType
from typing import Any

from haystack import Pipeline
from haystack.core.errors import PipelineRuntimeError

from components.faults import collect_degraded
from components.retrieve.retriever import haystack_filters
from components.turn import PASSES, Quality, Turn
from pipelines.ask.parts import with_parts
from pipelines.definition import ALLOWED_MODULES, TURN_INPUTS, load, with_overlay

YAML = Path(__file__).with_name("ask.yaml")


class NotRunnable(RuntimeError):
    """A pipeline cannot be loaded or warmed up, or a mandatory input has no value: no question can be answered.

    The message is of the file, the component or Haystack, none of which has got the question: logs may quote it.
    """


class AskEngine:
    """Runs turns through the pipeline. Thread-safe once warm: components keep no state between turns.

    Call `run` inside a tenant's context.

    :param path: the pipeline file, or a profile that is laid over one. Its `metadata` names the step that ends a turn
        (`exit`) and says whether each question of a message takes another run (`in_parts`).
    :param thresholds: the `threshold` of steps, by their name, in place of the file's.
    """

    def __init__(self, path: Path = YAML, thresholds: Mapping[str, float] = MappingProxyType({})) -> None:
        changed = {step: {"init_parameters": {"threshold": value}} for step, value in thresholds.items()}
        definition = with_overlay(load(path), {"components": changed})
        self.pipeline = Pipeline.from_dict(definition, allowed_modules=ALLOWED_MODULES)
        _share_context()
        for _, component in self.pipeline.walk():
            if hasattr(component, "run_async"):
                # Each turn has its own event loop, and an async client works only on the loop that opened it.
                vars(component)["run_async"] = None
        self._exit = str(definition["metadata"]["exit"])
        self._in_parts = bool(definition["metadata"].get("in_parts"))
        self._passes = _passes(self.pipeline)
        self.digest = _digest(definition)

    def warm_up(self) -> None:
        self.pipeline.warm_up()

    def run(self, turn: Turn) -> Turn:
        """Return the finished turn.

        Steps that do not wait for each other, such as the two judges of an answer, run at the same time.

        :raises NotRunnable: the pipeline or its environment is incomplete.
        :raises PipelineRuntimeError: a component raised; its exception is the cause.
        :raises PipelineMaxComponentRuns: a loop does not end.
        """
        finished = self._run(turn)
        return with_parts(turn, finished, self._run) if self._in_parts else finished

    def _run(self, turn: Turn) -> Turn:
        values: dict[str, Any] = {
            "question": turn.question,
            "history": list(turn.history),
            "context": turn.context,
            "filters": haystack_filters(turn.filters),
            "locale": turn.locale,
            "quality": turn.quality,
        }
        data = {
            name: {socket: values[socket] for socket in sockets if socket in TURN_INPUTS}
            for name, sockets in self.pipeline.inputs().items()
        }
        with collect_degraded() as failed:
            try:
                outputs = asyncio.run(self._outputs(data))
            except PipelineRuntimeError as error:
                error.pipeline_snapshot = None  # it quotes the question
                raise
        found: Turn | None = outputs.get(self._exit, {}).get("turn")
        if found is None:
            raise RuntimeError("the pipeline ended without an outcome")
        return replace(
            found,
            turn_id=turn.turn_id,
            session_id=turn.session_id,
            quality=turn.quality,
            filters=turn.filters,
            context=turn.context,
            max_passes=self._passes[turn.quality],
            degraded=tuple(dict.fromkeys((*turn.degraded, *failed))),
        )

    async def _outputs(self, data: dict[str, dict[str, Any]]) -> dict[str, Any]:
        try:
            await self.pipeline.warm_up_async()
            self.pipeline.validate_input(data)
        except Exception as error:
            raise NotRunnable(str(error)) from error
        return await self.pipeline.run_async(data, include_outputs_from={self._exit})

    def close(self) -> None:
        self.pipeline.close()
        for _, component in self.pipeline.walk():
            for holder in _closable(component):
                holder.close()


class _ContextPool(ThreadPoolExecutor):
    """A thread pool whose threads know the tenant and the turn of the caller."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:  # noqa: ANN401
        return super().submit(copy_context().run, fn, *args, **kwargs)


def _share_context() -> None:
    """Let stock components that start threads work for the tenant of the turn.

    Those of Haystack 3.4, such as `MultiQueryEmbeddingRetriever`, start them in an empty context. Haystack copies the
    context elsewhere since deepset-ai/haystack#9433 and #9717.
    """
    for name, module in tuple(sys.modules.items()):
        is_stock = name.startswith(("haystack.components.", "haystack_integrations.components."))
        if is_stock and vars(module).get("ThreadPoolExecutor") is ThreadPoolExecutor:
            vars(module)["ThreadPoolExecutor"] = _ContextPool


def _passes(pipeline: Pipeline) -> Mapping[Quality, int]:
    budgets = [one.passes for _, one in pipeline.walk() if hasattr(one, "passes")]
    return {quality: max((budget[quality] for budget in budgets), default=PASSES[quality]) for quality in PASSES}


def _closable(holder: object) -> Iterator[Any]:
    """Yield the parts of our components that need closing: models, rankers, embedders."""
    if type(holder).__module__.startswith("components."):
        for part in getattr(holder, "__dict__", {}).values():
            if hasattr(part, "close"):
                yield part
            else:
                yield from _closable(part)


def _digest(definition: object) -> str:
    """Return a digest of the behaviour that a pipeline file defines, independent of comments and layout."""
    return sha256(json.dumps(definition, sort_keys=True).encode()).hexdigest()[:16]
