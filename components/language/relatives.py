"""Relates stems of one word family that stemming keeps apart: "подключение" and "подключить"."""

from collections.abc import Iterable, Mapping
from typing import TypeAlias

_PREFIX = 5
_SIMILAR = 0.7

Families: TypeAlias = Mapping[str, tuple[str, ...]]
"""Stems by their first five letters."""


def families(stems: Iterable[str]) -> Families:
    """Return `stems` by their first five letters, shorter ones left out: they have no relatives."""
    stems_by_prefix: dict[str, list[str]] = {}
    for stem in stems:
        if len(stem) >= _PREFIX:
            stems_by_prefix.setdefault(stem[:_PREFIX], []).append(stem)
    return {prefix: tuple(members) for prefix, members in stems_by_prefix.items()}


def relatives(stem: str, among: Families) -> frozenset[str]:
    """Stems that look derived from the same word: five letters in common at the start, and 70% of the longer one."""
    return frozenset(other for other in among.get(stem[:_PREFIX], ()) if _alike(stem, other))


def _alike(stem: str, other: str) -> bool:
    common = 0
    for letter, other_letter in zip(stem, other, strict=False):
        if letter != other_letter:
            break
        common += 1
    return common / max(len(stem), len(other)) >= _SIMILAR
