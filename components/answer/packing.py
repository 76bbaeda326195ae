"""Blocks of a prompt: numbered passages, related documents, rejected approaches.

Only sentences that may be quoted are passed on; orders in a document, which ingest has marked, are not among them.
"""

from collections.abc import Iterable, Sequence

from components.ingest.tokens import count_tokens
from components.language.texts import day
from components.language.texts import text as said_in
from components.turn import Passage, RejectedApproach, Related

_HEAD = 200
_RELATED = 600


def formatted(number: int, passage: Passage, locale: str) -> str:
    """Return a passage with its number and source: `[1] source: title › heading (05.03.2024)`, and its text below.

    The place of the document comes before a title that another document has. A line in brackets says that the section
    has more text before, within or after the passage.
    """
    names = (_line(passage.place), _line(passage.title) or _line(passage.source), _line(passage.heading))
    head = " › ".join(filter(None, names))
    dated = f" ({day(passage.updated_at, locale)})" if passage.updated_at else ""
    lines = [
        f"[{number}] source: {head}{dated}",
        said_in("outcomes.passage.begins_earlier", locale) if passage.begins_earlier else "",
        quotable(passage, said_in("outcomes.passage.gap", locale)),
        said_in("outcomes.passage.continues", locale) if passage.continues else "",
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


def quotable(passage: Passage, gap: str = "") -> str:
    """Return the passage's text without the sentences that may not be quoted.

    :param gap: the line to show in place of a part of the section that is left out.
    """
    parts: list[str] = []
    quoted_end = 0
    for start, end in passage.sentences:
        between = passage.text[quoted_end:start]
        if gap and passage.gap > 0 and quoted_end <= passage.gap <= start:
            parts.append(f"\n{gap}\n")
        else:
            parts.append(between if not between.strip() else "\n")
        parts.append(passage.text[start:end])
        quoted_end = end
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
