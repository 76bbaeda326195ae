"""`python -m evaluation.benchmarks.models`: overhead of answering with models on top of the models' own time.

A real service asks a simulator whose calls take 800 ms. Measured are: how long an answerable turn takes beside the
critical path of its calls; how soon sources and the first words come; what 64 streams open at once cost, lose or mix
up; and whether each protocol shows what the result says, once, also when models invent things or fail. A table goes to
standard error, the same as JSON to standard output; the exit code is 1 when a bound is not kept.
"""

import json
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from rich.console import Console
from rich.table import Table

from evaluation import workspace
from evaluation.benchmarks.server import Served, serving, watched
from evaluation.benchmarks.streams import StreamedTurn, open_at_once, protocol_faults, stream_turn, stream_turns
from evaluation.cases import Corpus
from evaluation.datasets.fixture import fixture, questions
from evaluation.datasets.public import vkcloud
from evaluation.datasets.rows import DATA, MissingData
from evaluation.simulator.adapted import adapt
from evaluation.simulator.knobs import Fault, FaultKind, Knobs
from evaluation.simulator.running import RemoteSimulator, simulator_process
from settings import get_settings
from tenants import index
from tenants.access.tokens import issue
from tenants.accounts import policy
from tenants.core.context import Tenant, acting_as
from tenants.storage import database

SCHEMA = "models.v1"
PACE = Knobs(first_token_ms=200, call_ms=800)
QUICK = Knobs(first_token_ms=5, call_ms=20)
TURNS = 16
EARLY_TURNS = 40
CLIENTS = 64
ROUNDS = 2
TROUBLES: Sequence[FaultKind] = ("invented", "doubtful", "500")
BOUNDS: Mapping[str, float] = {
    "critical_path_ratio": 1.08,
    "calls_in_sequence": 2,
    "sources_early_ms_p95": 60,
    "stream_faults": 0,
    "protocol_faults": 0,
    "cpu_ms_per_streamed_turn": 60,
    "healthz_ms_highest": 100,
}
"""The most that each figure may be. The first words have no bound: unless a tenant chooses otherwise, one call writes
the whole answer and one checks it before any of it is shown, so they come when the calls are over."""
_APART_SECONDS = 3 * PACE.call_ms / 1_000 / CLIENTS
"""Visitors come one after another: the last of them when the first is about to have its answer."""
_TOKEN_SECONDS = 3_600
_PATIENCE = 10_000
_POLICY_SECONDS = 3
"""After so long the service knows of a change to the policy."""


@dataclass(slots=True)
class Figures:
    """Measured values, and descriptions of defects in streams."""

    values: dict[str, float] = field(default_factory=dict)
    outcomes: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Interval:
    """A call, from `start` to `end` in seconds."""

    start: float
    end: float


def critical_path(calls: Sequence[Interval]) -> list[Interval]:
    """Return the longest chain of calls in which each begins after the previous one has ended."""
    chains: list[list[Interval]] = []
    for call in sorted(calls, key=lambda call: call.start):
        before = [chain for chain in chains if chain[-1].end <= call.start]
        chains.append([*max(before, key=duration, default=[]), call])
    return max(chains, key=duration, default=[])


def duration(chain: Sequence[Interval]) -> float:
    """Return the total duration of the calls in a chain."""
    return sum(call.end - call.start for call in chain)


def main() -> int:
    """Measure and print; 0 when every bound is kept."""
    console = Console(stderr=True)
    figures = Figures()
    with TemporaryDirectory() as temporary, simulator_process(QUICK) as simulator:
        folder, tenant, questions = _prepare()
        pipelines = adapt(Path(temporary), simulator.url, concurrent=4 * CLIENTS, failures=_PATIENCE)
        with serving(folder, OPORA_PROFILE="ollama", OPORA_PIPELINES_DIR=str(pipelines)) as served:
            token = issue(
                get_settings(), tenant.tenant_id, scopes=frozenset({"ask"}), subject="bench", ttl_seconds=_TOKEN_SECONDS
            )
            answerable = _answerable(served, token, questions)
            _measure_sequential(served, token, simulator, answerable, figures)
            _measure_early_sources(served, token, simulator, answerable, figures)
            _measure_concurrent(served, token, simulator, answerable, figures)
            _measure_protocols(served, tenant, token, simulator, questions, figures)
    _print(console, figures)
    return 0 if all(_within_bound(name, figures.values[name]) for name in BOUNDS) else 1


def _prepare() -> tuple[Path, Tenant, Sequence[str]]:
    """Prepare a data folder with the largest available knowledge base, and questions for it."""
    corpus: Corpus = fixture().corpus
    all_questions = tuple(case.question for case in fixture().cases)
    try:
        question_set = vkcloud(DATA, "ru")[0]
    except MissingData:
        all_questions += tuple(example.question for example in questions().shops["ru"].showcase)
    else:
        corpus, all_questions = question_set.corpus, tuple(case.question for case in question_set.cases)
    folder = workspace.enter(get_settings().data_dir.resolve() / "bench")
    tenant = workspace.tenant_for(corpus, lambda *_: None)
    with acting_as(tenant):
        policy.change(streaming="verified")
    _close_stores()
    return folder, tenant, all_questions


def _close_stores() -> None:
    index.close_all()
    database.close_all()


def _answerable(served: Served, token: str, questions: Sequence[str]) -> list[str]:
    """Return the questions that are answered in a single pass."""
    turns = stream_turns(served.port, token, questions, clients=4)
    return [turn.question for turn in turns if turn.result.get("outcome") == "answered" and _passes(turn) == 1]


def _passes(turn: StreamedTurn) -> int:
    verdict = turn.result.get("verdict")
    return int(verdict["iterations"]) if isinstance(verdict, dict) else 0


def _measure_sequential(
    served: Served, token: str, simulator: RemoteSimulator, questions: Sequence[str], figures: Figures
) -> None:
    """Measure one turn at a time, at the pace of a real model."""
    ratios, seconds = list[float](), list[float]()
    chains, words = list[int](), list[float]()
    for question in questions[:TURNS]:
        simulator.set_knobs(PACE)
        turn = stream_turn(served.port, token, question)
        calls = simulator.calls()
        chain = critical_path([Interval(call.started, call.ended) for call in calls])
        total = turn.seconds_to("result") or float("nan")
        ratios.append(total / duration(chain))
        seconds.append(total)
        chains.append(len(chain))
        words.append((turn.seconds_to("token") or float("nan")) / duration(chain))
    figures.values |= {
        "turns": len(ratios),
        "turn_seconds": float(np.median(seconds)),
        "critical_path_ratio": float(np.median(ratios)),
        "critical_path_ratio_highest": max(ratios),
        "calls_in_sequence": max(chains),
        "first_words_ratio": float(np.median(words)),
    }


def _measure_early_sources(
    served: Served, token: str, simulator: RemoteSimulator, questions: Sequence[str], figures: Figures
) -> None:
    """Measure the time until the first sources are shown; the client disconnects then."""
    simulator.set_knobs(PACE)
    turn_questions = [questions[place % len(questions)] for place in range(EARLY_TURNS)]
    turns = [stream_turn(served.port, token, question, until="sources-early") for question in turn_questions]
    early = [1_000 * at for turn in turns if (at := turn.seconds_to("sources-early")) is not None]
    figures.values |= {
        "sources_early_ms_p50": float(np.percentile(early, 50)),
        "sources_early_ms_p95": float(np.percentile(early, 95)),
    }
    time.sleep(PACE.call_ms / 1_000)


def _measure_concurrent(
    served: Served, token: str, simulator: RemoteSimulator, questions: Sequence[str], figures: Figures
) -> None:
    """Measure 64 streams open at once, opened one after another. Each must be equal to a stream that runs alone."""
    simulator.set_knobs(QUICK)
    turn_questions = [questions[place % len(questions)] for place in range(CLIENTS * ROUNDS)]
    alone = {question: stream_turn(served.port, token, question).result_text for question in set(turn_questions)}
    simulator.set_knobs(PACE)
    before = served.cpu_seconds()
    with watched(served.port) as health:
        turns = stream_turns(served.port, token, turn_questions, clients=CLIENTS, apart=_APART_SECONDS)
    cpu = (served.cpu_seconds() - before) * 1_000 / len(turns)
    for turn in turns:
        figures.faults += [f"{turn.question}: {fault}" for fault in turn.faults]
        if turn.result_text != alone[turn.question]:
            figures.faults.append(f"{turn.question}: another answer than alone")
        figures.outcomes[str(turn.result.get("outcome"))] += 1
    figures.values |= {
        "streams": len(turns),
        "streams_open_at_once": open_at_once(turns),
        "stream_faults": float(len(figures.faults)),
        "cpu_ms_per_streamed_turn": cpu,
        "healthz_ms_highest": max(health),
        "streamed_turn_seconds_p95": float(np.percentile([turn.seconds_to("result") or 0.0 for turn in turns], 95)),
    }


def _measure_protocols(
    served: Served,
    tenant: Tenant,
    token: str,
    simulator: RemoteSimulator,
    questions: Sequence[str],
    figures: Figures,
) -> None:
    """Measure each protocol, with verified and optimistic streaming, with models that work, invent and fail."""
    before, provisional, replaced = len(figures.faults), 0, 0
    for streaming in ("verified", "optimistic"):
        with acting_as(tenant):
            policy.change(streaming=streaming)
        time.sleep(_POLICY_SECONDS)
        for kind in (None, *TROUBLES):
            simulator.set_knobs(QUICK.model_copy(update={"faults": (Fault(kind=kind),) if kind else ()}))
            for question in questions[:TURNS]:
                turn = stream_turn(served.port, token, question)
                provisional += any(event.data.get("provisional") for event in turn.events if event.name == "token")
                replaced += turn.seconds_to("revise") is not None or turn.seconds_to("retract") is not None
                found = [*turn.faults, *protocol_faults(served.port, token, question)]
                figures.faults += [f"{streaming}, {kind or 'well'}: {question}: {fault}" for fault in found]
    figures.values |= {
        "streams_told_early": provisional,
        "streams_taken_back": replaced,
        "protocol_faults": float(len(figures.faults) - before),
    }


def _within_bound(name: str, value: float) -> bool:
    return value <= BOUNDS[name]


def _print(console: Console, figures: Figures) -> None:
    table = Table("figure", "value", "at most", title="Answering with models", title_justify="left")
    for name, value in figures.values.items():
        bound = BOUNDS.get(name)
        style = "" if bound is None else "green" if _within_bound(name, value) else "bold red"
        table.add_row(name, f"{value:.2f}", "" if bound is None else f"{bound:g}", style=style)
    console.print(table)
    console.print(f"critical-path ratio: {figures.values['critical_path_ratio']:.2f}", highlight=False)
    for fault in figures.faults[:10]:
        console.print(fault, style="red", highlight=False)
    result = {
        "schema": SCHEMA,
        "figures": figures.values,
        "outcomes": dict(figures.outcomes),
        "faults": figures.faults,
        "met": {name: _within_bound(name, figures.values[name]) for name in BOUNDS},
    }
    sys.stdout.write(json.dumps(result, ensure_ascii=False, indent=2) + "\n")


if __name__ == "__main__":
    sys.exit(main())
