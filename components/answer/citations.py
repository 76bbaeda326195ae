"""Marks [N] and what they point to."""

from collections.abc import Sequence

from components.answer.units import Unit, bullet, indent, is_rule, plain
from components.turn import Citation, Claim, Draft


def cite(units: Sequence[Unit]) -> Draft:
    """A draft that quotes the units in order, laid out as they are in their source.

    Units that stand side by side in their passage share one citation. Its mark stands at the end of each paragraph,
    list, table and block of code.
    """
    visible = [unit for unit in units if not is_rule(unit)]
    runs: list[list[Unit]] = []
    for unit in visible:
        if runs and _follows(runs[-1][-1], unit):
            runs[-1].append(unit)
        else:
            runs.append([unit])
    citations = tuple(_citation(index, run) for index, run in enumerate(runs, 1))
    text = ""
    claims: list[Claim] = []
    numbered = [(index, unit) for index, run in enumerate(runs, 1) for unit in run]
    outer = min((indent(unit) for unit in visible if indent(unit) >= 0), default=0)
    items = [unit for unit in visible if unit.kind == "item"]
    alone = len(items) == 1 and not bullet(items[0]).startswith("1")
    for at, (index, unit) in enumerate(numbered):
        quote = plain(unit)
        claims.append(Claim(quote, (index,)))
        before = numbered[at - 1][1] if at else None
        gap = "" if before is None else _gap(before, unit, outer)
        listed = unit.kind == "item" and not alone
        text += f"{gap}{bullet(unit) if listed else ''}{quote}"
        following = numbered[at + 1] if at + 1 < len(numbered) else None
        if following is None or following[0] != index or _ends_block(unit, following[1]):
            # A mark behind the closing fence would keep the block open.
            text += f"\n{' ' * max(0, indent(unit) - outer)}[{index}]" if unit.kind == "code" else f" [{index}]"
    return Draft(text, tuple(claims), citations)


def _follows(unit: Unit, following: Unit) -> bool:
    """Whether `two` is next in the text: a sentence between them that may not be quoted keeps them apart."""
    if unit.passage is not following.passage:
        return False
    between = unit.passage.text[unit.sentence.end : following.sentence.start].strip()
    return not between.strip("|:-= \n")


def _gap(unit: Unit, following: Unit, outer: int) -> str:
    """The white space between two units that are shown one after the other."""
    inside = indent(following)
    if unit.passage is following.passage and following.number == unit.number + 1:
        between = unit.passage.text[unit.sentence.end : following.sentence.start]
        lines = 2 if "\n\n" in between else between.count("\n")
    else:
        lines = 1 if following.kind in ("item", "row") and unit.kind in ("item", "row", "lead") else 2
        inside = max(inside, outer)
    if lines == 0:
        return " "
    return "\n" * lines + " " * max(0, inside - outer)


def _ends_block(unit: Unit, following: Unit) -> bool:
    """Whether a mark stands behind the unit: where a paragraph, a list, a table or code ends."""
    if unit.kind in ("lead", "heading"):
        return False
    if unit.kind == "code":
        return True
    if following.kind == "item" or (unit.kind == following.kind == "row"):
        return False
    if following.kind in ("heading", "row", "code"):
        return True
    return indent(following) == 0 and "\n" in unit.passage.text[unit.sentence.end : following.sentence.start]


def _citation(index: int, run: Sequence[Unit]) -> Citation:
    passage = run[0].passage
    start, end = run[0].sentence.start, run[-1].sentence.end
    return Citation(index, passage, passage.text[start:end], (start, end))
