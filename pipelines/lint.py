"""Finds in a pipeline's YAML what Haystack accepts in silence and gets wrong at run time.

`python -m pipelines.lint [FILE…]` checks our own pipelines or the files named, and ends with 1 when it finds anything.
A profile is checked by itself and laid over its pipeline. Components are imported and created, so check only files that
you would run.
"""

import sys
from argparse import ArgumentParser
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import networkx
import yaml
from haystack import Pipeline
from haystack.core.component.types import InputSocket

from components.language.texts import terminal_locale, text
from components.turn import PASSES, Turn
from pipelines import definition
from pipelines.definition import ALLOWED_MODULES, OVERLAY_KEYS, TURN_INPUTS
from settings import get_settings
from tenants.core.errors import Invalid

_KEYS = {"components", "connections", "max_runs_per_component", "metadata", "connection_type_validation"}
# What a profile lacks when it is read without the pipeline below it.
_OF_PROFILES = {"missing_type", "not_assembled", "not_a_mapping"}


@dataclass(frozen=True, slots=True)
class Finding:
    """A defect: a stable code, its location in the file, and the offending text."""

    code: str
    where: str
    found: str = ""

    def describe(self, locale: str) -> str:
        return f"{self.where}: {text(f'lint.{self.code}', locale, found=self.found)}"


def lint_file(path: Path) -> list[Finding]:
    source = path.read_text(encoding="utf-8")
    base = definition.base_of(path)
    return lint(source) if base is None else _overlay_faults(source, base)


def check(path: Path) -> None:
    """Raise `Invalid` (`pipeline_faulty`) with the first finding in a pipeline file or profile, if there is one."""
    read = [path, *filter(Path.is_file, filter(None, [definition.base_of(path)]))]
    changed_at = tuple(one.stat().st_mtime_ns for one in read)
    if findings := _known_findings(path, changed_at):
        raise Invalid("pipeline_faulty", path=str(path), fault=findings[0].describe(terminal_locale()))


@lru_cache(maxsize=32)
def _known_findings(path: Path, _changed_at: tuple[int, ...]) -> Sequence[Finding]:
    return lint_file(path)


def lint(source: str) -> list[Finding]:
    """Return all findings in the YAML text of a pipeline; empty if it is sound."""
    content, findings = _read(source)
    return findings if content is None else findings + _faults(content)


def _overlay_faults(source: str, base: Path) -> list[Finding]:
    overlay, findings = _read(source)
    if not base.is_file():
        return [*findings, Finding("no_base", "yaml", base.name)]
    if overlay is None or (below := lint_file(base)):
        return findings or below
    findings += [Finding("overlay_key", "yaml", str(key)) for key in overlay if key not in OVERLAY_KEYS]
    steps, pipeline = overlay.get("components", {}), definition.load(base)
    if not isinstance(steps, dict):
        return [*findings, Finding("not_a_mapping", "components", str(steps))]
    for name, spec in steps.items():
        if name not in pipeline["components"] and (not isinstance(spec, dict) or "type" not in spec):
            findings.append(Finding("overlay_step", f"components.{name}", name))
    removed = overlay.get("remove") or []
    if not isinstance(removed, list):
        return [*findings, Finding("not_a_list", "remove", str(removed))]
    known = [*pipeline["components"], *pipeline.get("connections", ())]
    findings += [Finding("overlay_removed", "remove", _named(one)) for one in removed if one not in known]
    if findings:
        return findings
    merged = definition.with_overlay(pipeline, overlay, rerank=True)
    own = overlay.get("connections")
    return [_located(one, merged["connections"], own if isinstance(own, list) else []) for one in _faults(merged)]


def _located(finding: Finding, merged: Sequence[object], own: Sequence[object]) -> Finding:
    """Return a finding in a connection of the merged pipeline with the number that the profile's author counts."""
    section, _, number = finding.where.partition(".")
    if section != "connections" or not number.isdigit():
        return finding
    connection = merged[int(number) - 1]
    return replace(finding, where=f"{section}.{own.index(connection) + 1}" if connection in own else section)


def _read(source: str) -> tuple[dict[str, object] | None, list[Finding]]:
    """Return the mapping in a YAML text, or None without a mapping, and the defects of the text."""
    loader = _Loader(source)
    try:
        content = loader.get_single_data()
    except yaml.YAMLError as error:
        return None, [Finding("not_yaml", "yaml", " ".join(str(error).split()))]
    finally:
        loader.dispose()
    if not isinstance(content, dict):
        return None, [Finding("not_a_mapping", "yaml", str(content))]
    return content, [Finding("duplicate_key", f"yaml:{line}", key) for key, line in loader.repeated]


def _faults(content: Mapping[str, object]) -> list[Finding]:
    findings = [Finding("unknown_key", "yaml", str(key)) for key in content if key not in _KEYS]
    components = content.get("components") or {}
    if not isinstance(components, dict):
        return [*findings, Finding("not_a_mapping", "components", str(components))]
    definition.import_stores(components)
    for name, spec in components.items():
        findings += list(_shape_faults(f"components.{name}", spec)) or _build_faults(name, spec)
    if any(finding.where.startswith("components.") for finding in findings):
        return findings  # sockets are known only once every component is built
    return findings + list(_graph_faults(content, components))


class _Loader(yaml.SafeLoader):
    """The safe loader, which also remembers the keys that one mapping holds twice, with their lines."""

    def __init__(self, source: str) -> None:
        super().__init__(source)
        self.repeated: list[tuple[str, int]] = []

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[object, object]:
        seen: set[str] = set()
        for key, _ in node.value:
            if key.value in seen:
                self.repeated.append((str(key.value), key.start_mark.line + 1))
            seen.add(str(key.value))
        mapping: dict[object, object] = super().construct_mapping(node, deep)
        return mapping


def _named(removed: object) -> str:
    if isinstance(removed, dict) and removed.keys() == {"sender", "receiver"}:
        return f"{removed['sender']} -> {removed['receiver']}"
    return str(removed)


def _shape_faults(where: str, spec: object) -> Iterator[Finding]:
    """Yield what is wrong with a `{type, init_parameters}` mapping as such, and with those nested in it."""
    if not isinstance(spec, dict):
        yield Finding("not_a_mapping", where, str(spec))
        return
    yield from (Finding("unknown_key", where, str(key)) for key in spec if key not in {"type", "init_parameters"})
    if "type" not in spec:
        yield Finding("missing_type", where)
    arguments = spec.get("init_parameters") or {}
    if not isinstance(arguments, dict):
        yield Finding("not_a_mapping", f"{where}.init_parameters", str(arguments))
        return
    for name, value in arguments.items():
        for part in [value] if _is_component(value) else filter(_is_component, _parts(value)):
            yield from _shape_faults(f"{where}.{name}", part)


def _build_faults(name: str, spec: Mapping[str, object]) -> Iterator[Finding]:
    """Yield why a component cannot be created, or which parts of it were left as dictionaries."""
    try:
        single = {"components": {name: spec}, "connections": []}
        built = Pipeline.from_dict(single, allowed_modules=ALLOWED_MODULES).get_component(name)
    except Exception as error:  # whatever a component raises on creation is the finding
        yield Finding("not_built", f"components.{name}", definition.reason(error))
    else:
        yield from _left_alone(f"components.{name}", built, spec)


def _left_alone(where: str, built: object, spec: Mapping[str, Any]) -> Iterator[Finding]:
    for name, value in (spec.get("init_parameters") or {}).items():
        held = getattr(built, name, None)
        if _is_component(value):
            yield from _left_alone(f"{where}.{name}", held, value)
        elif held == value and any(map(_is_component, _parts(value))):
            yield Finding("nested_too_deep", where, str(name))


def _is_component(value: object) -> bool:
    return isinstance(value, dict) and "init_parameters" in value and "." in str(value.get("type", "."))


def _parts(value: object) -> Iterator[object]:
    children = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    for child in children:
        yield child
        yield from _parts(child)


def _graph_faults(content: Mapping[str, object], components: Mapping[str, object]) -> Iterator[Finding]:
    try:
        pipeline = Pipeline.from_dict({**content, "connections": []}, allowed_modules=ALLOWED_MODULES)
    except Exception as error:
        yield Finding("not_built", "components", definition.reason(error))
        return
    nodes = pipeline.graph.nodes
    faults = list(_connect(pipeline, content.get("connections") or []))
    yield from faults
    endings = {name for name in nodes if any(socket.type is Turn for socket in nodes[name]["output_sockets"].values())}
    yield from _end_faults(content.get("metadata") or {}, endings)
    if faults:
        # What the missing connections would feed would only look like further defects.
        return
    isolated = set(networkx.isolates(pipeline.graph)) if pipeline.graph.edges else set()
    yield from (Finding("unconnected", f"components.{name}") for name in components if name in isolated)
    if endings:
        yield from _unfed_sockets(pipeline, isolated)
    yield from _loop_faults(pipeline, content.get("max_runs_per_component"), _max_passes(components))


def _connect(pipeline: Pipeline, listed: object) -> Iterator[Finding]:
    if not isinstance(listed, list):
        yield Finding("not_a_mapping", "connections", str(listed))
        return
    for number, entry in enumerate(listed, start=1):
        where = f"connections.{number}"
        if not isinstance(entry, dict):
            yield Finding("not_a_mapping", where, str(entry))
        elif wrong := entry.keys() - {"sender", "receiver"}:
            yield Finding("unknown_key", where, ", ".join(sorted(map(str, wrong))))
        else:
            try:
                pipeline.connect(str(entry.get("sender", "")), str(entry.get("receiver", "")))
            except Exception as error:  # an unknown component or socket, wrong types, two senders into one socket
                yield Finding("not_assembled", where, definition.reason(error))


def _end_faults(metadata: object, endings: Container[str]) -> Iterator[Finding]:
    """Check `metadata.exit`, which names the step whose output is the finished turn."""
    if not isinstance(metadata, dict):
        yield Finding("not_a_mapping", "metadata", str(metadata))
    elif "exit" in metadata and str(metadata["exit"]) not in endings:
        yield Finding("no_turn", "metadata.exit", str(metadata["exit"]))
    elif "exit" not in metadata and endings:
        yield Finding("missing_end", "metadata.exit")


def _unfed_sockets(pipeline: Pipeline, isolated: Container[str]) -> Iterator[Finding]:
    """Yield the mandatory inputs of a pipeline of turns that neither a component nor an input of the pipeline feeds."""
    for name, sockets in pipeline.inputs().items():
        for socket, details in sockets.items():
            if details["is_mandatory"] and socket not in TURN_INPUTS and name not in isolated:
                yield Finding("no_sender", f"{name}.{socket}", ", ".join(TURN_INPUTS))


def _max_passes(components: Mapping[str, object]) -> int:
    budget = {str(quality): passes for quality, passes in PASSES.items()}
    for spec in components.values():
        arguments = spec.get("init_parameters") if isinstance(spec, dict) else None
        budget |= (arguments or {}).get("passes") or {}
    return int(max(budget.values()))


def _loop_faults(pipeline: Pipeline, max_runs: object, max_passes: int) -> Iterator[Finding]:
    """Find what Haystack runs with missing values in a loop.

    A mandatory socket that nothing in the loop feeds gets a value from outside only once; it is missing in the second
    pass. A joiner runs with the documents of one retriever if its name comes before that of another that may get
    further input: Haystack 3.4 runs waiting steps of a loop in the order of their names.
    """
    graph = pipeline.graph
    loops = [names for names in networkx.strongly_connected_components(graph) if graph.subgraph(names).edges]
    for loop in loops:
        for name in sorted(loop):
            for socket in graph.nodes[name]["input_sockets"].values():
                if socket.is_mandatory and socket.senders and loop.isdisjoint(socket.senders):
                    yield Finding("loop_trap", f"{name}.{socket.name}", ", ".join(socket.senders))
                if socket.is_lazy_variadic and len(socket.senders) > 1:
                    late = sorted(one for one in socket.senders if one in loop and name.lower() < one.lower())
                    if waiting := [one for one in late if _may_get_more(graph.nodes[one]["input_sockets"], loop)]:
                        yield Finding("joins_early", f"{name}.{socket.name}", ", ".join(waiting))
    if loops and not (isinstance(max_runs, int) and max_runs > max_passes):
        yield Finding("loop_without_net", "max_runs_per_component", str(max_passes))


def _may_get_more(sockets: Mapping[str, InputSocket], loop: Container[str]) -> bool:
    """Return whether a step has an optional socket that the loop feeds, for which Haystack lets it wait."""
    return any(not socket.is_mandatory and any(one in loop for one in socket.senders) for socket in sockets.values())


def deployed() -> list[Path]:
    folder = get_settings().pipelines_dir
    return sorted([*folder.glob("*/*.yaml"), *folder.glob(f"*/{definition.PROFILES}/*.yaml")])


def main(arguments: list[str]) -> int:
    """Print the findings in the given files, or in all deployed pipelines. Return 1 if there are any."""
    locale = terminal_locale()
    parser = ArgumentParser(prog="python -m pipelines.lint", description=text("lint.help", locale))
    parser.add_argument("files", nargs="*", type=Path, metavar="FILE")
    files = parser.parse_args(arguments).files or deployed()
    if missing := [str(path) for path in files if not path.is_file()]:
        parser.error(text("lint.no_file", locale, paths=", ".join(missing)))
    lines: list[str] = []
    for path in files:
        findings = lint_file(path)
        lines += [f"{path}: {finding.describe(locale)}" for finding in findings]
        is_pipeline = path.stem == path.resolve().parent.name
        is_profile = any(one.code in _OF_PROFILES or one.found == "remove" for one in findings)
        if is_profile and not is_pipeline and definition.base_of(path) is None:
            lines.append(f"{path}: {text('lint.as_pipeline', locale)}")
        if not findings:
            sys.stdout.write(text("lint.clean", locale, path=str(path)) + "\n")
    sys.stderr.writelines(f"{line}\n" for line in lines)
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
