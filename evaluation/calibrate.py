"""Fits the calibration of the local judge, or of a reranking model: `python -m evaluation.calibrate [--data FOLDER]
[--reranker PIPELINE.yaml --name NAME]`.

A reranker's lines are kept under the name that its step in the pipeline gives as `calibration`.

Labelled turns are the XQuAD development questions with the listed articles withheld: is the answer in the knowledge
base at all, and is the shown answer the right one? Every error told is cross-fitted: each article's questions are
judged by a fit that saw no question of that article, and the judge's own weights are fitted anew in every fold too,
because they come from the same questions. A reranker's come from elsewhere.
"""

import json
import sys
from argparse import ArgumentParser
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt
from rich.console import Console
from rich.progress import Progress, TaskID

from components.judge.analysis import analyse
from components.judge.calibration import FILE, Line
from components.judge.coverage import cover, prepare
from components.judge.local import WEIGHTS
from components.judge.ranked import SCORE
from components.turn import Turn
from evaluation import workspace
from evaluation.asking import recorded
from evaluation.cases import Case
from evaluation.datasets.public import xquad
from evaluation.datasets.rows import DATA, rows, string
from evaluation.metrics.calibration import Booleans, Numbers, cross_fitted, expected_error, logistic, logit
from evaluation.metrics.intervals import Figure, bootstrapped
from evaluation.metrics.marks import right_answer
from pipelines.ask.contract import AskRequest
from pipelines.ask.engine import AskEngine
from pipelines.ask.usecase import Ask
from settings import get_settings
from tenants.context import acting_as

LANGUAGES = ("ru", "en")
FEATURES = tuple(name for name in WEIGHTS if name != "bias")
_RIDGE = 0.2
"""1 / C of the fit that gave `WEIGHTS`."""


@dataclass(frozen=True, slots=True)
class Labelled:
    """A finished turn and what is known about it.

    `features` are what the judge made of the most relevant passage, None where none was judged; `supported` is the
    share of the draft's claims that was supported, None where no answer was shown.
    """

    article: int
    answerable: bool
    features: tuple[float, ...] | None
    supported: float | None
    right: bool


@dataclass(frozen=True, slots=True)
class Fitted:
    """A line with its cross-fitted error, and of how many turns."""

    line: Line
    error: Figure

    def as_json(self) -> dict[str, float]:
        """As stored."""
        return {
            "slope": round(self.line.slope, 4),
            "intercept": round(self.line.intercept, 4),
            "n": self.error.n,
            "expected_calibration_error": round(self.error.value, 4),
            "low": round(self.error.low, 4),
            "high": round(self.error.high, 4),
        }


@dataclass(frozen=True, slots=True)
class Judging:
    """Whose log-odds are made probabilities.

    :param engine: its entry in the file.
    :param features: what it makes of a turn's most relevant passage.
    :param weights: of the features in its log-odds, the bias last.
    :param refitted: the weights come from the same questions, so that they are fitted anew in every fold.
    """

    engine: str
    features: Callable[[Turn], tuple[float, ...] | None]
    weights: tuple[float, ...]
    refitted: bool


def main() -> int:
    """Fit, print, and write the file."""
    parser = ArgumentParser(prog="python -m evaluation.calibrate")
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--reranker", type=Path, help="pipeline whose step `rerank` is a ModelReranker")
    parser.add_argument("--name", help="name of its calibration")
    given = parser.parse_args()
    if (given.reranker is None) != (given.name is None):
        parser.error("--reranker and --name go together")
    judging = LOCAL if given.reranker is None else reranking(given.name)
    workspace.enter(get_settings().data_dir / "evaluation")
    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as progress:
        turns = {
            language: labelled(given.data, language, progress, _ask(given.reranker), judging) for language in LANGUAGES
        }
    engine = fitted(turns, judging)
    kept = json.loads(FILE.read_text(encoding="utf-8"))["engines"]
    lines = {language: {name: one.as_json() for name, one in found.items()} for language, found in engine.items()}
    stored = {
        "fitted_on": "XQuAD development questions, Russian and English, with the listed articles withheld",
        "error": "expected calibration error over ten bins, cross-fitted by article, with its 95% bootstrap interval",
        "engines": {**kept, judging.engine: lines},
    }
    FILE.write_text(json.dumps(stored, indent=2) + "\n", encoding="utf-8")
    json.dump(stored, sys.stdout, indent=2)
    return 0


def _ask(pipeline: Path | None) -> Ask:
    return Ask() if pipeline is None else Ask(AskEngine(pipeline))


def labelled(data: Path, language: str, progress: Progress, ask: Ask, judging: Judging) -> list[Labelled]:
    """Ask every question of a language."""
    articles = {
        string(row, "id"): int(str(row["article_idx"]))
        for row in rows(data / "xquad" / "dev" / f"questions_{language}.jsonl")
    }
    _, withheld = xquad(data, language)
    task = progress.add_task(withheld.name, total=len(withheld.cases))
    tenant = workspace.tenant_for(withheld.corpus, partial(_counted, progress, task))
    progress.reset(task, total=len(withheld.cases))
    ask.warm_up()
    found = []
    with acting_as(tenant):
        for case in withheld.cases:
            turn = ask.turn(AskRequest(question=case.question, locale=language))
            found.append(_labelled(case, turn, articles[case.case_id], judging.features(turn)))
            progress.advance(task)
    ask.close()
    return found


def _counted(progress: Progress, task: TaskID, done: int, total: int) -> None:
    progress.update(task, completed=done, total=total)


def _labelled(case: Case, turn: Turn, article: int, features: tuple[float, ...] | None) -> Labelled:
    record = recorded(case, turn)
    draft = turn.best or turn.draft
    supported = draft.factuality / 100 if draft is not None and record.shown else None
    return Labelled(article, case.answerable is True, features, supported, right_answer(record))


def _features(turn: Turn) -> tuple[float, ...] | None:
    question = prepare(turn.query)
    judged = turn.evidence.judged
    among = [passage for passage in turn.evidence.passages if judged.get(passage.chunk_id, 0.0) > 0]
    if not among:
        return None
    best = max(among, key=lambda passage: judged[passage.chunk_id])
    coverage = cover(question, analyse(best))
    return tuple(
        best.scores.get("lexical", 0.0) if name == "lexical" else float(getattr(coverage, name)) for name in FEATURES
    )


def _log_odds(turn: Turn) -> tuple[float, ...] | None:
    """What the reranker said of the passage that it thinks most of."""
    found = [one.scores[f"{SCORE}-log-odds"] for one in turn.evidence.passages if SCORE in one.scores]
    return (max(found),) if found else None


LOCAL = Judging("local", _features, (*(WEIGHTS[name] for name in FEATURES), WEIGHTS["bias"]), refitted=True)


def reranking(name: str) -> Judging:
    """A reranking model, which says log-odds itself."""
    return Judging(name, _log_odds, (1.0, 0.0), refitted=False)


def fitted(turns: Mapping[str, Sequence[Labelled]], judging: Judging = LOCAL) -> dict[str, dict[str, Fitted]]:
    """The lines of every language, with their errors on turns that no fit saw."""
    weights, bias = np.array(judging.weights[:-1]), judging.weights[-1]
    held_out = _held_out_log_odds(turns) if judging.refitted else None
    found: dict[str, dict[str, Fitted]] = {}
    for language, known in turns.items():
        articles = np.array([turn.article for turn in known])
        answerable = np.array([turn.answerable for turn in known])
        judged = np.array([turn.features is not None for turn in known])
        own = np.array([bias + weights @ turn.features if turn.features else 0.0 for turn in known])
        unseen = own if held_out is None else held_out[language]
        line = _line(logistic(own[judged, None], answerable[judged]))
        # A question that no passage was judged for is told to have no answer.
        told = np.zeros(len(known))
        told[judged] = cross_fitted(unseen[judged, None], answerable[judged], articles[judged], logistic)
        relevance = Fitted(line, _error(told, answerable))
        found[language] = {
            "relevance": relevance,
            "confidence": _confidence(known, line.slope * own + line.intercept, logit(told), articles),
        }
    return found


def _confidence(known: Sequence[Labelled], own: Numbers, held_out: Numbers, articles: npt.NDArray[np.int64]) -> Fitted:
    shown = np.array([turn.supported is not None for turn in known])
    right = np.array([turn.right for turn in known])[shown]
    supported = np.array([turn.supported or 0.0 for turn in known])[shown]
    line = _line(logistic(own[shown, None], right))
    told = supported * cross_fitted(held_out[shown, None], right, articles[shown], logistic)
    return Fitted(line, _error(told, right))


def _held_out_log_odds(turns: Mapping[str, Sequence[Labelled]]) -> dict[str, Numbers]:
    """By language: each turn's log-odds by weights of the judge that were fitted without its article."""
    everyone = [turn for known in turns.values() for turn in known if turn.features]
    features = np.array([turn.features for turn in everyone])
    labels = np.array([turn.answerable for turn in everyone])
    groups = np.array([turn.article for turn in everyone])
    told = iter(logit(cross_fitted(features, labels, groups, partial(logistic, ridge=_RIDGE))))
    return {
        language: np.array([next(told) if turn.features else 0.0 for turn in known])
        for language, known in turns.items()
    }


def _error(told: Numbers, labels: Booleans) -> Figure:
    return bootstrapped(lambda drawn: expected_error(told[drawn], labels[drawn]), len(told))


def _line(weights: Numbers) -> Line:
    return Line(float(weights[0]), float(weights[1]))


if __name__ == "__main__":
    raise SystemExit(main())
