"""Marks [N] and what they point to."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby, pairwise

from components.answer.units import Unit, bullet, indent, is_numbered, is_rule, plain
from components.turn import Citation, Claim, Draft, Passage


def cite(units: Sequence[Unit], among: Sequence[Unit] = ()) -> Draft:
    """A draft that quotes the units in order, laid out as they are in their source.

    All that is quoted of one section shares one citation, and its mark stands once, at the end of it. Chunks of one
    section are joined, so that the passage that is cited holds the whole quotation; it goes by the first one's id.

    :param among: all units of the section that may be quoted. What stands between two of `units` and is not among them
        keeps their citations apart, because an excerpt shows everything from its first word to its last.
    """
    places = _joined(among or units)
    visible = [places[unit] for unit in units if not is_rule(unit)]
    quotable = list(places.values())
    runs: list[list[Unit]] = []
    for unit in visible:
        if runs and _follows(runs[-1][-1], unit, quotable):
            runs[-1].append(unit)
        else:
            runs.append([unit])
    text = ""
    claims: list[Claim] = []
    outer = min((indent(unit) for unit in visible if indent(unit) >= 0), default=0)
    items = [unit for unit in visible if unit.kind == "item"]
    alone = len(items) == 1 and not bullet(items[0]).startswith("1")
    before: Unit | None = None
    for index, run in enumerate(runs, 1):
        marked = _marked(run)
        for unit in run:
            quote = plain(unit)
            claims.append(Claim(quote, (index,)))
            gap = "" if before is None else _gap(before, unit, outer)
            text += f"{gap}{bullet(unit) if unit.kind == 'item' and not alone else ''}{quote}"
            if unit is marked:
                # A mark behind the closing fence would keep the block open.
                text += f"\n{' ' * max(0, indent(unit) - outer)}[{index}]" if unit.kind == "code" else f" [{index}]"
            before = unit
    return Draft(text, tuple(claims), tuple(_citation(index, run) for index, run in enumerate(runs, 1)))


def _joined(units: Sequence[Unit]) -> dict[Unit, Unit]:
    """Each unit as it stands in its section's passage: chunks that follow each other under one heading are one."""
    places: dict[Unit, Unit] = {}
    chunks = [list(chunk) for _, chunk in groupby(units, lambda unit: unit.passage)]
    while chunks:
        of_section = [chunks.pop(0)]
        while chunks and _continues(of_section[-1][0].passage, chunks[0][0].passage):
            of_section.append(chunks.pop(0))
        places.update(_in_one(of_section))
    return places


def _continues(passage: Passage, following: Passage) -> bool:
    same = (passage.doc_id, passage.heading) == (following.doc_id, following.heading)
    return same and passage.section is not None and following.chunk_index == passage.chunk_index + 1


def _in_one(chunks: Sequence[Sequence[Unit]]) -> Iterator[tuple[Unit, Unit]]:
    """The units of consecutive chunks in one passage, what one chunk repeats of the one before left out."""
    first = chunks[0][0].passage
    text, spans = first.text, list(first.sentences)
    moves = [(0, 0)]
    for before, chunk in pairwise(chunks):
        source, opening = chunk[0].passage, chunk[0]
        start = source.text.rfind("\n", 0, opening.sentence.start) + 1
        lines = 1 if opening.kind in ("item", "row") and before[-1].kind in ("item", "row", "lead") else 2
        text = text.rstrip() + "\n" * lines
        moves.append((len(text) - start, len(spans) - sum(begin < start for begin, _ in source.sentences)))
        spans += [(begin + moves[-1][0], end + moves[-1][0]) for begin, end in source.sentences if begin >= start]
        text += source.text[start:]
    whole = first if len(chunks) == 1 else replace(first, text=text, sentences=tuple(spans))
    for chunk, (offset, number) in zip(chunks, moves, strict=True):
        for unit in chunk:
            sentence = replace(unit.sentence, start=unit.sentence.start + offset, end=unit.sentence.end + offset)
            yield unit, replace(unit, passage=whole, sentence=sentence, number=unit.number + number)


def _follows(unit: Unit, following: Unit, quotable: Sequence[Unit]) -> bool:
    """Whether an excerpt may go on from one unit to the other: nothing between them is kept from being quoted."""
    if unit.passage is not following.passage or unit.sentence.end > following.sentence.start:
        return False
    between, at = "", unit.sentence.end
    for other in quotable:
        if other.passage is unit.passage and at <= other.sentence.start < following.sentence.start:
            between += unit.passage.text[at : other.sentence.start]
            at = other.sentence.end
    return not (between + unit.passage.text[at : following.sentence.start]).strip("|:-= \n")


def _marked(run: Sequence[Unit]) -> Unit:
    """The unit that the mark stands behind: the last one, or what introduces the code that a section ends with."""
    return next((unit for unit in reversed(run) if unit.kind != "code"), run[-1])


def _gap(unit: Unit, following: Unit, outer: int) -> str:
    """The white space between two units that are shown one after the other."""
    inside = indent(following)
    if unit.passage is following.passage and following.number == unit.number + 1:
        between = unit.passage.text[unit.sentence.end : following.sentence.start]
        lines = 2 if "\n\n" in between else between.count("\n")
    else:
        lines = 1 if following.kind in ("item", "row") and unit.kind in ("item", "row", "lead") else 2
        inside = max(inside, outer)
        if unit.kind == "item" and is_numbered(following) and not is_numbered(unit) and indent(unit) <= outer:
            # Another list begins.
            lines = 2
    if lines == 0:
        return " "
    return "\n" * lines + " " * max(0, inside - outer)


def _citation(index: int, run: Sequence[Unit]) -> Citation:
    passage = run[0].passage
    start, end = run[0].sentence.start, run[-1].sentence.end
    return Citation(index, passage, passage.text[start:end], (start, end))
