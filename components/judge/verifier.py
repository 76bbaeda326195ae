"""After answering: does each claim follow from the passages it cites?"""

import re
from collections.abc import Container, Sequence
from dataclasses import replace

from haystack import component

from components.faults import degraded
from components.judge.claims import RANK
from components.judge.protocol import Cited, ClaimVerdict, Reviewer
from components.judge.reviewer import DraftReviewer
from components.language.marks import FENCE, ITEM
from components.turn import Claim, Draft, Turn

_FENCED = re.compile(FENCE)


@component
class FactVerifier:
    """Checks the claims of a draft and drops those that nothing supports, before anybody sees them.

    A claim without a citation that resolves is unsupported. Claims beyond `max_claims` are dropped unchecked. When the
    judge fails, nothing is dropped, factuality is 0 with the status `failed`, and the turn is marked degraded.

    With a reviewer, a claim stays when the model supports it too. A draft of which nothing is left is not reviewed.
    Where the model fails, the judge's word stands alone and the turn is marked degraded.

    :param judge: who checks.
    :param max_claims: most claims checked.
    :param reviewer: a model that checks the same claims; None for the judge alone.
    """

    def __init__(self, judge: Reviewer, max_claims: int = 10, reviewer: DraftReviewer | None = None) -> None:
        self.judge = judge
        self.max_claims = max_claims
        self.reviewer = reviewer

    @component.output_types(turn=Turn)
    def run(self, turn: Turn) -> dict[str, Turn]:
        """:returns: the turn with its draft checked and repaired."""
        draft = turn.draft
        if draft is None:
            return {"turn": turn}
        if not draft.claims:
            return {"turn": replace(turn, draft=repaired(draft, ()))}
        claims = cited(draft)[: self.max_claims]
        try:
            verdicts = self.judge.check_all(turn, claims)
        except Exception as error:
            return {"turn": replace(degraded(turn, "verifier", error), draft=unchecked(draft))}
        repaired_draft = repaired(draft, verdicts)
        if self.reviewer is None or not repaired_draft.claims:
            return {"turn": replace(turn, draft=repaired_draft)}
        review = self.reviewer.review(turn, draft, claims)
        if review.verdicts is not None:
            repaired_draft = repaired(draft, [stricter(*pair) for pair in zip(verdicts, review.verdicts, strict=True)])
        for step, fault in review.failed:
            turn = degraded(turn, step, fault)
        reviewed = replace(repaired_draft, agreement=review.agreement, evaluation=review.evaluation)
        return {"turn": replace(turn, draft=reviewed)}


def stricter(local: ClaimVerdict, model: ClaimVerdict) -> ClaimVerdict:
    """The stricter verdict, with the words that the model found where it found any."""
    status = min(local.status, model.status, key=lambda verdict: RANK[verdict])
    return ClaimVerdict(status, min(local.score, model.score), model.quote or local.quote)


def cited(draft: Draft) -> list[Cited]:
    """The claims of a draft with what they cite, in order."""
    passages = {citation.index: citation.passage for citation in draft.citations}
    return [
        Cited(claim.text, {index: passages[index] for index in claim.citations if index in passages})
        for claim in draft.claims
    ]


def unchecked(draft: Draft) -> Draft:
    """The draft when nobody could check it: as it is, and worth nothing."""
    return replace(draft, factuality=0.0, factuality_status="failed")


def repaired(draft: Draft, verdicts: Sequence[ClaimVerdict]) -> Draft:
    """The draft less the claims that are not supported; those beyond the verdicts were not looked at and go too.

    Factuality is the percentage of supported claims among all that were drafted, the dropped ones included.
    """
    if not draft.claims:
        return replace(draft, factuality=100.0, factuality_status="no_claims")
    checked = [
        replace(claim, status=verdict.status, quote=verdict.quote)
        for claim, verdict in zip(draft.claims, verdicts, strict=False)
    ]
    supported = tuple(claim for claim in checked if claim.status == "supported")
    supported_places = {place for place, claim in enumerate(checked) if claim.status == "supported"}
    unsupported = set(range(len(draft.claims))) - supported_places
    used = {index for claim in supported for index in claim.citations}
    return replace(
        draft,
        text=with_marks(without(unsupported, draft), supported) if unsupported else draft.text,
        opening="" if unsupported else draft.opening,
        claims=supported,
        citations=tuple(citation for citation in draft.citations if citation.index in used),
        factuality=round(100 * len(supported) / len(draft.claims), 1),
        factuality_status="checked",
    )


def with_marks(text: str, claims: Sequence[Claim]) -> str:
    """The text with a mark again for each citation whose mark stood behind a claim that was dropped."""
    last = {index: claim.text for claim in claims for index in claim.citations}
    for index, words in last.items():
        if f"[{index}]" not in text:
            before, found, after = text.rpartition(words)
            gap = "\n" if _FENCED.match(words) else " "
            text = f"{before}{found}{gap}[{index}]{after}" if found else text
    return text


def without(claims_to_drop: Container[int], draft: Draft) -> str:
    """The draft's text less its opening, its claims at these places, and the marks [N] and list bullets of those.

    Claims are looked up in their order, each behind the one before: a dropped claim may read like a part of another.
    """
    text, text_left, position = draft.text.removeprefix(draft.opening), "", 0
    for place, claim in enumerate(draft.claims):
        marked = rf"{re.escape(claim.text)}(?:\s?\[\d+\])*"
        match = re.compile(rf"^(?:{ITEM} )?{marked}[ \n]?|{marked} ?", re.MULTILINE).search(text, position)
        if match:
            text_left += text[position : match.start() if place in claims_to_drop else match.end()]
            position = match.end()
    return re.sub(" +$", "", text_left + text[position:], flags=re.MULTILINE).strip()
