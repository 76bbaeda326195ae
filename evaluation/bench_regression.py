"""`python -m evaluation.bench_regression`: are planted regressions caught, each time, and is noise let pass?

Plants: a threshold changed in the YAML, a broken encoder, the verifier dropped from the graph, the verifier's judge
replaced by one that agrees to all. Noise: the same state again and several at once, parameters that must not matter,
and other typing mistakes of the same kind in the same questions. A table goes to standard error, JSON to standard
output; the exit code is 1 when something went uncaught or noise was taken for a loss. `--cases N` measures a part.
"""

import json
import sys
from argparse import ArgumentParser
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import permutations
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal, TypeVar
from unittest.mock import patch

import yaml
from rich.console import Console
from rich.table import Table

from components.judge.local import LocalJudge
from components.judge.protocol import Cited, ClaimVerdict
from components.language.encoder import encode_query
from components.language.encoder_settings import EncoderSettings
from components.retrieve import retriever
from components.turn import Turn
from evaluation import workspace
from evaluation.cases import PairSet, QuestionSet
from evaluation.catalogue import spoiled
from evaluation.compare import Comparison, compare
from evaluation.datasets import intune, pairs, vkcloud, xquad
from evaluation.fixture import fixture
from evaluation.rows import DATA, Absent
from evaluation.run import Evaluation, Plan, finished
from evaluation.runs import Run
from pipelines.ask.engine import YAML
from settings import get_settings

SCHEMA = "regression.v1"
T = TypeVar("T")
SEEDS = 4
Sets = Sequence[QuestionSet | PairSet]
PLANTED: Sequence[tuple[str, str, Mapping[str, float]]] = (
    ("relevance threshold 0.9", "evaluate_retrieval", {"threshold": 0.9}),
    ("relevance threshold 0.2", "evaluate_retrieval", {"threshold": 0.2, "worth_retrying": 0.1}),
    ("gate of the router 0.99", "retry_router", {"relevance_threshold": 0.99}),
)
HARMLESS: Sequence[tuple[str, str, Mapping[str, float]]] = (
    ("more claims checked", "verify", {"max_claims": 30}),
    ("fewer suggestions", "suggest", {"limit": 2}),
    ("relevance threshold 0.575", "evaluate_retrieval", {"threshold": 0.575}),
)


@dataclass(frozen=True, slots=True)
class Trial:
    """One change, and whether the comparison has to fail for it."""

    name: str
    kind: Literal["plant", "noise"]
    run: Callable[[], Run]


@dataclass(frozen=True, slots=True)
class Found:
    """What the comparison said of a trial: the figures that became worse, with by how much."""

    name: str
    kind: str
    regressed: bool
    identical: bool
    worse: Mapping[str, float]

    @property
    def right(self) -> bool:
        """Whether a plant was caught, or noise let pass."""
        return self.regressed == (self.kind == "plant")


class Bench:
    """Measures the same sets in changed states.

    :param sets: what is measured.
    """

    def __init__(self, sets: Sets) -> None:
        self.sets = sets

    def trials(self) -> Iterator[Trial]:
        """Every plant, then all noise."""
        for name, step, change in PLANTED:
            yield Trial(name, "plant", partial(self.changed, step, change))
        yield Trial("verifier dropped", "plant", partial(self.without, "verify"))
        yield Trial("encoder broken", "plant", self._with_broken_encoder)
        yield Trial("judge agrees to all", "plant", self._with_agreeable_judge)
        yield Trial("the same again", "noise", self.measured)
        yield Trial("four at once", "noise", partial(self.measured, concurrency=4))
        for name, step, change in HARMLESS:
            yield Trial(name, "noise", partial(self.changed, step, change))

    def measured(self, pipeline: Path = YAML, concurrency: int = 1) -> Run:
        """A run of all sets with a pipeline."""
        return _measured(self.sets, Plan(pipeline=pipeline, concurrency=concurrency))

    def changed(self, step: str, change: Mapping[str, float]) -> Run:
        """A run with other parameters in one step."""
        content = yaml.safe_load(YAML.read_text(encoding="utf-8"))
        content["components"][step]["init_parameters"] |= change
        return self._with(yaml.safe_dump(content, sort_keys=False))

    def without(self, step: str) -> Run:
        """A run that is led past one step."""
        content = yaml.safe_load(YAML.read_text(encoding="utf-8"))
        del content["components"][step]
        ways = content["connections"]
        before = next(way["sender"] for way in ways if way["receiver"].startswith(f"{step}."))
        after = next(way["receiver"] for way in ways if way["sender"].startswith(f"{step}."))
        kept = [way for way in ways if not any(end.startswith(f"{step}.") for end in way.values())]
        content["connections"] = [*kept, {"sender": before, "receiver": after}]
        return self._with(yaml.safe_dump(content, sort_keys=False))

    def _with(self, source: str) -> Run:
        with TemporaryDirectory() as folder:
            path = Path(folder, YAML.name)
            path.write_text(source, encoding="utf-8")
            return self.measured(path)

    def _with_broken_encoder(self) -> Run:
        with _broken_encoder():
            return self.measured()

    def _with_agreeable_judge(self) -> Run:
        with patch.object(LocalJudge, "check_all", _agree):
            return self.measured()


def _measured(sets: Sets, plan: Plan) -> Run:
    with closing(Evaluation(plan, lambda *_: None)) as evaluation:
        return finished("regression", [evaluation.run(one) for one in sets], plan)


def typed_again(clean: QuestionSet, seed: int) -> Run:
    """The questions with the typing mistakes of one seed."""
    cases = spoiled([case for case in clean.cases if case.gold_docs], "1-typo", seed * 10_000)
    return _measured([replace(clean, cases=cases)], Plan())


def _agree(_judge: LocalJudge, _turn: Turn, claims: Sequence[Cited]) -> Sequence[ClaimVerdict]:
    return [ClaimVerdict("supported", 1.0, claim.text) for claim in claims]


@contextmanager
def _broken_encoder() -> Iterator[None]:
    """Every other term of a question gets another's place, as after an upgrade of the stemmer."""

    def broken(text: str, settings: EncoderSettings) -> dict[str, dict[int, float]]:
        vectors = encode_query(text, settings)
        return {
            name: {index if index % 2 else index + 1: weight for index, weight in vector.items()}
            for name, vector in vectors.items()
        }

    with patch.object(retriever, "encode_query", broken):
        yield


def told(name: str, kind: str, comparison: Comparison) -> Found:
    """What matters of a comparison."""
    worse = {
        f"{one.set} {one.figure}": round(one.change, 4) for one in comparison.differences if one.verdict == "worse"
    }
    return Found(name, kind, comparison.regressed, comparison.identical, worse)


def chosen(data: Path, most: int | None) -> tuple[Sets, QuestionSet | None]:
    """What is measured: the fixture, and of the public sets what is here. `most` limits each set."""
    sets: list[QuestionSet | PairSet] = [fixture()]
    noisy = None
    for read in (lambda: xquad(data, "ru"), lambda: intune(data)[:1], lambda: pairs(data, "wice", "en")):
        try:
            sets += read()
        except Absent as absent:
            print(f"skipped, absent: {absent.path}", file=sys.stderr)
    try:
        (noisy,) = vkcloud(data, "ru")
    except Absent as absent:
        print(f"skipped, absent: {absent.path}", file=sys.stderr)
    return [_part(one, most) for one in sets], noisy


def _part(one: QuestionSet | PairSet, most: int | None) -> QuestionSet | PairSet:
    if most is None:
        return one
    if isinstance(one, PairSet):
        return replace(one, pairs=_spread(one.pairs, most))
    return replace(one, cases=_spread(one.cases, most))


def _spread(items: Sequence[T], most: int) -> tuple[T, ...]:
    return tuple(items[:: max(1, len(items) // most)])


def main() -> int:
    """Measure, print, and say whether all was right."""
    parser = ArgumentParser(prog="python -m evaluation.bench_regression")
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--cases", type=int, default=None)
    given = parser.parse_args()
    workspace.enter(get_settings().data_dir / "evaluation")
    sets, noisy = chosen(given.data, given.cases)
    bench = Bench(sets)
    base = bench.measured()
    results = [told(trial.name, trial.kind, compare(base, trial.run())) for trial in bench.trials()]
    if noisy is not None:
        runs = [typed_again(noisy, seed) for seed in range(SEEDS)]
        results += [
            told(f"typing mistakes {one} and {two}", "noise", compare(runs[one], runs[two]))
            for one, two in permutations(range(SEEDS), 2)
        ]
    _print(results, [(one.name, one.n) for one in base.sets])
    return 0 if all(result.right for result in results) else 1


def _print(results: Sequence[Found], sizes: Sequence[tuple[str, int]]) -> None:
    table = Table(title=", ".join(f"{name} n={n}" for name, n in sizes), title_justify="left")
    for column in ("change", "kind", "fails", "right", "worse"):
        table.add_column(column)
    for one in results:
        worse = "\n".join(f"{figure} {change:+.3f}" for figure, change in one.worse.items())
        table.add_row(one.name, one.kind, str(one.regressed), "yes" if one.right else "NO", worse)
    Console(stderr=True).print(table)
    json.dump(
        {
            "schema": SCHEMA,
            "sets": dict(sizes),
            "trials": [
                {
                    "name": one.name,
                    "kind": one.kind,
                    "regressed": one.regressed,
                    "identical": one.identical,
                    "right": one.right,
                    "worse": dict(one.worse),
                }
                for one in results
            ],
        },
        sys.stdout,
        indent=2,
    )


if __name__ == "__main__":
    raise SystemExit(main())
