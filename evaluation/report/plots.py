"""Plots of points as inline SVG, coloured by the page's style sheet, without external resources."""

from collections.abc import Mapping, Sequence
from html import escape

from evaluation.metrics.calibration import Bin
from evaluation.metrics.claims import ClaimPoint
from evaluation.metrics.thresholds import CurvePoint

_SIZE = 340
_PAD_LEFT, _PAD_BOTTOM, _PAD_TOP, _PAD_RIGHT = 46, 44, 12, 12
_INNER = _SIZE - _PAD_LEFT - _PAD_RIGHT
_TICKS = (0.0, 0.25, 0.5, 0.75, 1.0)
_WORTH_SEEING = 0.4
"""Larger shares of refusals or wrong answers are of no interest."""

_ROW, _ROW_LEFT, _ROW_RIGHT = 96, 56, 628
"""Height of a plot of a time series, and its sides."""
_ROW_STYLE = (
    "text{font:12px sans-serif;fill:#444}.curve{fill:none;stroke:#2463b0;stroke-width:1.5}"
    ".grid{stroke:#ddd}rect{fill:#fff}"
)


def reliability_diagram(bins: Sequence[Bin], across: str, up: str) -> str:
    """Draw predicted against actual shares with the diagonal. A dot is sized by its cases and has a 95% interval."""
    largest = max((one.n for one in bins), default=1)
    parts = [_frame(across, up), _path([(0, 0), (1, 1)], "diagonal")]
    parts += [_path([(one.predicted, one.low), (one.predicted, one.high)], "whisker") for one in bins]
    parts.append(_path([(one.predicted, one.true) for one in bins], "curve"))
    for one in bins:
        radius = 3 + 6 * (one.n / largest) ** 0.5
        tip = f"{one.predicted:.2f} → {one.true:.2f} (n = {one.n})"
        parts.append(_dot(one.predicted, one.true, radius, "dot", tip))
    return _square("".join(parts), f"{across} / {up}")


def refusal_diagram(
    curve: Sequence[CurvePoint], reference: Sequence[CurvePoint], threshold: float, across: str, up: str
) -> str:
    """Plot false answers against needless refusals, over every threshold; a ring marks the current one."""
    parts = [_frame(across, up, _WORTH_SEEING)]
    parts += [_path(_worth_seeing(line), style) for line, style in ((reference, "theirs"), (curve, "curve")) if line]
    at = next((point for point in curve if point.threshold >= threshold), None)
    if at and max(at.over_refusal, at.false_answers) <= _WORTH_SEEING:
        tip = f"{threshold:g}: {at.over_refusal:.1%} / {at.false_answers:.1%}"
        parts.append(_dot(at.over_refusal / _WORTH_SEEING, at.false_answers / _WORTH_SEEING, 6, "ring", tip))
    return _square("".join(parts), f"{across} / {up}")


def claims_diagram(curve: Sequence[ClaimPoint], claimed: float, across: str, right: str, wrongly: str) -> str:
    """Plot accuracy against coverage, and claims of the unanswerable; a ring marks the current threshold."""
    parts = [_frame(across, right)]
    parts.append(_path([(point.claimed, point.false_answer_rate) for point in curve], "theirs"))
    parts.append(_path([(point.claimed, point.answer_precision) for point in curve], "curve"))
    at = next((point for point in reversed(curve) if point.claimed <= claimed + 1e-9), None)
    if at is not None:
        tip = f"{at.claimed:.0%}: {at.answer_precision:.0%} / {wrongly} {at.false_answer_rate:.0%}"
        parts.append(_dot(at.claimed, at.answer_precision, 6, "ring", tip))
    return _square("".join(parts), f"{across} / {right}")


def _worth_seeing(curve: Sequence[CurvePoint]) -> list[tuple[float, float]]:
    """Return the part of a curve with plausible thresholds, on the scale of the plot."""
    return [
        (min(1.0, point.over_refusal / _WORTH_SEEING), min(1.0, point.false_answers / _WORTH_SEEING)) for point in curve
    ]


def time_series(unit: str, at: Sequence[float], curves: Mapping[str, Sequence[float]]) -> str:
    """Draw one plot below the other over the same moments, as a separate file; every scale begins at 0.

    :param unit: of the moments.
    :param curves: values by title.
    """
    height, longest = _ROW * len(curves) + 20, max(at, default=0.0) or 1.0
    rows = "".join(
        _row(title, [moment / longest for moment in at], values, _ROW * place)
        for place, (title, values) in enumerate(curves.items())
    )
    end = f'<text x="{_ROW_RIGHT}" y="{height - 6}" text-anchor="end">{longest:.0f} {escape(unit)}</text>'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_ROW_RIGHT + 12} {height}"><style>{_ROW_STYLE}</style>'
        f'<rect width="{_ROW_RIGHT + 12}" height="{height}"/>{rows}{end}</svg>\n'
    )


def _row(title: str, at: Sequence[float], values: Sequence[float], top: float) -> str:
    """Draw one of the plots of `time_series`; `at` is scaled to 0..1."""
    highest = max((*values, 1.0)) * 1.1
    floor, inner, width = top + _ROW - 14, _ROW - 36, _ROW_RIGHT - _ROW_LEFT
    lines = "".join(
        f'<line class="grid" x1="{_ROW_LEFT}" x2="{_ROW_RIGHT}" y1="{floor - inner * part:.1f}" '
        f'y2="{floor - inner * part:.1f}"/><text x="{_ROW_LEFT - 6}" y="{floor - inner * part + 4:.1f}" '
        f'text-anchor="end">{highest * part:.0f}</text>'
        for part in (0.0, 0.5, 1.0)
    )
    points = "L".join(
        f"{_ROW_LEFT + width * x:.1f} {floor - inner * value / highest:.1f}"
        for x, value in zip(at, values, strict=True)
    )
    return f'<text x="{_ROW_LEFT}" y="{top + 14}">{escape(title)}</text>{lines}<path class="curve" d="M{points}"/>'


def _square(inner: str, label: str) -> str:
    return f'<svg class="plot" viewBox="0 0 {_SIZE} {_SIZE}" role="img" aria-label="{escape(label)}">{inner}</svg>'


def _x(value: float) -> float:
    return _PAD_LEFT + _INNER * value


def _y(value: float) -> float:
    inner = _SIZE - _PAD_TOP - _PAD_BOTTOM
    return _PAD_TOP + inner * (1 - value)


def _frame(across: str, up: str, highest: float = 1.0) -> str:
    parts = []
    for tick in _TICKS:
        parts.append(_path([(tick, 0), (tick, 1)], "grid"))
        parts.append(_path([(0, tick), (1, tick)], "grid"))
        parts.append(f'<text x="{_x(tick):g}" y="{_y(0) + 16:g}" text-anchor="middle">{highest * tick:.0%}</text>')
        parts.append(f'<text x="{_x(0) - 6:g}" y="{_y(tick) + 4:g}" text-anchor="end">{highest * tick:.0%}</text>')
    parts.append(f'<text class="axis" x="{_x(0.5):g}" y="{_SIZE - 8}" text-anchor="middle">{escape(across)}</text>')
    middle = _y(0.5)
    parts.append(
        f'<text class="axis" x="12" y="{middle:g}" text-anchor="middle" transform="rotate(-90 12 {middle:g})">'
        f"{escape(up)}</text>"
    )
    return "".join(parts)


def _path(points: Sequence[tuple[float, float]], style: str) -> str:
    path = "L".join(f"{_x(x):.1f} {_y(y):.1f}" for x, y in points)
    return f'<path class="{style}" d="M{path}"/>'


def _dot(x: float, y: float, radius: float, style: str, tip: str) -> str:
    at = f'cx="{_x(x):.1f}" cy="{_y(y):.1f}" r="{radius:.1f}"'
    return f'<circle class="{style}" {at}><title>{escape(tip)}</title></circle>'
