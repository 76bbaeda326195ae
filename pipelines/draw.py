"""The picture of a pipeline, drawn from its own YAML: every step with its component and thresholds, loops in sight.

Steps stand in layers, one below the other in the order of their work. What leads to the next layer is a straight arrow;
what leaves layers out runs down in lanes on the right, and what leads back, a loop, runs up on the left.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

import yaml

from settings import get_settings

_WIDTH = 300
_HEAD = 46
_LINE = 17
_GAP = 40
_ASIDE = 34
_LABEL = 92
_LANE = 16
_MARGIN = 14
_LONGEST = 42
_STAGES = ("understand", "retrieve", "judge", "answer", "decide", "ingest")
_COMMENT = re.compile(r"^ {6,}(?P<name>[\w-]+):.*?\s# (?P<said>.+)$")
_STEP = re.compile(r"^ {2}(?P<name>[\w-]+):\s*$")
_STYLE = """
.g{--ink:#1c2733;--soft:#5c6b7a;--box:#fff;--rim:#c8d1da;--line:#7b8a99;--back:#c2410c;
--understand:#7c5cd6;--retrieve:#1f7a8c;--judge:#c98a00;--answer:#2e8b57;--decide:#b8405e;--ingest:#1f7a8c;--other:#8a97a5;
font-family:system-ui,-apple-system,"Segoe UI",Roboto,"DejaVu Sans",sans-serif}
@media(prefers-color-scheme:dark){.g{--ink:#e6ebf0;--soft:#9fb0c0;--box:#1d2630;--rim:#3b4856;--line:#8294a6;
--back:#fb923c;--understand:#a78bfa;--retrieve:#4fb3c8;--judge:#f0b429;--answer:#57c088;--decide:#ef7d9a;--ingest:#4fb3c8}}
.g .box{fill:var(--box);stroke:var(--rim)}.g .name{fill:var(--ink);font-size:15px;font-weight:600}
.g .kind{fill:var(--soft);font-size:11.5px}.g .par{fill:var(--ink);font-size:12px}
.g .say{fill:var(--soft);font-size:11.5px}
.g .way{fill:none;stroke:var(--line);stroke-width:1.5}.g .back{stroke:var(--back);stroke-dasharray:5 3}
.g .tip{fill:var(--line)}.g .backtip{fill:var(--back)}.g .backsay{fill:var(--back)}
"""


@dataclass(frozen=True, slots=True)
class Step:
    """One component: its name in the pipeline, its class, the stage it serves, its parameters with what is said of
    each."""

    name: str
    kind: str
    stage: str
    parameters: tuple[tuple[str, str], ...]

    @property
    def height(self) -> int:
        """Of its box, in pixels."""
        return _HEAD + _LINE * len(self.parameters) + (8 if self.parameters else 0)


@dataclass(frozen=True, slots=True)
class Way:
    """A connection. `label` is the sender's socket where it has several; `loop` says that it leads back."""

    sender: str
    receiver: str
    label: str
    loop: bool


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a step's box stands, in pixels."""

    x: float
    y: float
    height: int

    @property
    def bottom(self) -> float:
        return self.y + self.height


def names() -> tuple[str, ...]:
    """The pipelines that are deployed."""
    return tuple(
        sorted(path.stem for path in get_settings().pipelines_dir.glob("*/*.yaml") if path == path_of(path.stem))
    )


def path_of(name: str) -> Path:
    """The file of a deployed pipeline."""
    return get_settings().pipelines_dir / name.partition(".")[0] / f"{name}.yaml"


def draw(source: str) -> str:
    """The pipeline of a YAML text as SVG, which needs nothing from anywhere and follows the reader's light or dark."""
    steps = _steps(source)
    ways = _ways(source, steps)
    layers = _layers(steps, ways)
    lanes = _lanes(ways, layers)
    left = _MARGIN + _space(lanes, ways, loop=True)
    widest = max(len([name for name in layers if layers[name] == layer]) for layer in set(layers.values()))
    inner = widest * _WIDTH + (widest - 1) * _ASIDE
    width = left + inner + _space(lanes, ways, loop=False) + _MARGIN
    places = _places(steps, layers, left, inner)
    height = max(place.bottom for place in places.values()) + _MARGIN
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" class="g" role="img" viewBox="0 0 {width:g} {height:g}" '
        f'width="{width:g}" height="{height:g}">',
        f"<style>{_STYLE}</style>",
        *_drawn_ways(ways, lanes, layers, places, left, inner),
        *(_drawn_step(step, places[name]) for name, step in steps.items()),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _steps(source: str) -> dict[str, Step]:
    comments = _comments(source)
    found = {}
    for name, spec in yaml.safe_load(source)["components"].items():
        room, _, kind = str(spec["type"]).rpartition(".")
        stage = next((part for part in room.split(".") if part in _STAGES), "other")
        given = spec.get("init_parameters") or {}
        lines = [
            (line, comments.get((name, parameter), ""))
            for parameter, value in given.items()
            for line in _lines(parameter, value)
        ]
        found[name] = Step(name, kind, stage, tuple(lines))
    return found


def _comments(source: str) -> dict[tuple[str, str], str]:
    """What the YAML says beside a parameter, by step and parameter."""
    found, step = {}, ""
    for line in source.splitlines():
        if match := _STEP.match(line):
            step = match["name"]
        elif match := _COMMENT.match(line):
            found[step, match["name"]] = match["said"]
    return found


def _lines(name: str, value: object) -> Iterator[str]:
    """A parameter as lines that fit into a box; a nested component by its class alone."""
    if isinstance(value, dict) and "type" in value:
        yield f"{name}: {str(value['type']).rpartition('.')[2]}"
        return
    if not isinstance(value, dict):
        yield f"{name}: {str(value).rpartition('.')[2] if name == 'type_' else value}"[:_LONGEST]
        return
    line = f"{name}:"
    for key, one in value.items():
        part = f" {key} {one}"
        if len(line) + len(part) > _LONGEST:
            yield line
            line = "   "
        line += part
    yield line


def _ways(source: str, steps: Mapping[str, Step]) -> list[Way]:
    raw = [
        (*str(one["sender"]).split(".")[:2], str(one["receiver"]).split(".")[0])
        for one in yaml.safe_load(source).get("connections") or ()
    ]
    sockets: defaultdict[str, set[str]] = defaultdict(set)
    for sender, socket, _ in raw:
        sockets[sender].add(socket)
    back = _leading_back({name: [r for s, _, r in raw if s == name] for name in steps})
    return [
        Way(sender, receiver, socket if len(sockets[sender]) > 1 else "", (sender, receiver) in back)
        for sender, socket, receiver in raw
    ]


def _leading_back(following: Mapping[str, Sequence[str]]) -> set[tuple[str, str]]:
    """The connections that close a loop: those to a step from which the walk came."""
    back: set[tuple[str, str]] = set()
    done: set[str] = set()

    def walk(name: str, trail: frozenset[str]) -> None:
        for after in following[name]:
            if after in trail or after == name:
                back.add((name, after))
            elif after not in done:
                walk(after, trail | {after})
        done.add(name)

    for name in following:
        if name not in done:
            walk(name, frozenset({name}))
    return back


def _layers(steps: Mapping[str, Step], ways: Sequence[Way]) -> dict[str, int]:
    """Each step below everything that leads to it (longest path)."""
    layers = dict.fromkeys(steps, 0)
    for _ in steps:
        for way in ways:
            if not way.loop:
                layers[way.receiver] = max(layers[way.receiver], layers[way.sender] + 1)
    return layers


def _places(steps: Mapping[str, Step], layers: Mapping[str, int], left: float, inner: float) -> dict[str, _Place]:
    places, y = {}, float(_MARGIN)
    for layer in sorted(set(layers.values())):
        row = [name for name in steps if layers[name] == layer]
        x = left + (inner - len(row) * _WIDTH - (len(row) - 1) * _ASIDE) / 2
        for at, name in enumerate(row):
            places[name] = _Place(x + at * (_WIDTH + _ASIDE), y, steps[name].height)
        y += max(steps[name].height for name in row) + _GAP
    return places


def _lanes(ways: Sequence[Way], layers: Mapping[str, int]) -> dict[Way, int]:
    """A lane for every way that does not simply lead to the next layer; the shortest run innermost."""
    lanes: dict[Way, int] = {}
    taken: dict[tuple[bool, int], list[tuple[int, int]]] = {}
    for way in sorted(ways, key=lambda way: abs(layers[way.receiver] - layers[way.sender])):
        if not way.loop and layers[way.receiver] == layers[way.sender] + 1:
            continue
        low, high = sorted((layers[way.sender], layers[way.receiver]))
        lane = 0
        while any(low < end and start < high for start, end in taken.get((way.loop, lane), ())):
            lane += 1
        taken.setdefault((way.loop, lane), []).append((low, high))
        lanes[way] = lane
    return lanes


def _space(lanes: Mapping[Way, int], ways: Iterable[Way], *, loop: bool) -> float:
    used = [lanes[way] for way in ways if way in lanes and way.loop is loop]
    return _LABEL + _LANE * (max(used) + 1) if used else 0


def _drawn_ways(
    ways: Sequence[Way],
    lanes: Mapping[Way, int],
    layers: Mapping[str, int],
    places: Mapping[str, _Place],
    left: float,
    inner: float,
) -> Iterator[str]:
    arriving: defaultdict[tuple[str, bool], int] = defaultdict(int)
    leaving: defaultdict[tuple[str, bool], int] = defaultdict(int)
    for way in sorted(ways, key=lambda way: -layers[way.sender]):
        start, end = places[way.sender], places[way.receiver]
        if way not in lanes:
            x1, x2 = start.x + _WIDTH / 2, end.x + _WIDTH / 2
            middle = start.bottom + _GAP / 2 - 4
            yield _line([(x1, start.bottom), (x1, middle), (x2, middle), (x2, end.y)], loop=False)
            if way.label:
                yield f'<text class="say" x="{x1 + 8:g}" y="{start.bottom + 16:g}">{escape(way.label)}</text>'
            continue
        side = way.loop
        y1 = start.y + 24 + 18 * leaving[way.sender, side]
        y2 = end.y + 14 + 9 * arriving[way.receiver, side]
        leaving[way.sender, side] += 1
        arriving[way.receiver, side] += 1
        lane = _LABEL - 6 + _LANE * lanes[way]
        edge1, edge2 = (start.x, end.x) if side else (start.x + _WIDTH, end.x + _WIDTH)
        x = left - lane if side else left + inner + lane
        yield _line([(edge1, y1), (x, y1), (x, y2), (edge2, y2)], loop=side)
        if way.label:
            at, anchor = (edge1 - 6, "end") if side else (edge1 + 6, "start")
            css = "say backsay" if side else "say"
            yield f'<text class="{css}" x="{at:g}" y="{y1 - 5:g}" text-anchor="{anchor}">{escape(way.label)}</text>'


def _line(points: Sequence[tuple[float, float]], *, loop: bool) -> str:
    """A polyline that ends in an arrow head."""
    (x0, y0), (x1, y1) = points[-2], points[-1]
    way = "M" + "L".join(f"{x:g} {y:g}" for x, y in points)
    if y0 == y1:
        step = 7 if x1 < x0 else -7
        head = f"M{x1:g} {y1:g}l{step:g} -4v8z"
    else:
        head = f"M{x1:g} {y1:g}l-4 -7h8z"
    css, tip = ("way back", "backtip") if loop else ("way", "tip")
    return f'<path class="{css}" d="{way}"/><path class="{tip}" d="{head}"/>'


def _drawn_step(step: Step, place: _Place) -> str:
    x, y = place.x, place.y
    lines = [
        f'<rect class="box" x="{x:g}" y="{y:g}" width="{_WIDTH}" height="{place.height}" rx="8"/>',
        f'<rect x="{x:g}" y="{y + 8:g}" width="4" height="{place.height - 16}" rx="2" fill="var(--{step.stage})"/>',
        f'<text class="name" x="{x + 16:g}" y="{y + 22:g}">{escape(step.name)}</text>',
        f'<text class="kind" x="{x + 16:g}" y="{y + 38:g}">{escape(step.kind)}</text>',
    ]
    for at, (line, said) in enumerate(step.parameters):
        tip = f"<title>{escape(said)}</title>" if said else ""
        baseline = y + _HEAD + 14 + _LINE * at
        lines.append(
            f'<text class="par" x="{x + 16:g}" y="{baseline:g}" xml:space="preserve">{tip}{escape(line)}</text>'
        )
    return "\n".join(lines)
