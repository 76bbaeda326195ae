"""Curves over time as a separate SVG file, without external resources."""

from collections.abc import Mapping, Sequence
from html import escape

_ROW, _ROW_LEFT, _ROW_RIGHT = 96, 56, 628
"""Height of a plot of a time series, and its sides."""
_ROW_STYLE = (
    "text{font:12px sans-serif;fill:#444}.curve{fill:none;stroke:#2463b0;stroke-width:1.5}"
    ".grid{stroke:#ddd}rect{fill:#fff}"
)


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
