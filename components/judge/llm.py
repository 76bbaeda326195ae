"""The judge by language models: three requests, each a form to fill in, whatever the number of passages.

What it reads is data, fenced and numbered; what it writes is never shown but for quotes that stand in a passage. It
raises `ModelFailed` when no model filled in the form: its callers fall back to another judge.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate

from components.answer.packing import formatted
from components.ingest.tokens import count_tokens
from components.judge.claims import RANK
from components.judge.forms import AppraisalForm, ClaimsForm, EvaluationForm, Fact
from components.judge.protocol import Appraisal, Cited, ClaimVerdict
from components.language.normalise import fold
from components.language.words import stems, words
from components.models.calls import Tier, tier_of
from components.models.chat import ChatModels
from components.models.prompts import block
from components.models.structured import fill
from components.nested import Nested
from components.turn import ClaimStatus, Draft, Passage, SelfEvaluation, Turn

_SCORES: Mapping[ClaimStatus, float] = {"supported": 1.0, "partially_supported": 0.5, "unsupported": 0.0}
_MAX_MISSING = 3
_MAX_TOPIC_LENGTH = 120
_SHARE = 0.4
"""Of the turn's time left, for an appraisal: an answer and its check are to come."""


class LlmJudge(Nested):
    """Judges by language models; every method is one call, two when the first reply is not a valid form.

    :param models: the models asked.
    :param tier: which of them; None: chosen by the turn's quality and complexity.
    """

    def __init__(self, models: ChatModels, tier: Tier | None = None) -> None:
        self.models = models
        self.tier = tier

    def appraise(self, turn: Turn, passages: Sequence[Passage]) -> Appraisal:
        """Every passage graded YES or NO, how far all of them together answer, and what they leave open.

        A slow model gets only the first of them, so that time is left for an answer.

        :raises ModelFailed: no model told.
        """
        asked, tier = self.models.prompt("appraise", turn.locale), self.tier or tier_of(turn)
        passages = _fitting(passages, turn.locale, self.models.token_budget(asked, tier, _SHARE))
        numbers = list(range(1, len(passages) + 1))

        def faults(form: AppraisalForm) -> Iterator[str]:
            if sorted(grade.number for grade in form.passages) != numbers:
                yield f"passages: grade each of 1 to {len(numbers)} once"

        found = fill(
            AppraisalForm,
            self.models,
            asked,
            values={
                "question": _question(turn),
                "passages": _numbered(dict(zip(numbers, passages, strict=True)), turn.locale),
            },
            step="appraise",
            tier=tier,
            faults=faults,
        )
        answering = frozenset(passages[grade.number - 1].chunk_id for grade in found.passages if grade.answers)
        return Appraisal(answering, found.adequacy / 100 if answering else 0.0, _topics(found.missing))

    def check_all(self, turn: Turn, claims: Sequence[Cited]) -> Sequence[ClaimVerdict]:
        """Every claim is split into statements and compared with its citations; its verdict is that of the weakest
        statement.

        A claim that cites nothing is unsupported, and no model is asked about it.

        :raises ModelFailed: no model told.
        """
        asked = [claim for claim in claims if claim.passages]
        if not asked:
            return [_UNSUPPORTED for _ in claims]
        numbers = set(range(1, len(asked) + 1))

        def faults(form: ClaimsForm) -> Iterator[str]:
            if {fact.number for fact in form.claims} != numbers:
                yield f"claims: take in each of 1 to {len(numbers)}, and no other"

        found = fill(
            ClaimsForm,
            self.models,
            self.models.prompt("claims", turn.locale),
            values={
                "claims": block("claims", "\n".join(f"{n}. {_marked(claim)}" for n, claim in enumerate(asked, 1))),
                "passages": _numbered(
                    {n: passage for claim in asked for n, passage in claim.passages.items()}, turn.locale
                ),
            },
            step="claims",
            tier=self.tier or tier_of(turn),
            faults=faults,
        )
        parts = [[fact for fact in found.claims if fact.number == n] for n in sorted(numbers)]
        verdicts = map(_verdict, asked, parts)
        return [next(verdicts) if claim.passages else _UNSUPPORTED for claim in claims]

    def evaluate(self, turn: Turn, draft: Draft) -> SelfEvaluation:
        """How well the draft answers the question, as a demanding colleague would say.

        :raises ModelFailed: no model told.
        """
        found = fill(
            EvaluationForm,
            self.models,
            self.models.prompt("evaluate", turn.locale),
            values={
                "question": _question(turn),
                "answer": block("answer", draft.text),
                "passages": _numbered({one.index: one.passage for one in draft.citations}, turn.locale),
            },
            step="evaluate",
            tier=self.tier or tier_of(turn),
        )
        missing = _in_words_of(turn.question, _topics(found.missing)) if found.answerability != "fully" else ()
        return SelfEvaluation(found.quality, found.answerability, found.confidence / 100, missing)


def _fitting(passages: Sequence[Passage], locale: str, token_budget: int) -> Sequence[Passage]:
    """The first passages that fit into a prompt, at least one."""
    costs = accumulate(count_tokens(formatted(number, one, locale)) for number, one in enumerate(passages, 1))
    return passages[: max(1, sum(cost <= token_budget for cost in costs))]


_UNSUPPORTED = ClaimVerdict("unsupported", 0.0, "")


def _question(turn: Turn) -> str:
    return block("question", turn.query.search)


def _numbered(passages: Mapping[int, Passage], locale: str) -> str:
    return block("passages", [formatted(number, passage, locale) for number, passage in passages.items()])


def _marked(claim: Cited) -> str:
    """The claim on one line with its marks."""
    return f"{' '.join(claim.text.split())} {''.join(f'[{n}]' for n in claim.passages)}"


def _verdict(claim: Cited, facts: Sequence[Fact]) -> ClaimVerdict:
    """The weakest of a claim's parts, and the first of their quotes that stands in a cited passage."""
    status = min((fact.status for fact in facts), key=lambda one: RANK[one])
    quotes = (fact.quote.strip() for fact in facts)
    return ClaimVerdict(status, _SCORES[status], next((quote for quote in quotes if _is_quoted(quote, claim)), ""))


def _is_quoted(quote: str, claim: Cited) -> bool:
    said = _flat(quote)
    return bool(said) and any(said in _flat(passage.text) for passage in claim.passages.values())


def _flat(text: str) -> str:
    return " ".join(fold(text).split())


def _in_words_of(question: str, topics: Sequence[str]) -> tuple[str, ...]:
    """The topics in the words of the question, from the first to the last word that a topic shares.

    What is missing is shown to the visitor, and nothing vouches for a model's own words.
    """
    asked = [word for word in words(question) if not word.stop]
    spans = []
    for topic in topics:
        named = set(stems(topic))
        taken = [word for word in asked if word.stem in named]
        if taken:
            spans.append(question[taken[0].start : taken[-1].end])
    return tuple(dict.fromkeys(spans))


def _topics(missing: Sequence[str]) -> tuple[str, ...]:
    """At most three topics, each on one line and short enough to stand in a notice."""
    lines = (" ".join(topic.split()) for topic in missing)
    return tuple(dict.fromkeys(line for line in lines if 0 < len(line) <= _MAX_TOPIC_LENGTH))[:_MAX_MISSING]
