"""Preview of an article's effect: recorded questions are asked without it and with it, before customers see it.

It asks the questions of the linked gaps, the author's own questions, questions of other gaps that share words with the
article, and similar answered questions, which must not get worse. The time is limited; questions left over are counted.
No customer text is stored: a recorded question is referenced by its turn.
"""

from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from time import monotonic
from typing import Literal, TypeAlias, get_args

from pydantic import Field, ValidationError

from components.ingest.document import SourceDocument
from components.language.words import stems
from components.turn import SHOWN
from pipelines.ask.replay import Replay, Trial, VisibleResult
from pipelines.ask.usecase import Ask
from pipelines.ingest.usecase import Ingest
from tenants.audit import search
from tenants.audit.search import Record, TurnQuery
from tenants.core import fairness
from tenants.core.errors import TimedOut, TryAgain
from tenants.core.validation import FrozenModel
from tenants.desk.articles import ORIGIN, Article
from tenants.knowledge import gaps
from tenants.knowledge.gaps import Asking

SECONDS = 60.0
"""Time limit of a preview. The current question may exceed it."""

Kind: TypeAlias = Literal["gap", "own", "other", "answered"]
KINDS: tuple[Kind, ...] = get_args(Kind)
OnProgress: TypeAlias = "Callable[[Preview], None]"
Asked: TypeAlias = "tuple[AskedQuestion, ...]"
State: TypeAlias = Literal["running", "done", "late", "stopped", "failed"]
Effect: TypeAlias = Literal["answers", "offers", "worse", "changes", "nothing"]

_SILENT = timedelta(minutes=3)
"""Time limit of one question, after which a running preview counts as abandoned."""

_OF_GAPS, _OTHERS, _ANSWERED = 30, 15, 15
_LOOKED_AT = 300
"""Number of answered turns searched for words of the article."""

_SHARED = 0.5
"""Share of a question's stems that an article must contain for the question to be related."""


class Side(FrozenModel, from_attributes=True):
    """Result that a customer would see. `articles` are documents offered in place of an answer."""

    outcome: str
    reason: str | None
    text: str
    cited: tuple[str, ...]
    articles: tuple[str, ...]

    def answers_by(self, doc_id: str) -> bool:
        return self.outcome in SHOWN and doc_id in self.cited

    def offers(self, doc_id: str) -> bool:
        """Return whether a customer is shown this document in one way or another."""
        return doc_id in self.cited or doc_id in self.articles


class AskedQuestion(FrozenModel):
    """A question, asked twice. `question` is the author's own; a recorded one is that of its turn."""

    kind: Kind
    question: str = ""
    turn_id: str = ""
    gap_id: str = ""
    before: Side
    after: Side

    def effect(self, doc_id: str) -> Effect:
        if self.after.answers_by(doc_id):
            return "answers"
        if self.before.outcome in SHOWN and self.after.outcome not in SHOWN:
            return "worse"
        if self.after.offers(doc_id) and not self.before.offers(doc_id):
            return "offers"
        return "nothing" if self.before == self.after else "changes"


class Preview(FrozenModel):
    """A look at what one version of an article would change.

    :ivar at: when it last got on.
    """

    version: int
    state: State
    begun_at: datetime
    at: datetime
    total: int = 0
    questions: tuple[AskedQuestion, ...] = Field(default=())

    @property
    def asked(self) -> int:
        return len(self.questions)


@dataclass(frozen=True, slots=True)
class _Candidate:
    kind: Kind
    question: str = ""
    gap_id: str = ""
    record: Record | None = None


def source_of(article: Article) -> SourceDocument:
    draft = article.draft
    return SourceDocument(
        doc_id=article.doc_id,
        title=draft.title,
        text=draft.text,
        source=ORIGIN,
        lang=draft.lang,
        meta={"trust": draft.trust},
    )


def begun(article: Article) -> Preview:
    now = datetime.now(UTC)
    return Preview(version=article.version, state="running", begun_at=now, at=now)


def stored(article: Article) -> Preview | None:
    return None if article.preview is None else Preview.model_validate(article.preview)


def is_running(preview: Preview) -> bool:
    """Return whether it goes on: one whose process has gone does not."""
    return preview.state == "running" and datetime.now(UTC) - preview.at < _SILENT


def run(
    article: Article,
    ingest: Ingest,
    ask: Ask | None = None,
    *,
    on_progress: OnProgress = lambda _preview: None,
    stopping: Callable[[], bool] = lambda: False,
    seconds: float = SECONDS,
    seated: Callable[[Callable[[], Asked]], Asked] = lambda work: work(),
) -> Preview:
    """Ask everything that concerns the article. Raises `CallerError` when the article would be refused.

    :param stopping: returns whether to stop; called before each question.
    :param seated: runs the work of a question in turn with those of others. A question that takes too long is left out.
    """
    until = monotonic() + seconds
    document = ingest.trial(source_of(article))
    fairness.yield_to_questions()
    candidates = tuple(_candidates(article))
    preview = begun(article).model_copy(update={"total": len(candidates)})
    on_progress(preview)
    end: State = "done"
    with closing(Replay(Trial(document=document), ask)) as replay:
        for candidate in candidates:
            if stopping() or monotonic() >= until:
                return _ended(preview, "stopped" if stopping() else "late")
            fairness.yield_to_questions()
            try:
                asked = seated(partial(_asked, replay, candidate))
            except TimedOut:
                asked, end = (), "late"
            except TryAgain as failed:
                if failed.code != "shutting_down":
                    raise
                return _ended(preview, "stopped")
            preview = preview.model_copy(update={"questions": (*preview.questions, *asked), "at": datetime.now(UTC)})
            on_progress(preview)
    return _ended(preview, end)


def _ended(preview: Preview, state: State) -> Preview:
    return preview.model_copy(update={"state": state, "at": datetime.now(UTC)})


def failed(preview: Preview) -> Preview:
    return _ended(preview, "failed")


def _asked(replay: Replay, candidate: _Candidate) -> Asked:
    """Ask a question. Return nothing if another version has recorded it and it cannot be asked again."""
    if candidate.record is None:
        before, after = replay.ask(candidate.question)
        return (_side_by_side(candidate, before, after),)
    try:
        turns = list(replay.run([candidate.record], lambda _done: None))
    except ValidationError:
        return ()
    return tuple(_side_by_side(candidate, turn.before, turn.after) for turn in turns)


def _side_by_side(candidate: _Candidate, before: VisibleResult, after: VisibleResult) -> AskedQuestion:
    return AskedQuestion(
        kind=candidate.kind,
        question=candidate.question,
        turn_id=candidate.record.turn_id if candidate.record else "",
        gap_id=candidate.gap_id,
        before=Side.model_validate(before),
        after=Side.model_validate(after),
    )


def _candidates(article: Article) -> Iterator[_Candidate]:
    """Yield the questions that concern the article, the most important first, each turn once."""
    own_gaps = [gap.gap_id for gap in gaps.of_article(article.article_id)]
    seen: set[str] = set()
    wordings: set[str] = set()
    for candidate in _of_gaps(own_gaps, "gap", _OF_GAPS, seen):
        wordings.add((candidate.record.question if candidate.record else None) or "")
        yield candidate
    for question in article.draft.questions:
        if question not in wordings:
            yield _Candidate("own", question=question)
    about = frozenset(stems(f"{article.draft.title}\n{article.draft.text}"))
    others = [
        gap
        for gap in gaps.all()
        if gap.gap_id not in own_gaps and len(about.intersection(gap.stems)) >= _SHARED * max(1, len(gap.stems))
    ]
    yield from _of_gaps([gap.gap_id for gap in others[:_OTHERS]], "other", _OTHERS, seen)
    yield from _answered(about, seen)


def _of_gaps(gap_ids: list[str], kind: Kind, most: int, seen: set[str]) -> Iterator[_Candidate]:
    """Yield the newest turns of gaps, one for each wording."""
    if not gap_ids:
        return
    wordings: set[str] = set()
    chosen: list[Asking] = []
    for asking in gaps.askings(gap_ids, limit=4 * most):
        if asking.question not in wordings and len(chosen) < most:
            wordings.add(asking.question)
            chosen.append(asking)
    records = search.of([asking.turn_id for asking in chosen])
    for asking in chosen:
        record = records.get(asking.turn_id)
        if record is not None and record.content is not None and record.turn_id not in seen:
            seen.add(record.turn_id)
            yield _Candidate(kind, gap_id=asking.gap_id, record=record)


def _answered(about: frozenset[str], seen: set[str]) -> Iterator[_Candidate]:
    """Yield the newest answered turns whose questions share the article's words, one for each question."""
    questions: set[str] = set()
    for record in search.find(TurnQuery(outcome="answered"), limit=_LOOKED_AT):
        asked = frozenset(stems(record.question or ""))
        if record.question in questions or record.turn_id in seen or not asked:
            continue
        if len(questions) < _ANSWERED and len(asked & about) >= _SHARED * len(asked):
            questions.add(record.question or "")
            yield _Candidate("answered", record=record)
