"""Time series, one plot below the other, as a self-contained SVG file."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

_WIDTH, _HEIGHT = 640, 96
_LEFT, _RIGHT, _TOP, _BOTTOM = 56, 12, 22, 14
_STYLE = (
    "text{font:12px sans-serif;fill:#444}.curve{fill:none;stroke:#2463b0;stroke-width:1.5}"
    ".grid{stroke:#ddd}rect{fill:#fff}"
)


@dataclass(frozen=True, slots=True)
class Course:
    """A quantity with its values at the moments `at`."""

    title: str
    at: Sequence[float]
    values: Sequence[float]


def courses(unit: str, shown: Sequence[Course]) -> str:
    """Draw a plot for each series; every scale begins at 0.

    :param unit: of the moments.
    """
    height = _HEIGHT * len(shown) + 20
    longest = max((course.at[-1] for course in shown if course.at), default=1.0)
    parts = [_plot(course, longest, _HEIGHT * place) for place, course in enumerate(shown)]
    end = f'<text x="{_WIDTH - _RIGHT}" y="{height - 6}" text-anchor="end">{longest:.0f} {escape(unit)}</text>'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}"><style>{_STYLE}</style>'
        f'<rect width="{_WIDTH}" height="{height}"/>{"".join(parts)}{end}</svg>\n'
    )


def _plot(course: Course, longest: float, top: float) -> str:
    high = max((*course.values, 1.0)) * 1.1
    floor, inner = top + _HEIGHT - _BOTTOM, _HEIGHT - _TOP - _BOTTOM
    points = "L".join(
        f"{_LEFT + (_WIDTH - _LEFT - _RIGHT) * at / longest:.1f} {floor - inner * value / high:.1f}"
        for at, value in zip(course.at, course.values, strict=True)
    )
    lines = "".join(
        f'<line class="grid" x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{floor - inner * part:.1f}" '
        f'y2="{floor - inner * part:.1f}"/><text x="{_LEFT - 6}" y="{floor - inner * part + 4:.1f}" text-anchor="end">'
        f"{high * part:.0f}</text>"
        for part in (0.0, 0.5, 1.0)
    )
    return f'<text x="{_LEFT}" y="{top + 14}">{escape(course.title)}</text>{lines}<path class="curve" d="M{points}"/>'
