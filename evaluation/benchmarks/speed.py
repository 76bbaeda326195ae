"""`make bench`: speed of a real service over a real knowledge base, measured from another process.

Tables go to standard error and the same numbers as JSON to standard output. The first run indexes some 10,000 real and
110,000 synthetic chunks, which takes minutes; later runs reuse them.
"""

import random
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path

from rich.progress import Progress

from evaluation import workspace
from evaluation.benchmarks import results
from evaluation.benchmarks.load import Reply, ask_concurrently, ask_sequentially, percentile
from evaluation.benchmarks.results import console
from evaluation.benchmarks.server import Served, close_stores, serving, token_for
from evaluation.benchmarks.synthetic import fill
from evaluation.datasets.fixture import questions
from evaluation.datasets.public import vkcloud
from evaluation.datasets.rows import DATA
from settings import get_settings
from tenants.core.context import SCOPES, Tenant, acting_as

SCHEMA = "bench.v2"
SIZES = (10_000, 100_000)
WARM_UP = 40
ROUNDS = 3
CLIENTS = 16
CONCURRENT_QUESTIONS = 1_600
SHORT_ROUNDS = 20
SENTENCES = 20_000
BOUNDS: Mapping[str, float] = {
    "alone_ms_p50": 25,
    "alone_ms_p99": 120,
    "ms_per_answer_together": 1_000 / 60,
    "errors": 0,
    "fixed_reply_ms_p50": 8,
    "refusal_ms_p50": 8,
    "resident_mb": 600,
    "slowdown_100k": 3,
}
"""The most that each figure may be."""
_FIXED = frozenset({"irrelevant", "nonsense", "out_of_scope", "blocked"})
_REFUSED = frozenset({"refused", "cannot_answer", "clarify"})


@dataclass(frozen=True, slots=True)
class BenchSetup:
    """A data folder to serve, a token for each tenant by its number of chunks, and questions."""

    folder: Path
    tokens: Mapping[int, str]
    questions: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Measurement:
    """The numbers, milliseconds by step, and how often each outcome came back."""

    figures: Mapping[str, float]
    steps: Mapping[str, float]
    outcomes: Mapping[str, int]


def main() -> None:
    """Measure and print; exit code 1 when a figure is beyond its bound."""
    with Progress(console=console, transient=True, disable=not console.is_terminal) as progress:
        real, synthetic = prepare(progress)
    with serving(real.folder) as served:
        measured = measure(served, real)
    with serving(synthetic.folder) as served:
        figures = {**measured.figures, **measure_growth(served, synthetic)}
    (chunks,) = real.tokens
    results.print_table("Milliseconds by step", ("step", "value"), measured.steps.items())
    counts = {"chunks": chunks, "ms_by_step": measured.steps, "outcomes": measured.outcomes}
    results.finish(SCHEMA, figures, title=f"Speed and memory, {chunks} chunks", bounds=BOUNDS, **counts)


def prepare(progress: Progress) -> tuple[BenchSetup, BenchSetup]:
    """Index the real and the synthetic folder in this process, and close both. Raises `MissingData`.

    Two folders, because a service keeps all its tenants in memory, and the measured memory is that of the real one.
    """
    question_set = vkcloud(DATA, "ru")[0]
    shelf = get_settings().data_dir.resolve()
    task = progress.add_task("Preparing the knowledge bases", total=None)

    def show(count: int, total: int) -> None:
        progress.update(task, completed=count, total=total or None)

    bench_questions = tuple(case.question for case in question_set.cases)
    folder = workspace.enter(shelf / "bench")
    tenant = workspace.tenant_for(question_set.corpus, show)
    with acting_as(tenant):
        chunks = workspace.reference().chunks
    real = BenchSetup(folder, {len(chunks): token_for(tenant.tenant_id)}, bench_questions)
    close_stores()
    sentences = [chunk.text[start:end] for chunk in chunks for start, end in chunk.sentences if end - start > 20]
    random.Random(0).shuffle(sentences)  # noqa: S311 - reproducible, not a secret
    folder = workspace.enter(shelf / "bench-synthetic")
    tokens = {}
    for size in SIZES:
        other = Tenant(f"synthetic-{size}", subject="bench", scopes=SCOPES)
        fill(other, size, sentences[:SENTENCES], show)
        tokens[size] = token_for(other.tenant_id)
    close_stores()
    return real, BenchSetup(folder, tokens, bench_questions)


def measure(served: Served, setup: BenchSetup) -> Measurement:
    port, bench_questions = served.port, setup.questions
    (token,) = setup.tokens.values()
    ask_sequentially(port, token, bench_questions[:WARM_UP])
    new = _distinct_questions(bench_questions, len(bench_questions) * ROUNDS + CONCURRENT_QUESTIONS)
    first_time, timed = new[: len(bench_questions) * ROUNDS], new[len(bench_questions) * ROUNDS :]
    before = served.cpu_seconds()
    single = ask_sequentially(port, token, first_time)
    cpu_ms = (served.cpu_seconds() - before) * 1_000 / len(single)
    again = ask_sequentially(port, token, first_time[-len(bench_questions) :])
    fixed = ask_sequentially(port, token, questions().fixed * SHORT_ROUNDS)
    refused = ask_sequentially(port, token, questions().refused * SHORT_ROUNDS)
    # Last: the questions of a crowd are still being recorded for a while.
    crowd, seconds = ask_concurrently(port, token, timed, clients=CLIENTS, total=CONCURRENT_QUESTIONS)
    figures = {
        "alone_ms_p50": _percentile(single, 50),
        "alone_ms_p99": _percentile(single, 99),
        "alone_cpu_ms": cpu_ms,
        "asked_again_ms_p50": _percentile(again, 50),
        "answers_per_second": len(crowd) / seconds,
        "ms_per_answer_together": 1_000 * seconds / len(crowd),
        "together_ms_p50": _percentile(crowd, 50),
        "together_ms_p99": _percentile(crowd, 99),
        "errors": float(sum(reply.failed for reply in (*single, *crowd, *fixed, *refused))),
        "fixed_reply_ms_p50": _percentile(_with_outcomes(fixed, _FIXED), 50),
        "refusal_ms_p50": _percentile(_with_outcomes(refused, _REFUSED), 50),
        "resident_mb": served.memory_mb("VmRSS"),
        "resident_highest_mb": served.memory_mb("VmHWM"),
    }
    outcomes = Counter(reply.outcome for reply in single)
    return Measurement(figures, _mean_steps(single), dict(outcomes.most_common()))


def _distinct_questions(sample: Sequence[str], total: int) -> tuple[str, ...]:
    rounds = (number // len(sample) for number in range(total))
    return tuple(f"{question}{'?' * times}" for question, times in zip(cycle(sample), rounds, strict=False))


def measure_growth(served: Served, setup: BenchSetup) -> dict[str, float]:
    small, large = (_percentile(_ask_warm(served.port, setup.tokens[size], setup.questions), 50) for size in SIZES)
    return {"ms_p50_at_10k": small, "ms_p50_at_100k": large, "slowdown_100k": large / small}


def _ask_warm(port: int, token: str, sample: Sequence[str]) -> list[Reply]:
    ask_sequentially(port, token, sample[:WARM_UP])
    return ask_sequentially(port, token, sample)


def _with_outcomes(replies: Sequence[Reply], outcomes: frozenset[str]) -> list[Reply]:
    return [reply for reply in replies if reply.outcome in outcomes]


def _percentile(replies: Sequence[Reply], share: float) -> float:
    return percentile([reply.milliseconds for reply in replies], share)


def _mean_steps(replies: Sequence[Reply]) -> dict[str, float]:
    """Return the mean milliseconds of each step over all questions; a step that did not run counts as 0."""
    total: defaultdict[str, float] = defaultdict(float)
    for reply in replies:
        for step, spent in reply.steps.items():
            total[step] += spent
    means = {step: round(spent / len(replies), 3) for step, spent in total.items()}
    return dict(sorted(means.items(), key=lambda item: -item[1]))


if __name__ == "__main__":
    results.run(main)
