"""Answering without a model: the section that answers, quoted from its start."""

import re
from collections.abc import Sequence, Set
from dataclasses import replace

from haystack import Document, component
from haystack.dataclasses import GeneratedAnswer

from components.answer.drafts import to_answer, with_claims
from components.judge.approaches import proposed
from components.judge.terms import read_query
from components.language.captions import innermost, section_path
from components.language.identifiers import codes, shape, shapes
from components.language.marks import FENCE, HEADING_MARK, ITEM
from components.language.normalise import fold
from components.language.words import stems
from components.passages import relevance, to_passage
from components.serialisation import Nested
from components.turn import Claim, Draft, Passage, Query, RejectedApproach

_YES_OR_NO = re.compile(rf"(?:{ITEM}\s+)?(?:yes|no|да|нет)\s*(?:[.,:;!–—]|\Z)", re.IGNORECASE)
_DELIMITER = re.compile(r"[\s|:-]+")
_BLANK_LINE = re.compile(r"\n\s*\n")
_NEXT_HEADING = 6
"""The lowest level of headings: each one ends what a sentence begins."""

_Heading = tuple[int, int, str]
"""Level, start and text of a heading in a passage."""

_LISTED = re.compile(rf"\s*(?:{ITEM}\s|\||{FENCE})")


@component
class ExtractiveAnswerer(Nested):
    """Quote the section of the best document from its start, never cut inside a list, a table or code.

    The best document is the first whose relevance is within `tie` of the highest: rankers decide near ties, but never
    promote a document that answers something else.

    If a section has several headings, the quotation starts at the one whose text covers most of the query; if several
    cover as much of it with different words, each is quoted. If the query names codes, only the entries about them are
    quoted. Sentences that propose a rejected approach are left out, and the draft names the approach. A quotation that
    opens with yes or no comes below the heading that it answers: it may have been asked differently.

    :param limit: maximum number of characters of an answer; the rest is left to the article.
    :param tie: how much less relevant than the most relevant document a quoted, higher-ranked one may be.

    ```python
    ExtractiveAnswerer().run(query="E20", documents=documents)["answers"]
    ```
    """

    def __init__(self, limit: int = 1_500, tie: float = 0.3) -> None:
        self.limit = limit
        self.tie = tie

    @component.output_types(answers=list[GeneratedAnswer])
    def run(
        self, query: str, documents: list[Document], rejected: list[RejectedApproach] | None = None
    ) -> dict[str, list[GeneratedAnswer]]:
        """Return one answer from the best document that may be quoted; without claims if none may.

        :param documents: the evidence, best first.
        """
        read = read_query(query)
        withheld: dict[RejectedApproach, None] = {}
        least = max(map(relevance, documents), default=0.0) - self.tie
        for document in sorted(documents, key=lambda one: relevance(one) < least):
            passage = to_passage(document)
            spans, section = _about(passage, read)
            for span in spans:
                said = passage.text[span[0] : span[1]]
                withheld.update((one, None) for one in rejected or () if proposed(said, one))
            allowed = [
                span
                for span in spans
                if not any(proposed(passage.text[span[0] : span[1]], one) for one in rejected or ())
            ]
            kept, cut = self._cut(passage, allowed)
            if kept:
                draft = Draft(
                    "",
                    (),
                    (),
                    quoted=True,
                    truncated=cut or passage.is_cut,
                    withheld=tuple(withheld),
                )
                cited = replace(passage, heading=section_path(passage.heading, section))
                draft = with_claims(
                    draft, _answering(innermost(cited.heading) or cited.title, quoted(passage, kept)), {1: cited}
                )
                return {"answers": [to_answer(draft, query, [document])]}
        return {"answers": [to_answer(Draft("", (), (), quoted=True, withheld=tuple(withheld)), query)]}

    def _cut(self, passage: Passage, spans: Sequence[tuple[int, int]]) -> tuple[list[tuple[int, int]], bool]:
        """Return the blocks that fit the limit, and whether any was left out. The first block is always kept."""
        kept: list[tuple[int, int]] = []
        for block in _blocks(passage, spans):
            if kept and block[-1][1] - kept[0][0] > self.limit:
                return _without_trailing_heading(passage, kept), True
            kept += block
        return _without_trailing_heading(passage, kept), False


def quoted(passage: Passage, spans: Sequence[tuple[int, int]]) -> list[Claim]:
    """Return the sentences as claims, each with the white space before it in the source; headings lose their marks."""
    claims = []
    end = spans[0][0] if spans else 0
    for begin, stop in spans:
        heading = HEADING_MARK.match(passage.text, begin)
        start = heading.end() if heading else begin
        between = passage.text[end:start]
        gap = "\n\n" if _BLANK_LINE.search(between) else "\n" if "\n" in between else " "
        indent = between.rpartition("\n")[2] if "\n" in between else ""
        claims.append(Claim(passage.text[start:stop], (1,), gap=gap + (indent if not indent.strip() else "")))
        end = stop
    return claims


def _answering(heading: str, claims: list[Claim]) -> list[Claim]:
    """Return the claims of a quotation, below its heading if they begin by answering it."""
    if not heading or not _YES_OR_NO.match(claims[0].text):
        return claims
    return [Claim(heading, (1,)), replace(claims[0], gap="\n\n"), *claims[1:]]


def _about(passage: Passage, query: Query) -> tuple[list[tuple[int, int]], str]:
    """Return the sentences to quote, without their heading, and that heading if it is a line of the passage.

    These are the part under the best matching heading, or the entries about a code.
    """
    spans = [span for span in passage.sentences if fold(passage.text[slice(*span)].strip("# ")) != fold(passage.title)]
    if query.codes:
        return _entries(passage, spans, query)
    # A quotation has no gaps: of a section that was cut, only the part around the hit.
    spans = [span for span in spans if span[0] >= passage.gap]
    parts: list[list[tuple[int, int]]] = [[]]
    for span in spans:
        if HEADING_MARK.match(passage.text[slice(*span)]) and parts[-1]:
            parts.append([])
        parts[-1].append(span)
    if len(parts) == 1:
        return spans, ""

    # A part for each choice of words of the query that is covered somewhere: the first with a fitting heading, or the
    # first of all.
    covering: dict[frozenset[str], int] = {}
    for place in sorted(range(len(parts)), key=lambda place: not _is_headed(passage, parts[place], query)):
        said = stems(passage.text[parts[place][0][0] : parts[place][-1][1]]) if parts[place] else ()
        covering.setdefault(frozenset(said).intersection(query.weights), place)
    shares = {place: round(sum(query.weights[stem] for stem in words), 6) for words, place in covering.items()}
    best = max(shares, key=shares.__getitem__)
    if shares[best] and len(equal := [place for place, share in shares.items() if share == shares[best]]) > 1:
        return [span for place in equal for span in parts[place]], ""
    heading = HEADING_MARK.match(passage.text, parts[best][0][0]) if parts[best] else None
    if best == 0 and heading is None:
        return [span for part in parts for span in part], ""
    # The citation names the section, so the quotation needs no heading above it.
    return parts[best][1:], passage.text[slice(*parts[best][0])].lstrip("# ")


def _is_headed(passage: Passage, part: Sequence[tuple[int, int]], query: Query) -> bool:
    """Return whether the heading of a part has no other words than the query."""
    heading = passage.text[slice(*part[0])] if part else ""
    headed = stems(heading) if HEADING_MARK.match(heading) else ()
    return bool(headed) and set(headed) <= query.weights.keys()


def _entries(passage: Passage, spans: Sequence[tuple[int, int]], query: Query) -> tuple[list[tuple[int, int]], str]:
    """Return the sentences about the requested codes, and the heading of the section if all are within one.

    These go from each mention up to the next mention of another code, or to the end of the section that is about the
    code: a section with its subsections if the heading names the code, else the part up to the next heading. A passage
    whose heading or title alone names the code is about it as a whole. Rows of a table follow its header.
    """
    asked = frozenset(query.codes)
    kept: list[tuple[int, int]] = []
    header: list[tuple[int, int]] = []
    path: list[_Heading] = []
    common: list[_Heading] | None = None
    titled = set(codes(f"{passage.title}\n{passage.heading}"))
    about = bool(asked & titled)
    end_level = 0  # a heading of this level, or above it, ends what is about the codes
    for span in spans:
        said = passage.text[slice(*span)]
        named = set(codes(said))
        mark = HEADING_MARK.match(said)
        level = len(mark.group().strip()) if mark else _NEXT_HEADING
        if mark:
            path = [*(one for one in path if one[0] < level), (level, span[0], said.strip("# "))]
            about = about and level > end_level
        if not said.lstrip().startswith("|"):
            header = []
        elif not named and (not header or _DELIMITER.fullmatch(said)):
            header.append(span)
        if named & asked:
            end_level = min(end_level, level) if about else 0 if titled and titled <= asked else level
            about = True
        elif _begins_entry(said, named, asked):
            about = False
        if about:
            kept += [one for one in dict.fromkeys((*header, span)) if one not in kept]
            common = path if common is None else [one for one in common if one in path]
    if not common:
        return kept, ""
    _, begin, heading = common[-1]
    # The citation names the section, so the quotation needs no heading above it that says nothing else.
    body = kept[1:] if kept[0][0] == begin else []
    said_again = {*query.weights, *(stem for span in body for stem in stems(passage.text[slice(*span)]))}
    return body if body and said_again.issuperset(stems(heading)) else kept, heading


def _begins_entry(said: str, named: Set[str], asked: Set[str]) -> bool:
    """Return whether a sentence that names other codes begins the entry of one, rather than naming a spare part.

    An entry is a row of a table, opens with its code, explains or announces it, or has one built like the requested.
    """
    if not named or said.lstrip().startswith("|"):
        return bool(named)
    opening = said.strip("#>*_- \n").split(maxsplit=1)
    built_alike = {*map(shape, asked), *shapes(said)}
    return bool(opening and codes(opening[0])) or any(shape(code) in built_alike for code in named)


def _blocks(passage: Passage, spans: Sequence[tuple[int, int]]) -> list[list[tuple[int, int]]]:
    """Group sentences into readable blocks: a paragraph; a list, table or code with its lead-in."""
    blocks: list[list[tuple[int, int]]] = []
    for span in spans:
        text = passage.text[slice(*span)]
        before = passage.text[slice(*blocks[-1][-1])] if blocks else ""
        goes_on = bool(before) and (
            (bool(_LISTED.match(text)) and (bool(_LISTED.match(before)) or before.rstrip().endswith(":")))
            or "\n\n" not in passage.text[blocks[-1][-1][1] : span[0]]
            or bool(HEADING_MARK.match(before))
        )
        if goes_on:
            blocks[-1].append(span)
        else:
            blocks.append([span])
    return blocks


def _without_trailing_heading(passage: Passage, spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    while spans and HEADING_MARK.match(passage.text[slice(*spans[-1])]):
        spans = spans[:-1]
    return spans
