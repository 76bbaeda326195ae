"""After answering: does each claim follow from the passages it cites?"""

import re
from collections.abc import Sequence
from dataclasses import replace

from haystack import Document, component
from haystack.dataclasses import GeneratedAnswer

from components.answer.drafts import is_lead, to_answer, to_draft, with_claims
from components.faults import degraded
from components.judge.claims import is_quoted, is_unfit, rejected_by, unknown_codes
from components.judge.llm import LlmJudge
from components.judge.terms import strict_codes
from components.language.identifiers import codes
from components.models.calls import Tier, tier_of
from components.passages import to_passages
from components.retrieve.rejected import near_to, proposed_by
from components.turn import Claim, Complexity, Draft, Passage, Quality, RejectedApproach
from tenants.knowledge import relations

VERIFIER = "verifier"
_STEP = re.compile(r"\s*\d+[.)]")


@component
class FactVerifier:
    """Check the claims of an answer and drop those that nothing supports, before anyone sees them.

    A quotation is supported if its passage contains it word for word. The model judges all other claims, in one call;
    without a model, only quotations are supported. A claim is dropped without a judgement if it cites nothing, is too
    long for a statement, names an identifier or a number that no source contains, names a code that the question asks
    about and no document contains, or proposes a rejected approach in the words in which it was rejected. In the same
    call, the model finds proposals in other words. It gets the approaches close to the question and those close to a
    sentence of the draft. A draft that loses its opening or a step of a procedure is marked as truncated. If the model
    fails, the claims stay, factuality is 0 with the status `failed`, and the turn is degraded (`verifier`).

    :param judge: the model that verifies; None to accept quotations alone.
    :param max_claims: maximum number of claims that the model judges, besides quotations; the rest are dropped.
    :param max_rejected: rejected approaches close to the draft that the model gets, besides the question's.

    ```python
    FactVerifier().run(answers=answers)["answers"]
    ```
    """

    def __init__(self, judge: LlmJudge | None = None, max_claims: int = 40, max_rejected: int = 3) -> None:
        self.judge = judge
        self.max_claims = max_claims
        self.max_rejected = max_rejected

    @component.output_types(answers=list[GeneratedAnswer])
    def run(
        self,
        answers: list[GeneratedAnswer],
        question: str = "",
        documents: list[Document] | None = None,
        rejected: list[RejectedApproach] | None = None,
        locale: str = "ru",
        quality: Quality = "balanced",
        complexity: Complexity = "unknown",
    ) -> dict[str, list[GeneratedAnswer]]:
        """Return the answers with checked claims; only the first one is checked and kept.

        :param answers: the draft.
        :param question: the customer's words; its numbers and identifiers may be repeated.
        :param documents: all that the writer has read, if that is more than the draft cites.
        :param rejected: approaches close to the question.
        """
        if not answers:
            return {"answers": []}
        draft = to_draft(answers[0])
        sources = _sources(question, documents, draft)
        checked = self._checked(draft, sources, rejected or (), locale, tier_of(quality, complexity))
        return {"answers": [to_answer(checked, answers[0].query, answers[0].documents)]}

    def _checked(
        self,
        draft: Draft,
        sources: Sequence[str],
        rejected: Sequence[RejectedApproach],
        locale: str,
        tier: Tier,
    ) -> Draft:
        if not draft.claims:
            return replace(draft, factuality=100.0, factuality_status="no_claims")
        numbered = {citation.index: citation.passage for citation in draft.citations}
        try:
            approaches = self._approaches(draft, rejected)
            literal = {claim: approach for claim in draft.claims if (approach := rejected_by(claim, approaches))}
            absent = frozenset(_absent_codes(sources))
            allowed = [
                claim
                for claim in draft.claims
                if (claim.citations or is_lead(claim))
                and claim not in literal
                and (draft.quoted or not (is_unfit(claim.text, sources) or absent.intersection(codes(claim.text))))
            ]
            # No model wrote a quoted draft, so none may be reachable: it is checked by words alone.
            checked, paraphrased = self._judged(allowed, numbered, () if draft.quoted else approaches, locale, tier)
        except Exception as error:
            degraded(VERIFIER, error)
            return replace(draft, factuality=0.0, factuality_status="failed")
        supported = [
            claim for place, claim in enumerate(checked) if claim.status == "supported" and place not in paraphrased
        ]
        statements = [claim for claim in draft.claims if not is_lead(claim)]
        kept = [claim for claim in supported if not is_lead(claim)]
        share = round(100 * len(kept) / len(statements), 1) if statements else 0.0
        withheld = tuple(dict.fromkeys((*draft.withheld, *literal.values(), *paraphrased.values())))
        draft = replace(
            draft,
            withheld=withheld,
            factuality=share,
            factuality_status="checked",
            truncated=draft.truncated or _lacks_opening_or_step(statements, kept),
        )
        return with_claims(draft, supported if kept else (), numbered)

    def _approaches(self, draft: Draft, rejected: Sequence[RejectedApproach]) -> Sequence[RejectedApproach]:
        """Return the rejected approaches close to the question, and those that the draft proposes or may propose."""
        known = relations.current().rejected
        sentences = [claim.text for claim in draft.claims if not is_lead(claim)]
        found = [*rejected, *proposed_by(sentences, known)]
        if self.judge is not None and not draft.quoted:
            found += near_to(sentences, known, limit=self.max_rejected)
        chosen: dict[str, RejectedApproach] = {}
        for approach in found:
            chosen.setdefault(approach.rejected_id, approach)
        return tuple(chosen.values())

    def _judged(
        self,
        claims: Sequence[Claim],
        numbered: dict[int, Passage],
        approaches: Sequence[RejectedApproach],
        locale: str,
        tier: Tier,
    ) -> tuple[list[Claim], dict[int, RejectedApproach]]:
        """Return the claims with their status: quotations and lead-ins at once, the others by the model. Also return
        the approach that a claim proposes, by the claim's place; quotations may propose one, too.
        """
        known = {
            place: replace(claim, status="supported", quote="" if is_lead(claim) else claim.text)
            for place, claim in enumerate(claims)
            if is_lead(claim) or any(is_quoted(claim.text, numbered[n]) for n in claim.citations if n in numbered)
        }
        asked = [place for place in range(len(claims)) if place not in known][: self.max_claims]
        if approaches:
            asked = sorted((*asked, *(place for place in known if not is_lead(claims[place]))))
        proposals: dict[int, RejectedApproach] = {}
        if asked and self.judge is not None:
            verdicts, found = self.judge.check(
                [claims[place] for place in asked], numbered, approaches, locale=locale, tier=tier
            )
            known = dict(zip(asked, verdicts, strict=True)) | known
            proposals = {asked[place]: approach for place, approach in found.items()}
        return [known.get(place, claim) for place, claim in enumerate(claims)], proposals


def _lacks_opening_or_step(written: Sequence[Claim], kept: Sequence[Claim]) -> bool:
    """Return whether the opening statement or a numbered step was dropped, and others were kept."""
    steps = {claim.text for claim in written if _STEP.match(claim.gap)}
    left = {claim.text for claim in kept}
    lacks_step = bool(steps - left) and not steps.isdisjoint(left)
    return lacks_step or (bool(left) and written[0].text not in left)


def _absent_codes(sources: Sequence[str]) -> tuple[str, ...]:
    """Return the codes that the question, the first of the sources, asks about and no other source holds."""
    question, *documents = sources
    return unknown_codes(strict_codes(question), documents) if codes(question) else ()


def _sources(question: str, documents: Sequence[Document] | None, draft: Draft) -> list[str]:
    """Return the texts that a claim may take numbers and identifiers from."""
    passages = (*to_passages(documents or ()), *(citation.passage for citation in draft.citations))
    return [question, *(f"{passage.title}\n{passage.heading}\n{passage.text}" for passage in passages)]
