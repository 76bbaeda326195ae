"""Marks [N] and what they point to."""

import re
from collections.abc import Sequence

from components.answer.units import Unit, plain
from components.language.marks import ITEM
from components.turn import Citation, Claim, Draft

_MARKER = re.compile(rf"{ITEM}\s+|\|\s*")


def cite(chosen: Sequence[Unit]) -> Draft:
    """A draft that quotes the units in order. Units that stand side by side in their passage share one citation.

    Sentences make a paragraph; rows, code and the items of a list keep lines of their own, a lone item does not.
    """
    runs: list[list[Unit]] = []
    for unit in chosen:
        if runs and _follows(runs[-1][-1], unit):
            runs[-1].append(unit)
        else:
            runs.append([unit])
    citations = tuple(_citation(index, run) for index, run in enumerate(runs, 1))
    lines: list[str] = []
    claims: list[Claim] = []
    listed = sum(unit.kind == "item" for unit in chosen) > 1
    joins = False
    for index, run in enumerate(runs, 1):
        for unit in run:
            said = plain(unit)
            claims.append(Claim(said, (index,)))
            # A mark behind the closing fence would keep the block open.
            marked = f"{said}\n[{index}]" if unit.kind == "code" else f"{said} [{index}]"
            alone = unit.kind in ("row", "code") or (unit.kind == "item" and listed)
            if joins and not alone and unit.kind != "lead":
                lines[-1] += f" {marked}"
            else:
                lines.append(f"{_bullet(unit)}{marked}" if unit.kind == "item" and listed else marked)
            joins = not alone
    return Draft("\n".join(lines), tuple(claims), citations)


def _follows(one: Unit, two: Unit) -> bool:
    """Whether `two` is next in the text: a sentence between them that may not be quoted keeps them apart."""
    if one.passage is not two.passage or two.number != one.number + 1:
        return False
    return not one.passage.text[one.sentence.end : two.sentence.start].strip()


def _citation(index: int, run: Sequence[Unit]) -> Citation:
    passage = run[0].passage
    start, end = run[0].sentence.start, run[-1].sentence.end
    return Citation(index, passage, passage.text[start:end], (start, end))


def _bullet(item: Unit) -> str:
    marker = _MARKER.match(item.text)
    return f"{marker.group().strip()} " if marker else "- "
