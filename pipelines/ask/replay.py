"""Replay: ask recorded turns again, to see what a change would affect before it is made.

Two sides are compared. With a change to try (a pipeline file, a policy, another knowledge base) both are asked
now, with and without it, so that the difference is the change's alone; where the side without it already differs from
the record, the turn has `drifted`. Without one, the record is compared with today's answer: it shows what documents,
policy and pipeline have changed since.

A question whose personal data was masked is asked in its masked form and flagged `masked`: compared with its
record it can differ for that alone.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, Self, TypeAlias

from pydantic import BaseModel, ConfigDict

from components.language.personal import without_masks
from components.turn import Exchange, Turn
from pipelines import lint
from pipelines.ask.answering import answer_of
from pipelines.ask.contract import AskRequest
from pipelines.ask.effects import HANDED_OVER
from pipelines.ask.engine import AskEngine
from pipelines.ask.record import redacted
from pipelines.ask.usecase import Ask, begin
from tenants.accounts import policy
from tenants.accounts.policy import Policy
from tenants.accounts.registry import Registry
from tenants.audit.search import Record
from tenants.core import context
from tenants.knowledge.trial_document import TrialDocument, including

Change: TypeAlias = Literal["outcome", "reason", "answer", "citations"]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class RecordedInput(_Part):
    request: AskRequest
    # Turns recorded before people could answer in a chat have no replies.
    history: tuple[tuple[str, str, tuple[str, ...], str] | tuple[str, str, tuple[str, ...]], ...]
    answer: dict[str, Any]

    def turn(self) -> Turn:
        question = without_masks(self.request.question).strip() or self.request.question
        standalone = self.request.model_copy(update={"question": question, "session_id": None})
        return begin(standalone, history=tuple(Exchange(*exchange) for exchange in self.history))


@dataclass(frozen=True, slots=True)
class VisibleResult:
    """The result of a turn as far as a visitor notices it.

    :param text: empty for a handed-over turn, whose text contains a ticket number.
    :param citations: (document, passage) in order.
    :param articles: documents to read that were offered in place of an answer; no difference on their own.
    """

    outcome: str
    reason: str | None
    text: str
    citations: tuple[tuple[str, str], ...]
    articles: tuple[str, ...] = field(default=(), compare=False)

    @property
    def cited(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(doc_id for doc_id, _ in self.citations))

    @classmethod
    def of(cls, answer: Mapping[str, Any]) -> Self:
        """Return the side that a redacted `turn.v1` object shows. An older record may lack newer fields."""
        outcome = answer["outcome"]
        return cls(
            outcome,
            answer["refusal_reason"],
            "" if outcome in HANDED_OVER else answer["answer"]["text"],
            tuple((citation["doc_id"], citation["chunk_id"]) for citation in answer["citations"]),
            tuple(article["doc_id"] for article in answer.get("articles", ())),
        )


@dataclass(frozen=True, slots=True)
class Trial:
    """The change to try; an empty trial compares with the record.

    :param pipeline: a pipeline file in place of the installed one.
    :param policy: a policy in place of the tenant's.
    :param knowledge: another tenant, whose knowledge base is asked in place of the tenant's own.
    :param document: a document on trial in the tenant's knowledge base.
    """

    pipeline: Path | None = None
    policy: Policy | None = None
    knowledge: str | None = None
    document: TrialDocument | None = None

    @property
    def is_empty(self) -> bool:
        return self == Trial()


@dataclass(frozen=True, slots=True)
class ReplayedTurn:
    """A recorded turn, asked again. `changes` is empty if a visitor would see no difference."""

    record: Record
    question: str
    before: VisibleResult
    after: VisibleResult
    drifted: bool

    @property
    def masked(self) -> bool:
        return without_masks(self.question) != self.question

    @property
    def changes(self) -> tuple[Change, ...]:
        pairs: tuple[tuple[Change, object, object], ...] = (
            ("outcome", self.before.outcome, self.after.outcome),
            ("reason", self.before.reason, self.after.reason),
            ("answer", self.before.text, self.after.text),
            ("citations", self.before.citations, self.after.citations),
        )
        return tuple(name for name, before, after in pairs if before != after)


class Replay:
    """Asks recorded turns of the tenant in context again. Leaves no records and no tickets behind.

    :param ask: use case without the change; if None, a new one that `close` releases.
    :raises Invalid: `pipeline_faulty`, when the pipeline to try cannot be loaded.
    """

    def __init__(self, trial: Trial, ask: Ask | None = None) -> None:
        self._trial = trial
        self._present = ask or Ask()
        self._tried = Ask(_engine(trial.pipeline)) if trial.pipeline else self._present
        self._owned = {id(one): one for one in (self._present, self._tried) if one is not ask}

    def run(self, records: Iterable[Record], progress: Callable[[int], None]) -> Iterator[ReplayedTurn]:
        """Yield the turns in the order given, erased ones left out."""
        for number, record in enumerate(records, 1):
            if record.content is not None:
                yield self._replay(record, record.content)
            progress(number)

    def close(self) -> None:
        for ask in self._owned.values():
            ask.engine.close()

    def ask(self, question: str) -> tuple[VisibleResult, VisibleResult]:
        turn = begin(AskRequest(question=question))
        return _side(self._present, turn), self._changed(turn)

    def _changed(self, turn: Turn) -> VisibleResult:
        with ExitStack() as overrides:
            chosen = self._trial.policy or policy.current()
            if self._trial.knowledge is not None:
                elsewhere = replace(context.current(), tenant_id=self._trial.knowledge)
                overrides.enter_context(context.acting_as(elsewhere))
            if self._trial.document is not None:
                overrides.enter_context(including(self._trial.document))
            overrides.enter_context(policy.overridden(chosen))
            return _side(self._tried, turn)

    def _replay(self, record: Record, content: Mapping[str, object]) -> ReplayedTurn:
        saved = RecordedInput.model_validate(content)
        recorded = VisibleResult.of(saved.answer)
        before = recorded if self._trial.is_empty else _side(self._present, saved.turn())
        after = self._changed(saved.turn())
        return ReplayedTurn(record, saved.request.question, before, after, drifted=before != recorded)


def trial(pipeline: Path | None, changes: Mapping[str, object], knowledge: str | None) -> Trial:
    """Return the trial of these changes for the tenant in context.

    :param changes: fields of the policy.
    :raises OporaError: the policy does not hold, or there is no such tenant.
    """
    if knowledge is not None:
        Registry().get(knowledge)
    return Trial(pipeline, policy.with_changes(changes) if changes else None, knowledge)


def report(turns: Iterable[ReplayedTurn], *, total: int) -> dict[str, object]:
    """Return the changes as JSON.

    :param total: how many turns were selected; those missing from `turns` have been erased.
    """
    replayed = list(turns)
    changed = [turn for turn in replayed if turn.changes]
    return {
        "schema": "replay.v1",
        "asked": total,
        "erased": total - len(replayed),
        "changed": len(changed),
        "outcomes_changed": sum("outcome" in turn.changes for turn in changed),
        "drifted": sum(turn.drifted for turn in replayed),
        "turns": [_as_json(turn) for turn in changed],
    }


def _as_json(turn: ReplayedTurn) -> dict[str, object]:
    return {
        "turn_id": turn.record.turn_id,
        "at": turn.record.at,
        "question": turn.question,
        "changes": turn.changes,
        "drifted": turn.drifted,
        "masked": turn.masked,
        "before": _side_as_json(turn.before),
        "after": _side_as_json(turn.after),
    }


def _side_as_json(side: VisibleResult) -> dict[str, object]:
    citations = [{"doc_id": doc_id, "chunk_id": chunk_id} for doc_id, chunk_id in side.citations]
    return {"outcome": side.outcome, "reason": side.reason, "text": side.text, "citations": citations}


def _engine(path: Path) -> AskEngine:
    # Haystack accepts many mistakes silently and raises arbitrary exceptions for others.
    lint.check(path)
    return AskEngine(path)


def _side(ask: Ask, turn: Turn) -> VisibleResult:
    answer = answer_of(ask.finish(turn)[0])
    return VisibleResult.of(json.loads(redacted(answer)))
