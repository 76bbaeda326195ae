"""Answering with a language model: full sentences from the evidence, each checked against what it cites."""

from dataclasses import replace
from datetime import UTC, datetime

from haystack import component

from components.answer.extractive import ExtractiveAnswerer
from components.answer.packing import BUDGET, packed
from components.answer.writing import Writing
from components.decide.answer_guard import AnswerRules
from components.judge.protocol import Reviewer
from components.judge.requirements import requirements
from components.language.texts import day
from components.models.calls import tier_of
from components.models.chat import ChatModels
from components.models.failures import Interrupted, ModelFailed
from components.models.prompts import block
from components.nested import Nested
from components.turn import Turn
from tenants import policy

WRITING = "answer"
"""The step that answers, as calls and degraded turns name it."""

_CUT = "answer_cut"
_ATTEMPTS = 2
_SHARE = 0.6
"""Of the turn's time left, for writing: what is written is checked afterwards."""
_MIN_TOKENS = 300
"""Tokens of context, about one passage, that even a slow model is given; if that is too much, the answer is quoted."""


@component
class GenerativeAnswerer(Nested):
    """Writes the answer in the visitor's language, sentence by sentence, and tells each as soon as it is checked.

    A sentence that the judge does not find in the passages that its numbers lead to is dropped, unless it quotes
    another one. The answer is quoted instead, and the turn marked degraded (`answer`), when none is left, no model
    answers, or a quotation is what was asked for and what was written is not, or is a fragment. A reply that breaks off
    keeps the sentences that stand (`answer_cut`). A model may say that the passages hold no answer: the turn is refused
    then.

    :param models: who writes.
    :param judge: who checks each sentence, so quickly that the reply does not wait for it.
    :param quoting: who answers when no model does.
    :param budget: tokens of context in the prompt; fewer where the model is slow and the turn has little time left.
    :param temperature: of the reply.
    :param guard: what is held against each sentence; None: all of it.
    """

    def __init__(
        self,
        models: ChatModels,
        judge: Reviewer,
        quoting: ExtractiveAnswerer,
        budget: int = BUDGET,
        temperature: float = 0.3,
        guard: AnswerRules | None = None,
    ) -> None:
        self.models = models
        self.judge = judge
        self.quoting = quoting
        self.budget = budget
        self.temperature = temperature
        self.guard = guard or AnswerRules()

    @component.output_types(turn=Turn, refused=Turn)
    def run(self, turn: Turn) -> dict[str, Turn]:
        """:returns: `turn` with a draft, or `refused`."""
        rules = policy.current()
        token_budget = self.models.token_budget(self.models.prompt(WRITING, turn.locale), tier_of(turn), _SHARE)
        context = packed(turn, rules.top_k, max(_MIN_TOKENS, min(self.budget, token_budget)))
        if not context.numbered:
            return {"turn": self._quoted(turn)}
        for _ in range(_ATTEMPTS):
            writing = Writing(turn, context, self.judge, optimistic=rules.streaming == "optimistic", rules=self.guard)
            failure = self._write(writing)
            draft = writing.finish()
            if draft.claims:
                whole = failure is None
                kept = turn if whole else turn.degraded_at(_CUT)
                written = replace(kept, draft=draft if whole else replace(draft, truncated=True))
                return {"turn": self._fitting(turn, written, fragment=writing.is_fragment)}
            if writing.refused:
                return self._refused(turn)
            # One that broke off with nothing to keep is tried again; others have been tried with all models, and one
            # that goes round in circles would do so again.
            if writing.looped or not isinstance(failure, Interrupted):
                break
        return {"turn": self._quoted(turn).degraded_at(WRITING)}

    def _refused(self, turn: Turn) -> dict[str, Turn]:
        """A model's refusal ends the turn, unless an earlier pass has brought a draft: the best one is kept."""
        if turn.best is not None:
            return {"turn": replace(turn, draft=None)}
        verdict = replace(turn.verdict, route="human", reasons=("self_refusal",))
        ended = replace(turn, outcome="refused", reason="llm_self_refusal", draft=None, verdict=verdict)
        return {"refused": ended}

    def _write(self, writing: Writing) -> ModelFailed | None:
        """Let a model write; how it failed, when it did."""
        turn = writing.turn
        asked = self.models.prompt(WRITING, turn.locale)
        messages = asked.messages(
            company=policy.current().name,
            today=day(datetime.now(UTC).date().isoformat(), turn.locale),
            passages=writing.context.passages,
            related=writing.context.related,
            rejected=writing.context.rejected,
            question=block("question", turn.query.search),
        )
        try:
            self.models.ask(
                messages,
                step=WRITING,
                prompt=asked.label,
                tier=tier_of(turn),
                temperature=self.temperature,
                on_text=writing.feed,
            )
        except ModelFailed as failure:
            return failure
        return None

    def _fitting(self, turn: Turn, written: Turn, *, fragment: bool) -> Turn:
        """The turn with what was written, or, where that is a fragment or not what was asked for, with a quotation that
        is.
        """
        if _fits(written) and not fragment:
            return written
        quoted = self._quoted(turn).degraded_at(WRITING)
        return quoted if _fits(quoted) else written

    def _quoted(self, turn: Turn) -> Turn:
        quoted: Turn = self.quoting.run(turn)["turn"]
        return quoted


def _fits(turn: Turn) -> bool:
    """Whether the draft is what was asked for."""
    draft = turn.draft
    return draft is not None and bool(draft.claims) and all(gate.passed for gate in requirements(turn, draft))
