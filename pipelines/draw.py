"""A pipeline as Mermaid text, which GitHub and most editors show as a picture: steps, thresholds, loops.

Haystack has a writer of Mermaid text too (3.4, `core.pipeline.draw`). It is private, and it shows no parameters, where
authors look for thresholds.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from textwrap import shorten

import networkx
import yaml

from settings import get_settings

_COMMENT = re.compile(r"^ {6,}(?P<name>[\w-]+):.*?\s# (?P<text>.+)$")
_STEP = re.compile(r"^ {2}(?P<name>[\w-]+):\s*(?:#.*)?$")
_MODULES = re.compile(r"\b(?:\w+\.)+(?=\w)")
_JINJA = re.compile(r"\{\{-?\s*(?P<expression>.*?)\s*-?\}\}", re.DOTALL)
_LONGEST = 120
"""Characters of a parameter's value, on one line."""
_ESCAPED = {"&": "#amp;", "<": "#lt;", ">": "#gt;", '"': "#quot;", "#": "#35;"}
_KEYWORDS = frozenset(
    "call class classDef click default end flowchart graph href interpolate linkStyle style subgraph".split()
)


@dataclass(frozen=True, slots=True)
class Connection:
    """An arrow. `label` names what it carries; `loop` says that it leads back."""

    sender: str
    receiver: str
    label: str
    loop: bool

    def __str__(self) -> str:
        start, end = _id(self.sender), _id(self.receiver)
        if self.loop:
            return f"{start} -. {self.label} .-> {end}" if self.label else f"{start} -.-> {end}"
        return f"{start} -- {self.label} --> {end}" if self.label else f"{start} --> {end}"


def names() -> tuple[str, ...]:
    return tuple(
        sorted(path.stem for path in get_settings().pipelines_dir.glob("*/*.yaml") if path == path_of(path.stem))
    )


def path_of(name: str) -> Path:
    return get_settings().pipelines_dir / name.partition(".")[0] / f"{name}.yaml"


def mermaid(source: str) -> str:
    """Return the pipeline of a YAML text as a Mermaid flowchart; dotted arrows lead back."""
    definition = yaml.safe_load(source)
    components = definition["components"]
    comments = _comments(source)
    nodes = (f'{_id(name)}["{"<br>".join(_label(name, spec, comments))}"]' for name, spec in components.items())
    arrows = map(str, _connections(definition.get("connections") or (), components))
    return "\n  ".join(["flowchart TD", *nodes, *arrows]) + "\n"


def overview(source: str) -> str:
    """Return the pipeline as a short Mermaid flowchart: neighbouring steps of one package share a box.

    Steps from other packages than ours belong to the box before them. An arrow that a longer way implies is left out.
    """
    definition = yaml.safe_load(source)
    components = definition["components"]
    arrows = _connections(definition.get("connections") or (), components)
    # A profile adds its steps at the end. In the order of the flow, boxes cannot lead back to each other.
    boxes = _boxes({step: components[step] for step in _in_order(arrows, list(components))})
    number = {step: index for index, (_, steps) in enumerate(boxes) for step in steps}
    forward = {(number[arrow.sender], number[arrow.receiver]) for arrow in arrows if not arrow.loop}
    forward = {(sender, receiver) for sender, receiver in forward if sender != receiver}
    loops = {
        sender: min(number[arrow.receiver] for arrow in arrows if arrow.loop and number[arrow.sender] == sender)
        for sender in {number[arrow.sender] for arrow in arrows if arrow.loop}
    }
    lines = [f'b{index}["<b>{_escaped(kind)}</b><br>{", ".join(steps)}"]' for index, (kind, steps) in enumerate(boxes)]
    reduced = networkx.transitive_reduction(networkx.DiGraph(forward)).edges
    lines += [f"b{sender} --> b{receiver}" for sender, receiver in sorted(reduced)]
    lines += [f"b{sender} -.-> b{receiver}" for sender, receiver in sorted(loops.items())]
    return "\n  ".join(["flowchart TD", *lines]) + "\n"


def _boxes(components: Mapping[str, Mapping[str, object]]) -> list[tuple[str, list[str]]]:
    """Return the packages of the steps in the given order, each with its neighbouring steps."""
    boxes: list[tuple[str, list[str]]] = []
    for name, spec in components.items():
        package, _, rest = str(spec["type"]).partition(".")
        kind = rest.partition(".")[0] if package == "components" else ""
        if not boxes or (kind and kind != boxes[-1][0]):
            boxes.append((kind, []))
        boxes[-1][1].append(_escaped(name))
    return boxes


def _in_order(arrows: Sequence[Connection], steps: Sequence[str]) -> list[str]:
    """Return each step after those that lead to it, otherwise in the order of the file."""
    forward = networkx.DiGraph((arrow.sender, arrow.receiver) for arrow in arrows if not arrow.loop)
    forward.add_nodes_from(steps)
    return list(networkx.lexicographical_topological_sort(forward, key=list(steps).index))


def _label(name: str, spec: Mapping[str, object], comments: Mapping[tuple[str, str], str]) -> Iterator[str]:
    yield f"<b>{_escaped(name)}</b>"
    yield _escaped(_class(spec["type"]))
    parameters = spec.get("init_parameters")
    for parameter, value in parameters.items() if isinstance(parameters, dict) else ():
        line = _escaped(f"{parameter}: {_formatted(parameter, value)}")
        comment = comments.get((name, parameter))
        yield f"{line} <i>{_escaped(comment)}</i>" if comment else line


def _formatted(name: str, value: object) -> str:
    """Return a parameter's value; a nested component by its class alone, a route by its output and condition."""
    if isinstance(value, dict) and "type" in value:
        return _class(value["type"])
    if isinstance(value, dict) and "condition" in value:
        return f"{value.get('output_name')} if {_formatted('condition', value['condition'])}"
    if isinstance(value, dict):
        return ", ".join(f"{key} {_formatted(str(key), inner)}" for key, inner in value.items())
    if isinstance(value, list):
        return "; ".join(_formatted(name, inner) for inner in value)
    if name == "type_":
        return _MODULES.sub("", str(value))
    return shorten(_JINJA.sub(r"\g<expression>", str(value)), _LONGEST, placeholder="…")


def _class(path: object) -> str:
    return str(path).rpartition(".")[2]


def _comments(source: str) -> dict[tuple[str, str], str]:
    comments, step = {}, ""
    for line in source.splitlines():
        if match := _STEP.match(line):
            step = match["name"]
        elif match := _COMMENT.match(line):
            comments[step, match["name"]] = match["text"]
    return comments


def _connections(
    connections: Sequence[Mapping[str, object]], components: Mapping[str, Mapping[str, object]]
) -> list[Connection]:
    """Return the arrows between steps, each once, with the names of the sockets that send what it carries."""
    carried: dict[tuple[str, str], dict[str, None]] = {}
    for connection in connections:
        sender, _, socket = str(connection["sender"]).partition(".")
        receiver = str(connection["receiver"]).partition(".")[0]
        carried.setdefault((sender, receiver), {})[socket] = None
    back = _back_edges({name: [receiver for sender, receiver in carried if sender == name] for name in components})
    return [
        Connection(sender, receiver, ", ".join(sockets), (sender, receiver) in back)
        for (sender, receiver), sockets in carried.items()
    ]


def _back_edges(following: Mapping[str, Sequence[str]]) -> set[tuple[str, str]]:
    """Return the connections that close a loop: those to a step from which the walk came."""
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


def _id(name: str) -> str:
    plain = re.sub(r"\W", "_", name)
    return f"{plain}_" if plain in _KEYWORDS else plain


def _escaped(text: str) -> str:
    return "".join(_ESCAPED.get(letter, letter) for letter in text)
