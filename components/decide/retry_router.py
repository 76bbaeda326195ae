"""After verification: show the answer, try again, or hand over to a person."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from haystack import component
from haystack.dataclasses import GeneratedAnswer

from components.answer.drafts import to_answer, to_draft
from components.judge.evidence_evaluator import checked_passes
from components.turn import Answerability, Draft, Gate, Quality, SelfEvaluation, Verdict

_WORTH: Mapping[Answerability, int] = {"fully": 3, "partially": 2, "unknown": 1, "cannot": 0}


@component
class RetryRouter:
    """Decide by the facts, then by how complete the answer is, then by the budget.

    An answer with at least one supported claim that answers the question or a part of it is accepted: `auto`. The
    verifier has dropped unsupported claims, and the reply says what stays open. Another pass is made if an answer to a
    part leaves something open, the budget allows one and this pass found something new. If nothing supported is left,
    or the answer is about something else, the route is `human`.

    The best answer of all passes is passed on: a verified one first, then by the gates passed, by how completely it
    answers, and by quality.

    :param quality_threshold: minimum quality, 1..100, of a full answer.
    :param factuality_threshold: minimum percentage of drafted claims that are supported in a full answer.
    :param agreement_threshold: minimum agreement of several drafts, 0..1, where more than one was written.
    :param passes: passes by quality; qualities left out keep their default.
    """

    def __init__(
        self,
        quality_threshold: int = 60,
        factuality_threshold: float = 60.0,
        agreement_threshold: float = 0.5,
        passes: Mapping[Quality, int] | None = None,
    ) -> None:
        self.quality_threshold = quality_threshold
        self.factuality_threshold = factuality_threshold
        self.agreement_threshold = agreement_threshold
        self.passes = checked_passes(passes)

    @component.output_types(accept=list[GeneratedAnswer], retry=list[str], best=GeneratedAnswer, verdict=Verdict)
    def run(
        self,
        answers: list[GeneratedAnswer],
        evaluation: SelfEvaluation,
        gate: Gate | None = None,
        attempt: int = 1,
        grew: bool = True,
        best: GeneratedAnswer | None = None,
        quality: Quality = "balanced",
    ) -> dict[str, Any]:
        """Return `accept` with the best answer, or `retry` with what to search for; always the `verdict`.

        :param answers: the verified draft.
        :param evaluation: how good the draft was before claims were dropped.
        :param gate: the relevance gate of the evidence.
        :param attempt: the number of this pass, from 1.
        :param grew: whether this pass found documents that no earlier pass had found.
        :param best: the best answer of earlier passes.
        """
        draft = _evaluated(to_draft(answers[0]), evaluation) if answers else Draft("", (), ())
        chosen = draft
        if best is not None:
            before = to_draft(best)
            chosen = draft if self._worth(draft) > self._worth(before) else before
        gates = (*((gate,) if gate else ()), *self._gates(chosen))
        failed = tuple(one.name for one in gates if not one.passed)
        answer = to_answer(chosen, answers[0].query if answers else "", answers[0].documents if answers else ())
        if chosen.claims and chosen.missing and grew and attempt < self.passes[quality]:
            return {"retry": list(chosen.missing), "best": answer, "verdict": Verdict("retry", failed, gates)}
        useful = bool(chosen.claims) and chosen.answerability in ("fully", "partially")
        spent = ("budget_exhausted",) if attempt >= self.passes[quality] else ()
        verdict = Verdict("auto", failed, gates) if useful else Verdict("human", (*failed, *spent), gates)
        return {"accept": [answer], "verdict": verdict}

    def _gates(self, draft: Draft) -> tuple[Gate, ...]:
        checked = draft.factuality_status == "checked" and bool(draft.claims)
        scores = {
            "factuality": (draft.factuality if checked else 0.0, self.factuality_threshold),
            "quality": (draft.quality, self.quality_threshold),
        }
        if draft.agreement is not None:
            scores["agreement"] = draft.agreement, self.agreement_threshold
        return tuple(Gate(name, score >= least, score, least) for name, (score, least) in scores.items())

    def _worth(self, draft: Draft) -> tuple[bool, int, int, int, float]:
        """Return the rank of a draft among those of all passes."""
        verified = bool(draft.claims) and draft.factuality_status == "checked"
        passed = sum(gate.passed for gate in self._gates(draft))
        return verified, passed, _WORTH[draft.answerability], draft.quality, draft.factuality


def _evaluated(draft: Draft, evaluation: SelfEvaluation) -> Draft:
    """Return the draft with its evaluation, which is bounded by what the verifier has dropped since."""
    answerability = evaluation.answerability
    share = draft.factuality / 100 if draft.factuality_status == "checked" else 0.0
    missing = evaluation.missing or (draft.missing if answerability != "fully" else ())
    return replace(
        draft,
        quality=evaluation.quality if draft.claims else 0,
        relevance=evaluation.relevance,
        confidence=round(evaluation.confidence * share, 4),
        answerability=answerability if draft.claims else "cannot",
        missing=missing,
    )
