"""Report page for managers: requirements, measurements, and failures. Self-contained."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from components.language.texts import keys, text
from evaluation.cases import Record
from evaluation.metrics.built_in import DEPTHS, GROUPS
from evaluation.metrics.calibration import MIN_FOR_CALIBRATION, reliability, scores
from evaluation.metrics.intervals import Figure
from evaluation.metrics.results import SetReport, confidences, marks, missed, steps
from evaluation.metrics.targets import TargetResult
from evaluation.report.answers import answers_to_read
from evaluation.report.tables import ending, failed_steps, figure_name, localised, outcome_name, requirement
from evaluation.stored_runs import Run, SetRun
from pipelines.draw import mermaid

_FOLDER = Path(__file__).parent
WORST_SHOWN = 12
_CATEGORIES_SHOWN = 12
_HITS = tuple(f"hit@{depth}" for depth in DEPTHS)
_STYLES: Mapping[str, str] = {
    "answered": "good",
    "partially_answered": "good",
    "low_confidence": "warn",
    "clarify": "warn",
    "refused": "refuse",
    "cannot_answer": "refuse",
    "human_followup": "person",
    "high_stakes": "person",
    "failed": "bad",
}
_TILES = (
    "answer_precision",
    "answer_recall",
    "false_answer_rate",
    "right_or_offered",
    "labelled@1",
    "confidence_calibration_error",
    "outcome_accuracy",
    "facts_in_answer",
    "answered_with_another_code",
    "hit@5_lost",
    "hit@5",
    "gold_span_in_answer",
    "citation_precision_gold",
    "citation_precision_entailed",
    "over_refusal",
    "routed",
    "survived",
    "relevance_calibration_error",
    "latency_ms_p50",
)
_TILES_SHOWN = 6
_PLAIN = frozenset({"passes", "llm_calls", "tokens"})


def as_page(run: Run, reports: Sequence[SetReport], locale: str) -> str:
    environment = Environment(
        loader=FileSystemLoader(_FOLDER), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    environment.filters["localised"] = partial(localised, locale=locale)
    results = [result for report in reports for result in report.targets()]
    writer = _Writer(run, locale)
    sections = [writer.section(report, set_run) for report, set_run in zip(reports, run.sets, strict=True)]
    return environment.get_template("page.html").render(
        locale=locale,
        message=partial(_message, "page", locale),
        table=partial(_message, "table", locale),
        css=Markup((_FOLDER / "page.css").read_text(encoding="utf-8")),  # noqa: S704 - our own file
        run=run,
        date=f"{run.created_at:%Y-%m-%d %H:%M} UTC",
        questions=sum(set_run.n for set_run in run.sets),
        targets=[_target(result, locale) for result in results],
        missed=sum(not result.met for result in results),
        sections=sections,
        graph=mermaid(run.state.source),
    )


def _target(result: TargetResult, locale: str) -> dict[str, object]:
    target, bound = result.target, result.target.bound(result.reference)
    return {
        "set": target.set,
        "figure": figure_name(target.figure, locale),
        "demand": f"{'≥' if target.at_most is None else '≤'} {_read(target.figure, bound, locale)}",
        "value": _read(target.figure, result.value, locale),
        "met": result.met,
    }


def _message(area: str, locale: str, key: str, **params: str | int) -> str:
    return text(f"evaluation.{area}.{key}", locale, **params)


class _Writer:
    def __init__(self, run: Run, locale: str) -> None:
        self.locale = locale
        self.sets_by_name = run.by_name()
        self.message = partial(_message, "page", locale)

    def section(self, report: SetReport, set_run: SetRun) -> dict[str, Any]:
        to_read = answers_to_read(set_run.records)
        wrong = [record for record in set_run.records if missed(record)] if not to_read else []
        note, index = f"evaluation.note.{set_run.name}", set_run.index
        return {
            "name": set_run.name,
            "anchor": "".join(letter if letter.isalnum() else "-" for letter in set_run.name),
            "n": set_run.n,
            "index": f"{index.tenant} · {self.message('chunks', n=index.chunks)}" if index else "",
            "note": text(note, self.locale) if note in keys("evaluation.note.") else "",
            "degraded": failed_steps(report.degraded, self.locale),
            "unjudged": ", ".join(f"{reason} {count}" for reason, count in report.unjudged.items()),
            "tiles": self._tiles(report),
            "outcomes": self._outcomes(report),
            "plots": self._plots(report, set_run),
            "worst": [self._worst(record) for record in sorted(wrong, key=_gravity)[:WORST_SHOWN]],
            "misses": len(wrong),
            "groups": self._groups(report),
            "to_read": to_read,
        }

    def _tiles(self, report: SetReport) -> list[dict[str, object]]:
        met = {result.target.figure: "met" if result.met else "missed" for result in report.targets()}
        names = sorted((name for name in _TILES if name in report.figures), key=lambda name: name not in met)
        return [self._cell(name, report.figures[name]) | {"state": met.get(name, "")} for name in names[:_TILES_SHOWN]]

    def _cell(self, name: str, figure: Figure, reference: Figure | None = None) -> dict[str, object]:
        value, low, high = (_read(name, part, self.locale) for part in (figure.value, figure.low, figure.high))
        return {
            "name": figure_name(name, self.locale),
            "value": value,
            "interval": "" if figure.low == figure.high else f"{low} – {high}",
            "n": figure.n,
            "reference": _read(name, reference.value, self.locale) if reference else "",
            "bar": (figure, reference) if "_ms_" not in name and 0 <= figure.value <= 1 else (),
        }

    def _outcomes(self, report: SetReport) -> list[tuple[str, str, int]]:
        return [
            (_STYLES.get(name, "fixed"), outcome_name(name, self.locale), count)
            for name, count in sorted(report.outcomes.items(), key=lambda item: (_rank(item[0]), -item[1]))
        ]

    def _plots(self, report: SetReport, set_run: SetRun) -> list[dict[str, object]]:
        drawn = [*self._claims_plots(report), *self._trust_plots(set_run), *self._category_plots(set_run)]
        if spent := steps(set_run.records):
            drawn.append(self._plot("latency", "time_bars", spent, self.message("ms")))
        return drawn

    def _claims_plots(self, report: SetReport) -> Iterator[dict[str, object]]:
        if report.claims:
            axes = (self.message("claimed"), self.message("answer_precision"), self.message("false_answer_rate"))
            claimed = report.figures["claimed"].value
            now = next((point for point in reversed(report.claims) if point.claimed <= claimed + 1e-9), None)
            yield self._plot("claims", "claims", report.claims, now, *axes)

    def _trust_plots(self, set_run: SetRun) -> Iterator[dict[str, object]]:
        answerable, unanswerable = scores(set_run.records)
        if min(len(answerable), len(unanswerable)) < MIN_FOR_CALIBRATION:
            return
        axes = self.message("said"), self.message("true")
        labels = [True] * len(answerable) + [False] * len(unanswerable)
        bins = reliability([*answerable, *unanswerable], labels)
        yield self._plot("reliability", "reliability", bins, *axes)
        sure = confidences(set_run.records)
        if len(sure) >= MIN_FOR_CALIBRATION and any(right for _, right in sure):
            bins = reliability([value for value, _ in sure], [right for _, right in sure])
            yield self._plot("confidence", "reliability", bins, *axes)

    def _category_plots(self, set_run: SetRun) -> Iterator[dict[str, object]]:
        by_case = marks(set_run, self.sets_by_name)
        for key, figures in (("kinds", ("answer_precision",)), ("hits", _HITS), ("routing", ("routed",))):
            rows = [
                {
                    "name": name,
                    "shares": [sum(mark[figure][0] for mark in group) / len(group) for figure in figures],
                    "said": f"n = {len(group)}",
                }
                for name, group in self._categories(set_run, by_case, figures[0])
            ]
            if rows:
                legend = self._depths() if len(figures) > 1 else (self.message("right"),)
                yield self._plot(key, "grouped_bars", rows, legend)

    def _depths(self) -> tuple[str, ...]:
        return tuple(self.message("depth_1") if n == 1 else self.message("depth_n", n=n) for n in DEPTHS)

    def _categories(
        self, set_run: SetRun, by_case: Mapping[str, Mapping[str, tuple[float, float]]], figure: str
    ) -> list[tuple[str, list[Mapping[str, tuple[float, float]]]]]:
        """Return the cases with a value for a figure, by category, largest first; small ones together."""
        judged = [record.case for record in set_run.records if figure in by_case[record.case.case_id]]
        counts = Counter(case.category for case in judged)
        large = {name for name, _ in counts.most_common(_CATEGORIES_SHOWN)}
        groups: dict[str, list[Mapping[str, tuple[float, float]]]] = {}
        for case in judged:
            name = (case.category or set_run.name) if case.category in large else self.message("others")
            groups.setdefault(name, []).append(by_case[case.case_id])
        return sorted(groups.items(), key=lambda item: -len(item[1]))

    def _plot(self, key: str, chart: str, *arguments: object) -> dict[str, object]:
        """Return a plot with its texts.

        :param chart: the macro of `charts.html` that draws it.
        """
        hint = f"evaluation.page.{key}_hint"
        caption = text(hint, self.locale) if hint in keys("evaluation.page.") else ""
        return {"title": self.message(key), "hint": caption, "chart": chart, "arguments": arguments}

    def _worst(self, record: Record) -> dict[str, object]:
        wanted = "\n".join(filter(None, (requirement(record, self.locale), record.case.gold_answer)))
        return {"record": record, "outcome": ending(record, self.locale), "wanted": wanted}

    def _groups(self, report: SetReport) -> list[dict[str, object]]:
        group_of = {name: group for group, names in GROUPS.items() for name in names}
        groups: defaultdict[str, list[dict[str, object]]] = defaultdict(list)
        for name, figure in report.figures.items():
            group = group_of.get(name.partition(":")[0], "other")
            groups[group].append(self._cell(name, figure, report.reference.get(name)))
        for name, kinds in report.scoreless().items():
            value = _message("table", self.locale, "scoreless", kinds=kinds)
            blank = dict.fromkeys(("interval", "reference", "bar"), "")
            groups["other"].append({"name": figure_name(name, self.locale), "value": value, "n": 0} | blank)
        return [
            {"name": text(f"evaluation.group.{name}", self.locale), "figures": cells} for name, cells in groups.items()
        ]


def _read(name: str, value: float, locale: str) -> str:
    """Format a figure for readers: a share as a percentage."""
    return localised(f"{value:.1f}" if name in _PLAIN or "_ms_" in name else f"{value:.1%}", locale)


def _gravity(record: Record) -> tuple[bool, bool, float]:
    """Return a sort key: failures first, then visible wrong answers, most certain first, then the rest."""
    return record.outcome != "failed", not record.shown, -max(record.confidence, record.score)


def _rank(outcome: str) -> int:
    return list(_STYLES).index(outcome) if outcome in _STYLES else len(_STYLES)
