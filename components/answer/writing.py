"""An answer as it is being written: each sentence is held against what it cites before it becomes part of it."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import islice

from components.answer.debris import loops, without_debris
from components.answer.packing import Context
from components.answer.token_sink import emit
from components.answer.utterances import Utterance, Utterances
from components.decide.answer_guard import AnswerGuard, AnswerRules
from components.decide.provisional import ProvisionalText
from components.judge.approaches import proposed
from components.judge.protocol import Cited, ClaimVerdict, Reviewer
from components.language.identifiers import codes
from components.language.marks import FENCE, ITEM
from components.language.normalise import fold
from components.language.words import all_words, words
from components.models.failures import ModelFailed
from components.turn import Citation, Claim, Draft, Passage, RejectedApproach, Turn
from tenants import policy

REFUSAL = "NO_ANSWER"
"""What a model says, as its prompt asks it to, when the passages do not answer."""

_WORD_OR_TWO = 2
_CODE = re.compile(FENCE)
_MARKER = re.compile(rf"\A\s*{ITEM}\s+")


@dataclass(slots=True)
class Writing:
    """The draft that grows out of a model's reply.

    A sentence becomes a claim of it when its marks lead to passages, the judge finds that those support it, and what
    may be said at all allows it. One whose marks do not, or that has none, but that stands in a passage to the letter
    cites that passage. All others are dropped, and nobody ever sees them; neither is anything said twice.
    """

    turn: Turn
    context: Context
    judge: Reviewer
    optimistic: bool = False
    rules: AnswerRules = field(default_factory=AnswerRules)
    claims: list[Claim] = field(default_factory=list)
    withheld: list[RejectedApproach] = field(default_factory=list)
    looped: bool = False
    _reply: str = ""
    _text: str = ""
    _lead: tuple[Claim, Utterance] | None = None
    _cut: bool = False
    _unsupported: set[str] = field(default_factory=set)
    _guard: AnswerGuard = field(init=False)
    _provisional: ProvisionalText = field(init=False)
    _utterances: Utterances = field(default_factory=Utterances)

    def __post_init__(self) -> None:
        self._guard = AnswerGuard(self.turn, policy.current(), self.rules)
        self._provisional = ProvisionalText(self._guard)

    @property
    def refused(self) -> bool:
        """Whether the model has said that it has no answer."""
        return REFUSAL in self._reply

    @property
    def is_fragment(self) -> bool:
        """Whether fewer sentences stand than were dropped because nothing supports them, the last one announces what
        did not come, or a word or two that are no sentence of their source are all there is.
        """
        if len(self._unsupported) > len(self.claims) or self._lead is not None:
            return True
        said = sum(not word.stop for claim in self.claims for word in words(claim.text))
        numbered = self.context.numbered
        return said <= _WORD_OR_TWO and not any(
            _quotes(claim.text, numbered[number]) for claim in self.claims for number in claim.citations
        )

    def feed(self, piece: str) -> None:
        """Take the next piece of the reply.

        :raises ModelFailed: the reply goes round in circles; this ends the call.
        """
        self._reply += piece
        if loops(self._reply):
            self.looped = True
            raise ModelFailed("malformed")
        if self.optimistic:
            emit(self._provisional.add(piece), provisional=True)
        self._take(self._utterances.add(piece))

    def finish(self) -> Draft:
        """The draft, once the reply has ended."""
        if self.optimistic:
            emit(self._provisional.flush(), provisional=True)
        self._take(self._utterances.finish())
        withheld = tuple(dict.fromkeys(self.withheld))
        return Draft(self._text, tuple(self.claims), self._citations(), truncated=self._cut, withheld=withheld)

    def _take(self, utterances: Iterable[Utterance]) -> None:
        for utterance in utterances:
            accepted = [claim for sentence in utterance.sentences if (claim := self._claim(sentence, utterance.marks))]
            self._cut |= bool(utterance.bullet) and len(accepted) < len(utterance.sentences)
            for place, claim in enumerate(accepted):
                self._add(claim, utterance, opens=place == 0)

    def _claim(self, sentence: str, marks: tuple[int, ...]) -> Claim | None:
        """The sentence as a claim with the passages that support it; None when it may not be said, or has been."""
        sentence = without_debris(sentence)
        if self._is_off(sentence) or any(claim.text == sentence for claim in self.claims):
            return None
        sentence_text = self._guard.sentence(sentence).strip()
        if not sentence_text:
            return None
        quoted = (number for number, passage in self.context.numbered.items() if _quotes(sentence, passage))
        supported = self._supporting(sentence_text, marks) or self._supporting(sentence_text, islice(quoted, 1))
        if not supported:
            self._unsupported.add(sentence_text)
            return None
        best = max(supported.values(), key=lambda verdict: verdict.score)
        return Claim(sentence_text, tuple(supported), "supported", best.quote)

    def _supporting(self, claim_text: str, numbers: Iterable[int]) -> dict[int, ClaimVerdict]:
        """The verdicts of the passages with these numbers that support the claim."""
        passages = {number: self.context.numbered[number] for number in numbers if number in self.context.numbered}
        verdicts = {
            number: self.judge.check_all(self.turn, [Cited(claim_text, {number: passage})])[0]
            for number, passage in passages.items()
        }
        return {number: verdict for number, verdict in verdicts.items() if verdict.status == "supported"}

    def _is_off(self, sentence: str) -> bool:
        """Whether it asks back, speaks of other codes than the question, or proposes what the tenant has rejected."""
        if sentence.endswith("?"):
            return True
        question_codes, named = set(self.turn.query.codes), set(codes(sentence))
        if question_codes and named and not question_codes & named:
            return True
        off = [approach for approach in self.turn.evidence.rejected if proposed(sentence, approach)]
        self.withheld.extend(off)
        return bool(off)

    def _add(self, claim: Claim, utterance: Utterance, *, opens: bool) -> None:
        """Put a claim into the draft. One that announces something waits until that has come."""
        if self._lead is not None:
            (lead, announcing), self._lead = self._lead, None
            self._put(lead, announcing, opens=True)
        if claim.text.endswith(":"):
            self._lead = claim, utterance
        else:
            self._put(claim, utterance, opens=opens)

    def _put(self, claim: Claim, utterance: Utterance, *, opens: bool) -> None:
        marks = "".join(f"[{number}]" for number in claim.citations)
        # A mark behind the closing fence would keep a block of code open.
        fenced = bool(_CODE.match(claim.text))
        marked = f"{claim.text}\n{marks}" if fenced else f"{claim.text} {marks}"
        if opens and utterance.bullet:
            marked = f"{utterance.bullet} {marked}"
        between = "" if not self._text else "\n" if fenced or (opens and utterance.own_line) else " "
        self.claims.append(claim)
        self._text += between + marked
        if not self.optimistic:
            emit(between + marked)

    def _citations(self) -> tuple[Citation, ...]:
        """One for each passage that a claim stands on; its excerpt holds all words that support."""
        spans: dict[int, tuple[int, int]] = {}
        for claim in self.claims:
            for number in claim.citations:
                start, end = _span(self.context.numbered[number], claim.quote)
                span = spans.get(number, (start, end))
                spans[number] = min(start, span[0]), max(end, span[1])
        passages = self.context.numbered
        return tuple(
            Citation(number, passages[number], passages[number].text[start:end], (start, end))
            for number, (start, end) in sorted(spans.items())
        )


def _quotes(sentence: str, passage: Passage) -> bool:
    """Whether this is one of the passage's own sentences, whole and word for word."""
    said = all_words(fold(sentence))
    texts = (passage.text[start:end] for start, end in passage.sentences)
    return bool(said) and any(said == all_words(fold(_MARKER.sub("", text))) for text in texts)


def _span(passage: Passage, quote: str) -> tuple[int, int]:
    """Where the quote stands in the passage; its first sentence when it was put together otherwise."""
    at = passage.text.find(quote) if quote else -1
    if at >= 0:
        return at, at + len(quote)
    return passage.sentences[0] if passage.sentences else (0, len(passage.text))
