"""`python -m evaluation.bench.real_models --url URL`: what a real model makes of whole turns.

The cases of the demo shop and questions of the answer key of VK Cloud go through the profile `openai` to a server of
OpenAI's protocol, such as llama.cpp's, and through the embedded profile for comparison. Counted are, by kind of call,
replies of the form that was asked for, replies that go round in circles and seconds; by engine what was shown, whether
the passages cited bear it out, whether it is right by the key, and whether a labelled passage was in a prompt. Without
`--url` the simulator is asked. Tables go to standard error, every turn with its calls as JSON Lines to standard output;
the exit code is 1 when something was shown that no passage bears out.
"""

import json
import os
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic, perf_counter
from typing import Annotated, Literal, TypeAlias

import httpx
import numpy as np
import typer
import yaml
from haystack.core.serialization import allow_deserialization_module
from rich.console import Console
from rich.table import Table

from components.models.calls import collect_calls
from components.turn import Turn
from evaluation import workspace
from evaluation.asking import recorded
from evaluation.bench.recording import RecordingModels, Reply, record_replies
from evaluation.cases import ANSWERS, Case, Page, QuestionSet, Record
from evaluation.datasets.answer_keys import vkcloud_answers
from evaluation.datasets.fixture import fixture
from evaluation.datasets.rows import DATA
from evaluation.metrics.answer_key import grade, grade_turn
from evaluation.metrics.answers import has_facts
from evaluation.metrics.shown import passages, unentailed
from evaluation.simulator.adapted import adapt
from evaluation.simulator.running import simulator_thread
from pipelines.ask.answering import answer_of
from pipelines.ask.contract import AskRequest
from pipelines.ask.engine import YAML, AskEngine
from pipelines.ask.runner import for_models
from pipelines.ask.usecase import Ask, begin
from settings import get_settings
from tenants.context import acting_as

_TIERS = ("fast", "strong", "fallback")
_PROFILE = "openai"
_PATIENCE = 1_000
_WIDTH = 150

Engine: TypeAlias = Literal["embedded", "models"]


@dataclass(frozen=True, slots=True)
class TurnReport:
    """One turn: what was shown, what is wrong with it, and the calls that it took.

    `right` is by the answer key, or as a case of the demo shop demands. `reached` says whether a labelled passage was
    in a prompt, which it was not where no model was asked; None where the question has none, or none could be asked.
    """

    engine: Engine
    case_id: str
    question: str
    outcome: str
    text: str
    degraded: tuple[str, ...]
    seconds: float
    answerable: bool | None
    claimed: bool
    right: bool
    reached: bool | None
    unsupported: tuple[str, ...]
    replies: tuple[Reply, ...] = ()


def main(
    url: Annotated[str, typer.Option(help="Of the server, without /v1; the simulator when empty.")] = "",
    questions: Annotated[int, typer.Option(help="Questions of the key, spread over all of it; 0: all.")] = 40,
    limit: Annotated[int, typer.Option(help="Most questions of each set, the first of them; 0: all.")] = 0,
    seconds: Annotated[float, typer.Option(help="Time budget of a turn.")] = 600.0,
    reply_tokens: Annotated[int, typer.Option(help="Longest reply of the model.")] = 700,
    rules_judge: Annotated[bool, typer.Option(help="The model writes; rules judge.")] = False,
    with_shop: Annotated[bool, typer.Option(help="The cases of the demo shop as well.")] = True,
) -> None:
    """Ask, count and print."""
    allow_deserialization_module("evaluation.bench.recording")
    os.environ.setdefault("OPENAI_API_KEY", "none")  # the client demands one, local servers do not
    workspace.enter(get_settings().data_dir.resolve() / "evaluation")
    sets = [*([fixture()] if with_shop else []), _key(questions)]
    with ExitStack() as stack:
        server = url.rstrip("/") or stack.enter_context(simulator_thread())[1]
        folder = Path(stack.enter_context(TemporaryDirectory()))
        profile = _adapted(folder, server, seconds, reply_tokens, rules_judge=rules_judge)
        reports: list[TurnReport] = []
        paths: dict[Engine, Path] = {"embedded": YAML, "models": profile}
        for engine, path in paths.items():
            ask = stack.enter_context(closing(Ask(AskEngine(path))))
            ask.warm_up()
            for chosen in sets:
                reports += _reports(engine, ask, chosen, limit, seconds)
    _print(Console(stderr=True, width=_WIDTH), reports)
    sys.exit(int(any(turn.unsupported for turn in reports)))


def _key(most: int) -> QuestionSet:
    """Questions spread evenly over the key."""
    (whole,) = vkcloud_answers(DATA)
    step = max(1, len(whole.cases) // most) if most else 1
    return QuestionSet(whole.name, whole.corpus, whole.cases[::step][: most or None])


def _adapted(folder: Path, url: str, seconds: float, reply_tokens: int, *, rules_judge: bool) -> Path:
    """The profile of these models: their name, no limits but the turn's, and every reply recorded."""
    listed = httpx.get(f"{url}/v1/models", timeout=30).raise_for_status().json()["data"]
    model = str(listed[0]["id"])
    adapt(folder, url, _PROFILE, dict.fromkeys(_TIERS, model), timeout=seconds, concurrent=1, failures=_PATIENCE)
    path = folder / "ask" / "profiles" / f"{_PROFILE}.yaml"
    whole = yaml.safe_load(path.read_text(encoding="utf-8"))
    for node in _nodes(whole):
        kind = str(node.get("type", ""))
        if kind.endswith(".ChatModels"):
            node["type"] = f"{RecordingModels.__module__}.{RecordingModels.__name__}"
        elif kind.endswith(".OpenAIChatGenerator"):
            parameters = node["init_parameters"]
            if isinstance(parameters, dict):
                parameters["generation_kwargs"] = {"max_tokens": reply_tokens}
    if rules_judge:
        del whole["components"]["evaluate_retrieval"]["init_parameters"]["appraiser"], whole["components"]["verify"]
    path.write_text(yaml.safe_dump(whole, allow_unicode=True), encoding="utf-8")
    return path


def _nodes(node: object) -> Iterator[dict[str, object]]:
    if isinstance(node, dict):
        yield node
        for inner in node.values():
            yield from _nodes(inner)


def _reports(engine: Engine, ask: Ask, chosen: QuestionSet, limit: int, seconds: float) -> Iterator[TurnReport]:
    with acting_as(workspace.tenant_for(chosen.corpus, lambda *_: None)):
        known = passages()
        for case in chosen.cases[: limit or None]:
            with collect_calls(deadline=monotonic() + for_models(seconds)), record_replies() as replies:
                started = perf_counter()
                turn, steps = ask.finish(begin(AskRequest(question=case.question, locale=case.locale)))
                spent = perf_counter() - started
            answer = answer_of(turn, trace_id="", steps=steps.milliseconds, latency_ms=1_000 * spent, calls=steps.calls)
            record = recorded(case, turn)
            one = TurnReport(
                engine,
                case.case_id,
                case.question,
                record.outcome,
                record.text,
                record.degraded,
                round(spent, 1),
                case.answerable,
                claimed=record.outcome in ANSWERS,
                right=_is_right(record),
                reached=_reached(case, turn, replies) if engine == "models" else None,
                unsupported=tuple(unentailed(case.question, answer, known)),
                replies=tuple(replies),
            )
            sys.stdout.write(json.dumps(asdict(one), ensure_ascii=False) + "\n")
            sys.stdout.flush()
            yield one


def _is_right(record: Record) -> bool:
    if record.case.key is not None:
        return grade_turn(record, record.case.key).right
    return record.outcome == record.case.outcome and has_facts(record)


def _reached(case: Case, turn: Turn, replies: Iterable[Reply]) -> bool | None:
    """Whether a labelled passage was among those that a prompt held, which are the first of the evidence."""
    most = max((reply.passages for reply in replies if reply.task in ("appraise", "answer")), default=0)
    if case.key is None or not any(passage.grade for passage in case.key.passages):
        return None
    shown = (Page(one.doc_id, one.title, one.heading, one.text) for one in turn.evidence.passages[:most])
    return any(grade(page, case.key) for page in shown)


def _print(console: Console, reports: Sequence[TurnReport]) -> None:
    _print_turns(console, reports)
    _print_calls(console, [reply for turn in reports for reply in turn.replies])
    for turn in reports:
        for fault in turn.unsupported:
            console.print(f"{turn.case_id}: {fault}", style="red", highlight=False)


def _print_turns(console: Console, reports: Sequence[TurnReport]) -> None:
    columns = ("engine", "turns", "claimed", "right", "claimed unanswerable", "in the prompt", "unsupported", "seconds")
    table = Table(*columns, "outcomes", "degraded", title="Turns", title_justify="left")
    by_engine: defaultdict[Engine, list[TurnReport]] = defaultdict(list)
    for turn in reports:
        by_engine[turn.engine].append(turn)
    for engine, turns in by_engine.items():
        reached = [turn.reached for turn in turns if turn.answerable and turn.reached is not None]
        claims = [turn for turn in turns if turn.claimed]
        table.add_row(
            engine,
            str(len(turns)),
            str(len(claims)),
            f"{sum(turn.right for turn in claims)} of {len(claims)}",
            f"{sum(turn.answerable is False for turn in claims)} of {sum(turn.answerable is False for turn in turns)}",
            f"{sum(reached)} of {len(reached)}",
            str(sum(bool(turn.unsupported) for turn in turns)),
            f"{np.median([turn.seconds for turn in turns]):.1f}",
            _counted(turn.outcome for turn in turns),
            _counted(step for turn in turns for step in turn.degraded),
        )
    console.print(table)


def _print_calls(console: Console, replies: Sequence[Reply]) -> None:
    columns = ("call", "calls", "as asked", "once mended", "in circles", "failed", "seconds")
    table = Table(*columns, title="Calls", title_justify="left")
    by_task: defaultdict[str, list[Reply]] = defaultdict(list)
    for reply in replies:
        by_task[reply.task].append(reply)
    for task, calls in by_task.items():
        answered = [call for call in calls if call.outcome == "ok"]
        table.add_row(
            task,
            str(len(calls)),
            f"{sum(call.is_valid for call in answered)} of {len(answered)}",
            f"{sum(call.is_repairable for call in answered)} of {len(answered)}",
            str(sum(call.is_looping for call in calls)),
            _counted(call.outcome for call in calls if call.outcome != "ok"),
            f"{np.median([call.seconds for call in calls]):.1f}",
        )
    console.print(table)


def _counted(names: Iterable[str]) -> str:
    return ", ".join(f"{name} {count}" for name, count in Counter(names).most_common())


if __name__ == "__main__":
    typer.run(main)
