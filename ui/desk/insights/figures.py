"""Metrics page of chats and answers: figures, plots with their tables, topics."""

from collections.abc import Callable, Mapping
from typing import Annotated

from fastapi import Query
from starlette.responses import Response

from components.language.texts import texts
from pipelines.ask import insight
from pipelines.routes import OpenRouter
from tenants.chats import sites
from tenants.core.errors import Invalid
from tenants.insight.chats import RESULTS, Part, Tally
from tenants.insight.period import MOST_DAYS, parsed_day
from ui.desk import rendering
from ui.desk.insights import plots
from ui.desk.rendering import Desk, may

CHOICES = (7, 28, 90)


def router(desk: Desk) -> OpenRouter:
    endpoints = OpenRouter("operate", page=True, include_in_schema=False)

    @endpoints.get("/desk/insight")
    def show_insight(
        since: Annotated[str, Query(max_length=10)] = "",
        until: Annotated[str, Query(max_length=10)] = "",
        days: Annotated[int, Query(ge=1, le=MOST_DAYS)] = insight.DAYS,
    ) -> Response:
        invalid: Invalid | None = None
        try:
            shown = insight.insight(parsed_day(since), parsed_day(until), days)
        except Invalid as refused:
            # The requested period is invalid: show the default one and the reason.
            invalid = refused
            shown = insight.insight(days=insight.DAYS)
        figures = shown.chats
        by_day = {day: {str(one): tally.of(one) for one in RESULTS} for day, tally in figures.by_day.items()}
        return desk.page(
            "insight/figures.html",
            invalid,
            section="insight",
            shown=shown,
            tally=figures.tally,
            results=RESULTS,
            rated=RESULTS[:4],
            plot=plots.stacked(by_day, RESULTS),
            parts_of=[(part, _most_first(figures.by_part[part])) for part in _PARTS],
            results_of=lambda tally: [(result, tally.of(result)) for result in RESULTS],
            called=_called(),
            days="" if since or until else days,
            choices=CHOICES,
            may_export=may("admin"),
            minutes=_minutes,
            tab="figures",
        )

    return endpoints


_PARTS: tuple[Part, ...] = ("outcome", "handoff_reason", "site", "channel", "locale")


def _called() -> Callable[[str, str], str]:
    locale = rendering.reader_locale()
    t, name = texts("desk", locale), rendering.names(locale)
    known = {site.key: site.name for site in sites.own()}
    kinds = {"outcome": "outcome", "handoff_reason": "reason", "channel": "channel", "locale": "insight.language"}

    def called(part: str, key: str) -> str:
        if part == "site":
            return known.get(key) or key or t("insight.no_site")
        return name(kinds[part], key) if key else t(f"insight.none.{part}")

    return called


def _most_first(tallies: Mapping[str, Tally]) -> list[tuple[str, Tally]]:
    return sorted(tallies.items(), key=lambda one: (-one[1].total, one[0]))


def _minutes(seconds: float) -> tuple[str, float]:
    for unit, size in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= 2 * size:
            return unit, seconds / size
    return "s", seconds
