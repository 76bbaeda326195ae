"""Fits the calibration of a reranking model: `python -m evaluation.calibrate PIPELINE.yaml NAME [--data FOLDER]`.

Its lines are kept under the name that its step in the pipeline gives as `calibration`.

Labelled turns are the XQuAD development questions with the listed articles withheld: is the answer in the knowledge
base at all, and is the shown answer the right one? Every error is cross-fitted: each article's questions are judged by
a fit that saw no question of that article.
"""

import json
import sys
from argparse import ArgumentParser
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt
from rich.console import Console
from rich.progress import Progress, TaskID

from components.judge.calibration import FILE, Line
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


@dataclass(frozen=True, slots=True)
class LabelledTurn:
    """A finished turn and what is known about it.

    `odds` are what the model made of the most relevant passage, None where it read none; `supported` is the share of
    the draft's claims that was supported, None where no answer was shown.
    """

    article: int
    answerable: bool
    odds: float | None
    supported: float | None
    right: bool


@dataclass(frozen=True, slots=True)
class FittedLine:
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


def main() -> int:
    """Fit, print, and write the file."""
    parser = ArgumentParser(prog="python -m evaluation.calibrate")
    parser.add_argument("pipeline", type=Path, help="its step `rerank` is a ModelReranker")
    parser.add_argument("name", help="of the calibration")
    parser.add_argument("--data", type=Path, default=DATA)
    arguments = parser.parse_args()
    workspace.enter(get_settings().data_dir / "evaluation")
    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as progress:
        turns = {
            language: labelled_turns(arguments.data, language, progress, Ask(AskEngine(arguments.pipeline)))
            for language in LANGUAGES
        }
    engine = fitted_lines(turns)
    engines = json.loads(FILE.read_text(encoding="utf-8"))["engines"]
    lines = {
        language: {name: fitted_line.as_json() for name, fitted_line in by_name.items()}
        for language, by_name in engine.items()
    }
    stored = {
        "fitted_on": "XQuAD development questions, Russian and English, with the listed articles withheld",
        "error": "expected calibration error over ten bins, cross-fitted by article, with its 95% bootstrap interval",
        "engines": {**engines, arguments.name: lines},
    }
    FILE.write_text(json.dumps(stored, indent=2) + "\n", encoding="utf-8")
    json.dump(stored, sys.stdout, indent=2)
    return 0


def labelled_turns(data: Path, language: str, progress: Progress, ask: Ask) -> list[LabelledTurn]:
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
    labelled_set = []
    with acting_as(tenant):
        for case in withheld.cases:
            turn = ask.turn(AskRequest(question=case.question, locale=language))
            labelled_set.append(_labelled_turn(case, turn, articles[case.case_id], _log_odds(turn)))
            progress.advance(task)
    ask.close()
    return labelled_set


def _counted(progress: Progress, task: TaskID, count: int, total: int) -> None:
    progress.update(task, completed=count, total=total)


def _labelled_turn(case: Case, turn: Turn, article: int, odds: float | None) -> LabelledTurn:
    record = recorded(case, turn)
    draft = turn.best or turn.draft
    supported = draft.factuality / 100 if draft is not None and record.shown else None
    return LabelledTurn(article, case.answerable is True, odds, supported, right_answer(record))


def _log_odds(turn: Turn) -> float | None:
    """What the reranker said of the passage that it thinks most of."""
    odds = [passage.scores[f"{SCORE}-log-odds"] for passage in turn.evidence.passages if SCORE in passage.scores]
    return max(odds) if odds else None


def fitted_lines(turns: Mapping[str, Sequence[LabelledTurn]]) -> dict[str, dict[str, FittedLine]]:
    """The lines of every language, with their errors on turns that no fit saw."""
    lines: dict[str, dict[str, FittedLine]] = {}
    for language, language_turns in turns.items():
        articles = np.array([turn.article for turn in language_turns])
        answerable = np.array([turn.answerable for turn in language_turns])
        judged = np.array([turn.odds is not None for turn in language_turns])
        odds = np.array([turn.odds or 0.0 for turn in language_turns])
        line = _line(logistic(odds[judged, None], answerable[judged]))
        # A question that no passage was judged for is told to have no answer.
        predicted = np.zeros(len(language_turns))
        predicted[judged] = cross_fitted(odds[judged, None], answerable[judged], articles[judged], logistic)
        relevance = FittedLine(line, _error(predicted, answerable))
        lines[language] = {
            "relevance": relevance,
            "confidence": _confidence(language_turns, line.slope * odds + line.intercept, logit(predicted), articles),
        }
    return lines


def _confidence(
    language_turns: Sequence[LabelledTurn], odds: Numbers, held_out: Numbers, articles: npt.NDArray[np.int64]
) -> FittedLine:
    is_shown = np.array([turn.supported is not None for turn in language_turns])
    right = np.array([turn.right for turn in language_turns])[is_shown]
    supported = np.array([turn.supported or 0.0 for turn in language_turns])[is_shown]
    line = _line(logistic(odds[is_shown, None], right))
    predicted = supported * cross_fitted(held_out[is_shown, None], right, articles[is_shown], logistic)
    return FittedLine(line, _error(predicted, right))


def _error(predicted: Numbers, labels: Booleans) -> Figure:
    return bootstrapped(lambda drawn: expected_error(predicted[drawn], labels[drawn]), len(predicted))


def _line(weights: Numbers) -> Line:
    return Line(float(weights[0]), float(weights[1]))


if __name__ == "__main__":
    raise SystemExit(main())
