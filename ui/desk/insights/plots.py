"""Geometry of plots. The desk's templates draw it as SVG, its style sheet sets the colours."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

WIDTH, HEIGHT = 720, 200
_LEFT, _TOP, _BASE = 40, 10, 176
_ROOM = _BASE - _TOP
_LABELS = 8
_WIDEST = 90
_NICE = (1, 2, 4, 6, 8, 10)


@dataclass(frozen=True, slots=True)
class Segment:
    style: str
    y: float
    height: float


@dataclass(frozen=True, slots=True)
class Column:
    """Column with its axis label (often empty if there are many columns) and its name."""

    x: float
    width: float
    name: str
    label: str
    total: float
    segments: tuple[Segment, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plot:
    """Size of a plot, and where its axes are."""

    width: int = WIDTH
    height: int = HEIGHT
    left: int = _LEFT
    base: int = _BASE
    top: int = _TOP


@dataclass(frozen=True, slots=True)
class Columns(Plot):
    """Plot of stacked columns, with its grid as (height, label)."""

    columns: tuple[Column, ...]
    grid: tuple[tuple[float, str], ...]


def stacked(parts: Mapping[str, Mapping[str, float]], styles: Sequence[str], highest: int = 0) -> Columns:
    """Build columns by name, each of parts by style, the first at the bottom.

    :param highest: the top of the axis; 0 takes it from the columns.
    """
    totals = {name: sum(counts.get(style, 0) for style in styles) for name, counts in parts.items()}
    highest = highest or _round_up(round(max(totals.values(), default=0)))
    step = _step(len(parts))
    every = -(-len(parts) // _LABELS) or 1
    columns = []
    for place, (name, counts) in enumerate(parts.items()):
        y, segments = float(_BASE), []
        for style in styles:
            height = _ROOM * counts.get(style, 0) / highest
            y -= height
            if height:
                segments.append(Segment(style, round(y, 1), round(height, 1)))
        x, width = _LEFT + step * place + step * 0.12, step * 0.76
        label = name if place % every == 0 else ""
        columns.append(Column(round(x, 1), round(width, 1), name, label, totals[name], tuple(segments)))
    grid = tuple((round(_BASE - _ROOM * share, 1), f"{highest * share:g}") for share in (0, 0.5, 1))
    return Columns(tuple(columns), grid)


def _step(columns: int) -> float:
    return min((WIDTH - _LEFT) / max(1, columns), _WIDEST)


def _round_up(value: int) -> int:
    if value <= 2:
        return 2
    power = int(10 ** (len(str(value)) - 1))
    return next(power * nice for nice in _NICE if power * nice >= value and power * nice % 2 == 0)


@dataclass(frozen=True, slots=True)
class Curve(Plot):
    """Line through shares on both axes, each 0..1, with their grids as (place, percent)."""

    line: str
    dots: tuple[tuple[float, float], ...]
    across: tuple[tuple[float, float], ...]
    up: tuple[tuple[float, float], ...]


def curve(points: Sequence[tuple[float, float]]) -> Curve:
    width = WIDTH - _LEFT - 20
    dots = tuple((round(_LEFT + width * x, 1), round(_BASE - _ROOM * y, 1)) for x, y in points)
    marks = (0, 0.25, 0.5, 0.75, 1)
    return Curve(
        " ".join(f"{x},{y}" for x, y in dots),
        dots,
        tuple((round(_LEFT + width * share, 1), share) for share in marks),
        tuple((round(_BASE - _ROOM * share, 1), share) for share in marks),
    )


def line(values: Sequence[float | None]) -> tuple[tuple[float, float], ...]:
    """Place a line of shares, each 0..1, above as many columns; missing values have no point."""
    step = _step(len(values))
    return tuple(
        (round(_LEFT + step * (place + 0.5), 1), round(_BASE - _ROOM * value, 1))
        for place, value in enumerate(values)
        if value is not None
    )
