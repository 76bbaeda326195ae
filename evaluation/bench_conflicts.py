"""`python -m evaluation.bench_conflicts`: contradictions claimed where there is none, and found where there is one.

Claimed: questions of public sets over their knowledge bases, which hold few contradictions if any; each one shown is
listed with both sentences, for a person to judge. Found: every question that was answered with a sentence that holds
the gold answer and a number in it is judged again beside a copy of the passage in another, newer document, in which
that number alone is another one. A table goes to standard error and the same as JSON to standard output.
"""

import json
import re
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace

from rich.console import Console
from rich.table import Table

from components.judge.conflicts import conflicts
from components.language.sentences import sentence_spans
from components.turn import Citation, Conflict, Passage, Turn
from evaluation import workspace
from evaluation.cases import QuestionSet
from evaluation.catalogue import READERS
from evaluation.rows import DATA, Absent
from pipelines.ask.contract import AskRequest
from pipelines.ask.usecase import Ask
from settings import get_settings
from tenants import database, index
from tenants.context import acting_as

SETS = ("vkcloud", "xquad")
DEPTH = 6
LEAST_RELEVANCE = 0.5
_SHOWN = ("answered", "partially_answered")
_COPY = "copy"
_APART = 7
_NUMBER = re.compile(r"(?<![\w.,:-])\d{1,4}(?![\w.,:-]*\d)")


@dataclass(frozen=True, slots=True)
class Claimed:
    """A contradiction that a reader would be told of."""

    question: str
    shown: str
    other: str


@dataclass(frozen=True, slots=True)
class Measured:
    """One set. `planted` contradictions could be planted, `found` of them were noticed, `newer` trust the copy."""

    name: str
    answered: int
    claimed: tuple[Claimed, ...]
    planted: int
    found: int
    newer: int


def measure(ask: Ask, chosen: QuestionSet) -> Measured:
    """Ask every question of the set for the tenant in context."""
    answered = planted = found = newer = 0
    claimed: list[Claimed] = []
    for case in chosen.cases:
        turn = ask.turn(AskRequest(question=case.question, locale=case.locale or None))
        draft = turn.best or turn.draft
        if turn.outcome not in _SHOWN or draft is None:
            continue
        answered += 1
        primary = [citation for citation in draft.citations if citation.origin == "primary"]
        shown = " ".join(citation.excerpt for citation in primary)
        claimed += [
            Claimed(case.question, shown, citation.excerpt)
            for citation in draft.citations
            if citation.origin == "conflicting"
        ]
        copies = (_copy(citation, span) for citation in primary for span in case.gold_spans)
        copy = next((copy for copy in copies if copy is not None), None)
        if copy is not None:
            noticed = [one for one in conflicts(_beside(turn, *copy), DEPTH, LEAST_RELEVANCE) if _COPY in _sides(one)]
            planted += 1
            found += bool(noticed)
            newer += any(one.trusted.chunk_id == _COPY for one in noticed)
    return Measured(chosen.name, answered, tuple(claimed), planted, found, newer)


def _copy(citation: Citation, gold: str) -> tuple[Passage, Passage] | None:
    """The cited passage and its copy in a newer document, with another number in the gold answer that is quoted."""
    passage = citation.passage
    at = passage.text.find(gold, *citation.span)
    number = _NUMBER.search(passage.text, at, at + len(gold)) if at >= 0 else None
    if number is None:
        return None
    other = int(number.group()) + _APART
    text = f"{passage.text[: number.start()]}{other}{passage.text[number.end() :]}"
    copy = replace(passage, chunk_id=_COPY, doc_id=_COPY, text=text, updated_at="9999-01-01")
    return passage, replace(copy, sentences=sentence_spans(text))


def _beside(turn: Turn, passage: Passage, copy: Passage) -> Turn:
    """The turn with the copy kept right behind its original."""
    evidence = turn.evidence
    kept = [chunk_id for chunk_id in evidence.kept if chunk_id != passage.chunk_id]
    grown = replace(
        evidence,
        passages=(*evidence.passages, copy),
        kept=(passage.chunk_id, copy.chunk_id, *kept),
        judged={**evidence.judged, copy.chunk_id: evidence.judged.get(passage.chunk_id, 0.0)},
    )
    return replace(turn, evidence=grown)


def _sides(conflict: Conflict) -> tuple[str, str]:
    return conflict.trusted.chunk_id, conflict.other.chunk_id


def main() -> None:
    """Measure every set that is here."""
    workspace.enter(get_settings().data_dir / "evaluation")
    console = Console(stderr=True)
    ask = Ask()
    ask.warm_up()
    table = Table("set", "answered", "claimed", "share", "planted", "found", "newer trusted")
    measured = []
    for chosen in _sets(console):
        with acting_as(workspace.tenant_for(chosen.corpus, lambda _done, _total: None)):
            one = measure(ask, chosen)
        measured.append(one)
        share = len(one.claimed) / one.answered if one.answered else 0.0
        counts = (one.answered, len(one.claimed), f"{share:.2%}", one.planted, one.found, one.newer)
        table.add_row(one.name, *map(str, counts))
    ask.close()
    index.close_all()
    database.close_all()
    console.print(table)
    sys.stdout.write(json.dumps([asdict(one) for one in measured], ensure_ascii=False, indent=2) + "\n")


def _sets(console: Console) -> Iterator[QuestionSet]:
    for reader in (reader for name in SETS for reader in READERS[name].values()):
        try:
            for chosen in reader(DATA):
                if isinstance(chosen, QuestionSet) and not chosen.name.endswith("-withheld"):
                    yield chosen
        except Absent as absent:
            console.print(f"skipped: {absent} is not here")


if __name__ == "__main__":
    main()
