"""The context that a language model reads: numbered passages, what stands beside them, as far as the budget allows.

Only sentences that may be quoted are passed on; orders in a document, which ingest has found, are not among them.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from components.ingest.tokens import count_tokens
from components.language.texts import day
from components.models.prompts import block
from components.turn import Frozen, Passage, RejectedApproach, Related, Turn

BUDGET = 4_000
"""Tokens of context in one prompt."""

_BESIDE = 4
_HEAD = 200
_RELATED = 600


@dataclass(frozen=True, slots=True)
class Context(Frozen):
    """The blocks of a prompt, and the passages behind its numbers. A number is the passage's place in the evidence."""

    numbered: Mapping[int, Passage]
    passages: str
    related: str
    rejected: str


def packed(turn: Turn, max_passages: int, budget: int = BUDGET) -> Context:
    """The evidence of a turn as blocks of a prompt.

    What was rejected and what is related may take a quarter of the budget; the passages that the grader kept take what
    is left, the last ones dropped first. The best passage is cut where it alone is too long.

    :param max_passages: passages at most.
    :param budget: tokens of all blocks together.
    """
    rejected, budget_left = _fitting(map(_rejected, turn.evidence.rejected), budget // _BESIDE)
    related, _ = _fitting((_related(item) for item in turn.evidence.related), budget_left)
    spent = sum(map(count_tokens, (*rejected, *related)))
    usable = turn.evidence.relevant_passages()[:max_passages]
    fitting, _ = _fitting(
        (formatted(number, item, turn.locale) for number, item in enumerate(usable, 1)), budget - spent
    )
    if usable and not fitting:
        fitting = [_cut(formatted(1, usable[0], turn.locale), budget - spent)]
    return Context(
        numbered=dict(enumerate(usable[: len(fitting)], 1)),
        passages=block("passages", fitting),
        related=block("related", related),
        rejected=block("rejected", rejected),
    )


def numbered(passages: Sequence[Passage], locale: str) -> str:
    """All of these passages as the block of a prompt, `[1]` being the first."""
    return block("passages", [formatted(number, passage, locale) for number, passage in enumerate(passages, 1)])


def formatted(number: int, passage: Passage, locale: str) -> str:
    """A passage with its number and source: `[1] source: title › heading (05.03.2024)`, and its text below."""
    head = " › ".join(filter(None, (_line(passage.title) or _line(passage.source), _line(passage.heading))))
    dated = f" ({day(passage.updated_at, locale)})" if passage.updated_at else ""
    return f"[{number}] source: {head}{dated}\n{quotable(passage)}"


def quotable(passage: Passage) -> str:
    """The passage's text without the sentences that may not be quoted."""
    parts: list[str] = []
    quoted_end = 0
    for start, end in passage.sentences:
        between = passage.text[quoted_end:start]
        parts.append(between if not between.strip() else "\n")
        parts.append(passage.text[start:end])
        quoted_end = end
    return "".join(parts).strip()


def _fitting(lines: Iterable[str], budget: int) -> tuple[list[str], int]:
    """The first lines that fit together, and what is left of the budget."""
    fitting: list[str] = []
    for line in lines:
        cost = count_tokens(line)
        if cost > budget:
            break
        fitting.append(line)
        budget -= cost
    return fitting, budget


def _cut(text: str, budget: int) -> str:
    """The first lines of a text that fit, its first one in any case."""
    first, *lines = text.split("\n")
    fitting, _ = _fitting(lines, budget - count_tokens(first))
    return "\n".join([first, *fitting])


def _rejected(approach: RejectedApproach) -> str:
    return f"- {_line(approach.text)} ({_line(approach.reason)})"


def _related(related: Related) -> str:
    return f"- {_line(related.passage.title)}: {' '.join(quotable(related.passage).split())[:_RELATED]}"


def _line(text: str) -> str:
    """A name on one line, no longer than names are."""
    return " ".join(text.split())[:_HEAD]
