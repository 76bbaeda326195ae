"""`python -m evaluation.benchmarks.models`: overhead of answering with models on top of the models' own time.

A real service asks a simulator whose calls take 800 ms. Measured are: how long an answerable turn takes beside the
critical path of its calls; how soon sources and the first words come; and what 64 streams open at once cost, lose or
mix up. `tests/attack/test_streams.py` compares what each protocol shows. A table goes to standard error, the same as
JSON to standard output; the exit code is 1 when a bound is not kept.
"""

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import cycle, islice
from pathlib import Path
from tempfile import TemporaryDirectory

import typer

from evaluation import workspace
from evaluation.benchmarks import results
from evaluation.benchmarks.load import percentile
from evaluation.benchmarks.server import Served, close_stores, serving, token_for, watched
from evaluation.benchmarks.streams import StreamedTurn, open_at_once, stream_turn, stream_turns
from evaluation.datasets.catalogue import largest_set
from evaluation.simulator.adapted import adapt
from evaluation.simulator.knobs import Knobs
from evaluation.simulator.running import RemoteSimulator, simulator_process
from settings import get_settings

SCHEMA = "models.v2"
PACE = Knobs(first_token_ms=200, call_ms=800)
QUICK = Knobs(first_token_ms=5, call_ms=20)
TURNS = 16
EARLY_TURNS = 40
CLIENTS = 64
ROUNDS = 2
BOUNDS: Mapping[str, float] = {
    "critical_path_ratio": 1.08,
    "calls_in_sequence": 2,
    "sources_early_ms_p95": 60,
    "stream_faults": 0,
    "cpu_ms_per_streamed_turn": 60,
    "healthz_ms_highest": 100,
}
"""The most that each figure may be. The first words have no bound: unless a tenant chooses otherwise, one call writes
the whole answer and one checks it before any of it is shown, so they come when the calls are over."""
_APART_SECONDS = 3 * PACE.call_ms / 1_000 / CLIENTS
"""Visitors come one after another: the last of them when the first is about to have its answer."""
_PATIENCE = 10_000


@dataclass(frozen=True, slots=True)
class Interval:
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
    return sum(call.end - call.start for call in chain)


def main() -> None:
    """Measure and print; exit code 1 when a bound is not kept."""
    with TemporaryDirectory() as temporary, simulator_process(QUICK) as simulator:
        folder, token, all_questions = _prepare()
        pipelines = adapt(Path(temporary), simulator.url, concurrent=4 * CLIENTS, failures=_PATIENCE)
        with serving(folder, OPORA_PROFILE="ollama", OPORA_PIPELINES_DIR=str(pipelines)) as served:
            bench = _Bench(served, simulator, token)
            answerable = bench.answerable(all_questions)
            bench.measure_sequential(answerable)
            bench.measure_early_sources(answerable)
            bench.measure_concurrent(answerable)
    results.print_faults(bench.faults)
    results.finish(
        SCHEMA,
        bench.figures,
        title="Answering with models",
        bounds=BOUNDS,
        outcomes=dict(bench.outcomes),
        faults=bench.faults,
    )


def _prepare() -> tuple[Path, str, Sequence[str]]:
    """Prepare a data folder with the largest available knowledge base; return a token for it, and questions."""
    chosen = largest_set()
    folder = workspace.enter(get_settings().data_dir.resolve() / "bench")
    tenant = workspace.tenant_for(chosen.corpus, lambda *_: None)
    close_stores()
    return folder, token_for(tenant.tenant_id), [case.question for case in chosen.cases]


@dataclass(slots=True)
class _Bench:
    """Measurements of a service and its simulator: values, outcomes, and descriptions of defects in streams."""

    served: Served
    simulator: RemoteSimulator
    token: str
    figures: dict[str, float] = field(default_factory=dict)
    outcomes: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)

    def stream(self, question: str, until: str = "") -> StreamedTurn:
        return stream_turn(self.served.port, self.token, question, until=until)

    def answerable(self, questions: Sequence[str]) -> list[str]:
        turns = stream_turns(self.served.port, self.token, questions, clients=4)
        return [turn.question for turn in turns if turn.result.get("outcome") == "answered" and _passes(turn) == 1]

    def measure_sequential(self, questions: Sequence[str]) -> None:
        ratios, seconds, chains, words = list[float](), list[float](), list[int](), list[float]()
        for question in questions[:TURNS]:
            self.simulator.set_knobs(PACE)
            turn = self.stream(question)
            chain = critical_path([Interval(call.started, call.ended) for call in self.simulator.calls()])
            total = turn.seconds_to("result") or float("nan")
            ratios.append(total / duration(chain))
            seconds.append(total)
            chains.append(len(chain))
            words.append((turn.seconds_to("token") or float("nan")) / duration(chain))
        self.figures |= {
            "turns": len(ratios),
            "turn_seconds": percentile(seconds, 50),
            "critical_path_ratio": percentile(ratios, 50),
            "critical_path_ratio_highest": max(ratios),
            "calls_in_sequence": max(chains),
            "first_words_ratio": percentile(words, 50),
        }

    def measure_early_sources(self, questions: Sequence[str]) -> None:
        """Measure the time until the first sources are shown; the client disconnects then."""
        self.simulator.set_knobs(PACE)
        turns = [self.stream(question, until="sources-early") for question in islice(cycle(questions), EARLY_TURNS)]
        early = [1_000 * at for turn in turns if (at := turn.seconds_to("sources-early")) is not None]
        self.figures |= {f"sources_early_ms_p{share}": percentile(early, share) for share in (50, 95)}
        time.sleep(PACE.call_ms / 1_000)

    def measure_concurrent(self, questions: Sequence[str]) -> None:
        """Measure 64 streams open at once, opened one after another. Each must be equal to a stream that runs alone."""
        self.simulator.set_knobs(QUICK)
        asked = list(islice(cycle(questions), CLIENTS * ROUNDS))
        alone = {question: self.stream(question).result_text for question in set(asked)}
        self.simulator.set_knobs(PACE)
        before = self.served.cpu_seconds()
        with watched(self.served.port) as health:
            turns = stream_turns(self.served.port, self.token, asked, clients=CLIENTS, apart=_APART_SECONDS)
        cpu = (self.served.cpu_seconds() - before) * 1_000 / len(turns)
        for turn in turns:
            self.faults += [f"{turn.question}: {fault}" for fault in turn.faults]
            if turn.result_text != alone[turn.question]:
                self.faults.append(f"{turn.question}: another answer than alone")
            self.outcomes[str(turn.result.get("outcome"))] += 1
        self.figures |= {
            "streams": len(turns),
            "streams_open_at_once": open_at_once(turns),
            "stream_faults": len(self.faults),
            "cpu_ms_per_streamed_turn": cpu,
            "healthz_ms_highest": max(health),
            "streamed_turn_seconds_p95": percentile([turn.seconds_to("result") or 0.0 for turn in turns], 95),
        }


def _passes(turn: StreamedTurn) -> int:
    verdict = turn.result.get("verdict")
    return int(verdict["iterations"]) if isinstance(verdict, dict) else 0


if __name__ == "__main__":
    typer.run(main)
