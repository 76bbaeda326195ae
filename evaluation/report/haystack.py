"""A measured set as Haystack's `EvaluationRunResult`, a result for each subset of its cases."""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from haystack.evaluation import EvaluationRunResult

from evaluation.metrics.built_in import GROUPS, Group
from evaluation.metrics.results import marks
from evaluation.stored_runs import Run, SetRun

SUBSETS: Mapping[str, tuple[Group, ...]] = MappingProxyType(
    {"retrieval": ("retrieval",), "answers": ("answer", "key"), "refusals": ("refusal",)}
)
"""Groups of figures by subset: questions with labelled articles, with an answer, of known answerability."""


def run_results(
    set_run: SetRun, other_sets: Mapping[str, SetRun] = MappingProxyType({})
) -> dict[str, EvaluationRunResult]:
    """Return the result of each subset that has a case. A case without a value for a figure has NaN.

    `score` is the figure of the report: sentences and citations count one by one, not by case. Added evaluators are
    among the answers.
    """
    by_case = marks(set_run, other_sets)
    added = {name for record in set_run.records for name in record.judged}
    results = {}
    for subset, groups in SUBSETS.items():
        names = {name for group in groups for name in GROUPS[group]} | (added if subset == "answers" else set())
        chosen = {
            case_id: {name: mark for name, mark in found.items() if name in names and mark[1]}
            for case_id, found in by_case.items()
        }
        chosen = {case_id: found for case_id, found in chosen.items() if found}
        if chosen:
            results[subset] = _result(f"{set_run.name} {subset}", set_run, chosen)
    return results


def write_csv(run: Run, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for set_run in run.sets:
        for subset, result in run_results(set_run, run.by_name()).items():
            result.detailed_report(output_format="csv", csv_file=str(folder / f"{set_run.name}.{subset}.csv"))


def _result(name: str, set_run: SetRun, chosen: Mapping[str, Mapping[str, tuple[float, float]]]) -> EvaluationRunResult:
    records = {record.case.case_id: record for record in set_run.records}
    figures = dict.fromkeys(figure for found in chosen.values() for figure in found)
    inputs = {
        "case": list(chosen),
        "question": [records[case].case.question for case in chosen],
        "outcome": [records[case].outcome for case in chosen],
        "answer": [records[case].text for case in chosen],
    }
    return EvaluationRunResult(name, inputs, {figure: _scores(figure, chosen) for figure in figures})


def _scores(figure: str, chosen: Mapping[str, Mapping[str, tuple[float, float]]]) -> dict[str, object]:
    pairs = [found.get(figure, (0.0, 0.0)) for found in chosen.values()]
    total = sum(weight for _, weight in pairs)
    return {
        "score": sum(value for value, _ in pairs) / total,
        "individual_scores": [value / weight if weight else float("nan") for value, weight in pairs],
    }
