"""The judge by language models: three requests, each a form to fill in, whatever the number of documents.

Its input is data, fenced and numbered. It raises `ModelFailed` if no model filled in the form: callers fall back to a
local judgement and mark the turn as degraded.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from components.answer.drafts import topics
from components.answer.packing import formatted
from components.judge.claims import flat
from components.judge.forms import ClaimsForm, EvaluationForm, GradesForm, Proposal, ProposalsForm
from components.models.calls import Tier
from components.models.chat import ChatModels
from components.models.prompts import block
from components.models.structured import fill
from components.serialisation import Nested
from components.turn import Claim, Passage, RejectedApproach, SelfEvaluation

_NEAR_TOPIC = 40
"""The relevance that the prompt gives to an answer near the topic."""

# The share of answers that readers called an answer, by the evaluator's verdict: 40 of 46 `fully`, 16 of 33
# `partially` (two help centres, 106 questions, Russian and English, 2026-11).
_CONFIDENCE: Mapping[str, float] = {"fully": 0.87, "partially": 0.48, "cannot": 0.05}


@dataclass(frozen=True, slots=True)
class Grades:
    """A model's grades of documents: answering chunk ids, adequacy of all together (0..1), missing topics."""

    answering: frozenset[str]
    adequacy: float
    missing: tuple[str, ...]


class LlmJudge(Nested):
    """Judge with language models; every method makes one call, or two if the first reply is invalid.

    :param models: the models asked.
    """

    def __init__(self, models: ChatModels) -> None:
        self.models = models

    def grade(self, question: str, passages: Sequence[Passage], *, locale: str, tier: Tier) -> Grades:
        """Grade every passage YES or NO, and say how far all of them together answer and what they leave open.

        :raises ModelFailed: no model returned a valid form.
        """
        numbers = list(range(1, len(passages) + 1))

        def faults(form: GradesForm) -> Iterator[str]:
            if sorted(grade.number for grade in form.passages) != numbers:
                yield f"passages: grade each of 1 to {len(numbers)} once"

        found = fill(
            GradesForm,
            self.models,
            self.models.prompt("grade", locale),
            values={
                "question": block("question", question),
                "passages": _numbered(dict(zip(numbers, passages, strict=True)), locale),
            },
            step="grade",
            tier=tier,
            faults=faults,
        )
        answering = frozenset(passages[grade.number - 1].chunk_id for grade in found.passages if grade.answers)
        return Grades(answering, found.adequacy / 100 if answering else 0.0, topics(found.missing))

    def check(
        self,
        claims: Sequence[Claim],
        passages: Mapping[int, Passage],
        rejected: Sequence[RejectedApproach] = (),
        *,
        locale: str,
        tier: Tier,
    ) -> tuple[list[Claim], dict[int, RejectedApproach]]:
        """Return the claims with the status that their cited passages give them and the words that decide it, and by
        the place of a claim the rejected approach that it suggests in any words.

        :param passages: by the number that claims cite them by.
        :raises ModelFailed: no model returned a valid form.
        """
        numbers = set(range(1, len(claims) + 1))

        def faults(form: ClaimsForm) -> Iterator[str]:
            if missing := numbers - {fact.number for fact in form.claims}:
                yield f"claims: judge {', '.join(map(str, sorted(missing)))} too"
            if any(one.number not in numbers or not 0 < one.approach <= len(rejected) for one in _proposals(form)):
                yield f"proposals: numbers are 1 to {len(claims)}, approaches 1 to {len(rejected)}"

        cited = {n for claim in claims for n in claim.citations}
        found = fill(
            ProposalsForm if rejected else ClaimsForm,
            self.models,
            self.models.prompt("proposals" if rejected else "claims", locale),
            values={
                "claims": block("claims", "\n".join(f"{n}. {_marked(claim)}" for n, claim in enumerate(claims, 1))),
                "passages": _numbered({n: passages[n] for n in sorted(cited)}, locale),
                "rejected": block("rejected", _lines(approach.text for approach in rejected)),
            },
            step="claims",
            tier=tier,
            faults=faults,
        )
        verdicts = {fact.number: fact for fact in found.claims}
        checked = [
            replace(claim, status=verdicts[n].status, quote=_quote(verdicts[n].quote, claim, passages))
            for n, claim in enumerate(claims, 1)
        ]
        return checked, {one.number - 1: rejected[one.approach - 1] for one in _proposals(found)}

    def evaluate(
        self, question: str, answer: str, left_open: Sequence[str] = (), *, locale: str, tier: Tier
    ) -> SelfEvaluation:
        """Say how well the answer answers the question. A partial answer that is only near the topic counts as
        `cannot`.

        :param left_open: what the writer says the answer lacks.
        :raises ModelFailed: no model returned a valid form.
        """
        found = fill(
            EvaluationForm,
            self.models,
            self.models.prompt("evaluate", locale),
            values={
                "question": block("question", question),
                "answer": block("answer", answer),
                "left_open": block("left_open", [f"- {topic}" for topic in left_open]),
            },
            step="evaluate",
            tier=tier,
        )
        verdict = found.answerability
        if verdict == "partially" and found.relevance <= _NEAR_TOPIC:
            verdict = "cannot"
        missing = topics(found.missing) if verdict != "fully" else ()
        return SelfEvaluation(found.quality, verdict, found.relevance / 100, _CONFIDENCE[verdict], missing)


def _proposals(form: ClaimsForm) -> Sequence[Proposal]:
    return form.proposals if isinstance(form, ProposalsForm) else ()


def _numbered(passages: Mapping[int, Passage], locale: str) -> str:
    return block("passages", [formatted(number, passage, locale) for number, passage in passages.items()])


def _lines(texts: Iterable[str]) -> str:
    """Return the texts numbered from 1, a line each."""
    return "\n".join(f"{number}. {' '.join(text.split())}" for number, text in enumerate(texts, 1))


def _marked(claim: Claim) -> str:
    """Return the claim on one line with its marks."""
    return f"{' '.join(claim.text.split())} {''.join(f'[{n}]' for n in claim.citations)}"


def _quote(quote: str, claim: Claim, passages: Mapping[int, Passage]) -> str:
    """Return the quote where a cited passage holds it, else nothing."""
    said = flat(quote)
    return quote.strip() if said and any(said in flat(passages[n].text) for n in claim.citations) else ""
