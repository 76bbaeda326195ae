"""Pipeline definitions: a YAML file, or a profile merged into its pipeline.

A file in a folder `profiles`, such as `ask/profiles/ollama.yaml`, holds the differences from `ask/ask.yaml`:

- `components`: merged key by key; any other value replaces the one before. A component of another `type` replaces the
  whole component, because the parameters of the one mean nothing to the other. A new name adds a component.
- `remove`: names of components that the profile does without, and connections (`{sender, receiver}`) that it cuts.
- `connections`: added. A connection to a socket that has a sender already replaces that sender, unless the socket takes
  several.
- `models`: values defined once, by an anchor, and used in several places.
- `reranker`: another profile, merged into the result if `OPORA_RERANK` is on.
"""

import logging
import re
from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, TypeAlias

import yaml

from components.embed.dense import LOCAL_OLLAMA
from components.language.yaml_files import read_yaml
from settings import get_settings

# An unknown class is reported in one line, like any other error in a file.
logging.getLogger("haystack.utils.type_serialization").setLevel(logging.CRITICAL)

Definition: TypeAlias = dict[str, Any]

_STORES = "tenants.index.stores"

ALLOWED_MODULES = ["components", "haystack", "haystack_integrations", _STORES]
"""Packages whose classes a pipeline file may use; loading rejects all others."""

TURN_INPUTS = ("question", "history", "context", "filters", "locale", "quality")
"""Inputs of a pipeline of turns. They reach every socket with the same name that has no sender."""

PROFILES = "profiles"
NAMED_ONCE = "models"
RERANKER = "reranker"
REMOVED = "remove"
OVERLAY_KEYS = frozenset(
    {NAMED_ONCE, RERANKER, REMOVED, "components", "connections", "metadata", "max_runs_per_component"}
)


def base_of(path: Path) -> Path | None:
    """Return the pipeline that a profile is laid over; None for a file that is a pipeline itself."""
    folder = path.resolve().parent
    return folder.parent / f"{folder.parent.name}.yaml" if folder.name == PROFILES else None


def load(path: Path) -> Definition:
    base = base_of(path)
    settings = get_settings()
    definition = (
        read_yaml(path) if base is None else with_overlay(read_yaml(base), read_yaml(path), rerank=settings.rerank)
    )
    import_stores(definition)
    elsewhere = settings.ollama_url
    return _with_ollama(definition, elsewhere) if elsewhere else definition


def import_stores(definition: Mapping[str, Any]) -> None:
    """Import our document stores if the pipeline names one: stock retrievers never import the type of their store."""
    if _STORES in str(definition):
        import_module(_STORES)


def source(path: Path) -> str:
    if base_of(path) is None:
        return path.read_text(encoding="utf-8")
    return yaml.safe_dump(load(path), allow_unicode=True, sort_keys=False)


def with_overlay(base: Definition, overlay: Mapping[str, Any], *, rerank: bool = False) -> Definition:
    """Return the pipeline with a profile over it. Neither is changed."""
    laid_over = {
        key: value for key, value in overlay.items() if key not in (NAMED_ONCE, RERANKER, REMOVED, "connections")
    }
    merged = _merged(base, laid_over)
    removed = overlay.get(REMOVED) or ()
    names = {one for one in removed if isinstance(one, str)}
    cut = [one for one in removed if isinstance(one, Mapping)]
    added = list(overlay.get("connections") or ())
    taken = {_end(one, "receiver") for one in added}
    merged["components"] = {name: one for name, one in merged["components"].items() if name not in names}
    merged["connections"] = [
        one
        for one in merged.get("connections", ())
        if one not in cut
        and not {_step(_end(one, "sender")), _step(_end(one, "receiver"))} & names
        and (_end(one, "receiver") not in taken or _takes_several(merged["components"], _end(one, "receiver")))
    ] + added
    return with_overlay(merged, overlay[RERANKER]) if rerank and RERANKER in overlay else merged


def components_of_type(node: object, kind: str) -> Iterator[dict[str, Any]]:
    """Yield the description of every component of this class below a node of a pipeline file."""
    if isinstance(node, dict):
        if str(node.get("type", "")).rpartition(".")[2] == kind:
            yield node
        for part in node.values():
            yield from components_of_type(part, kind)
    elif isinstance(node, list):
        for part in node:
            yield from components_of_type(part, kind)


def reason(error: Exception) -> str:
    """Return why Haystack could not build something, on one line and without its advice to programmers."""
    told = " ".join(str(error).rpartition("Original error: ")[2].split())
    # Haystack forgets the second quotation mark around the name of an input.
    told = re.sub(r"^'([^' ]+) does", r"'\1' does", told.partition(". ")[0].rstrip("."))
    cause = error.__cause__
    if isinstance(cause, ImportError) and told not in str(cause):
        return f"{told}: {' '.join(str(cause).split())}"
    return told


def _end(connection: object, side: str) -> str:
    """Return the sender or receiver; empty in a faulty connection, which the lint reports."""
    return str(connection.get(side, "")) if isinstance(connection, Mapping) else ""


def _step(socket: str) -> str:
    return socket.partition(".")[0]


def _takes_several(components: Mapping[str, Any], receiver: str) -> bool:
    """Return whether a socket takes values of several senders: that of a `BranchJoiner`."""
    return str(components.get(_step(receiver), {}).get("type", "")).endswith("BranchJoiner")


def _with_ollama(definition: Definition, url: str) -> Definition:
    """Return the same with another address of the Ollama server, which a container does not have to itself."""
    return {key: _moved(value, url) for key, value in definition.items()}


def _moved(node: object, url: str) -> object:
    if isinstance(node, list):
        return [_moved(one, url) for one in node]
    if isinstance(node, dict):
        return _with_ollama(node, url)
    return url if node == LOCAL_OLLAMA else node


def _merged(base: Mapping[str, Any], overlay: Mapping[str, Any]) -> Definition:
    if overlay.get("type", base.get("type")) != base.get("type"):
        return dict(overlay)
    merged = dict(base)
    for key, value in overlay.items():
        before = merged.get(key)
        merged[key] = _merged(before, value) if isinstance(before, dict) and isinstance(value, dict) else value
    return merged
