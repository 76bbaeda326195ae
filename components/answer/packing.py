"""Blocks of a prompt: numbered passages, related documents, rejected approaches.

Only sentences that may be quoted are passed on; orders in a document, which ingest has marked, are not among them.
"""

from collections.abc import Collection, Iterable, Sequence

from components.ingest.tokens import count_tokens
from components.language.texts import day
from components.language.texts import text as said_in
from components.turn import Passage, RejectedApproach, Related

_HEAD = 200
_RELATED = 600


def formatted(number: int, passage: Passage, locale: str, shown: Collection[int] | None = None) -> str:
    """Return a passage with its number and source: `[1] source: title › heading (05.03.2024)`, and its text below.

    The place of the document comes before a title that another document has. A line in brackets says that the section
    has more text before, within or after what is shown.

    :param shown: places of the sentences to show; all by default.
    """
    places = range(len(passage.sentences)) if shown is None else sorted(shown)
    begins_earlier = passage.begins_earlier or (places and places[0] > 0)
    continues = passage.continues or (places and places[-1] < len(passage.sentences) - 1)
    names = (_line(passage.place), _line(passage.title) or _line(passage.source), _line(passage.heading))
    head = " › ".join(filter(None, names))
    dated = f" ({day(passage.updated_at, locale)})" if passage.updated_at else ""
    lines = [
        f"[{number}] source: {head}{dated}",
        said_in("outcomes.passage.begins_earlier", locale) if begins_earlier else "",
        quotable(passage, said_in("outcomes.passage.gap", locale), places),
        said_in("outcomes.passage.continues", locale) if continues else "",
    ]
    return "\n".join(filter(None, lines))


def fitting(passages: Sequence[Passage], budget: int, locale: str) -> list[Passage]:
    """Return the first passages that fit into a budget of tokens, at least one."""
    kept: list[Passage] = []
    for passage in passages:
        budget -= count_tokens(formatted(len(kept) + 1, passage, locale))
        if budget < 0 and kept:
            break
        kept.append(passage)
    return kept


def quotable(passage: Passage, gap: str = "", places: Sequence[int] | None = None) -> str:
    """Return the passage's text without the sentences that may not be quoted.

    :param gap: the line to show in place of a part of the section that is left out.
    :param places: the sentences to return, in order; all by default.
    """
    parts: list[str] = []
    quoted_end, following = 0, 0
    for place in range(len(passage.sentences)) if places is None else places:
        start, end = passage.sentences[place]
        between = passage.text[quoted_end:start]
        left_out = place > following and bool(parts)
        if gap and (left_out or (passage.gap > 0 and quoted_end <= passage.gap <= start)):
            parts.append(f"\n{gap}\n")
        else:
            parts.append(between if not between.strip() else "\n")
        parts.append(passage.text[start:end])
        quoted_end, following = end, place + 1
    return "".join(parts).strip()


def rejected_lines(approaches: Iterable[RejectedApproach]) -> list[str]:
    """Rejected approaches with their reasons, a line each."""
    return [
        f"- {_line(one.text)} ({_line(one.reason)})" if one.reason else f"- {_line(one.text)}" for one in approaches
    ]


def related_lines(related: Iterable[Related], limit: int = 4) -> list[str]:
    """Related documents, a line each."""
    lines = (f"- {_line(one.passage.title)}: {' '.join(quotable(one.passage).split())[:_RELATED]}" for one in related)
    return list(lines)[:limit]


def _line(text: str) -> str:
    """Return a name on one line, no longer than names are."""
    return " ".join(text.split())[:_HEAD]
