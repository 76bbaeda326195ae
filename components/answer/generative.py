"""Answering with a language model: cited sentences from the evidence."""

import re
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from contextvars import copy_context
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Literal

from haystack import Document, component
from haystack.dataclasses import GeneratedAnswer
from pydantic import ValidationError, model_validator

from components.answer import token_sink
from components.answer.drafts import to_answer, topics, with_claims
from components.answer.extractive import ExtractiveAnswerer
from components.answer.packing import fitting, formatted, rejected_lines, related_lines
from components.decide.answer_guard import AnswerGuard, AnswerRules
from components.faults import degraded
from components.language.identifiers import codes, numbers
from components.language.marks import ITEM
from components.language.texts import day
from components.language.words import stems
from components.models.calls import tier_of
from components.models.chat import ChatModels
from components.models.chat_call import OnText
from components.models.failures import ModelFailed
from components.models.prompts import as_asked, block
from components.models.structured import Form, fill
from components.passages import to_passage, to_passages, with_meta
from components.serialisation import Nested
from components.turn import (
    Claim,
    Complexity,
    Draft,
    Evidence,
    Exchange,
    Passage,
    Quality,
    RejectedApproach,
    Related,
    Turn,
)
from components.understand.condenser import transcript
from tenants.accounts import policy

WRITING = "answer"
"""Name of the answering step in calls and degraded turns."""

_MARK = re.compile(r"\s*\[\d+(?:\s*,\s*\d+)*\]")
_BULLET = re.compile(rf"\A\s*({ITEM})\s+")
_PARAGRAPH = 250
"""Characters of a paragraph, unless one sentence has more. Readers called longer ones a solid block."""
MOST_SAMPLES = 5
_SENTENCE = re.compile(r'\{\s*"text"\s*:\s*"(?:[^"\\]|\\.)*"\s*,\s*"cites"\s*:\s*\[[^\]]*\]\s*\}')


class SentenceForm(Form):
    """A sentence, or one step of a procedure, with the numbers of the passages that it rests on."""

    text: str
    cites: tuple[int, ...]


class AnswerForm(Form):
    """An answer: how far it goes, its sentences, what is missing, and the choices if the question is unclear.

    `see` are the numbers of passages to read if there is no answer.
    """

    covers: Literal["fully", "partially", "none"]
    sentences: tuple[SentenceForm, ...]
    missing: tuple[str, ...]
    options: tuple[str, ...]
    see: tuple[int, ...]

    @model_validator(mode="before")
    @classmethod
    def _without_choice(cls, data: object) -> object:
        """Take a form without `see`: an edited prompt may not ask for it."""
        return {"see": (), **data} if isinstance(data, Mapping) else data


@component
class GenerativeAnswerer(Nested):
    """Write an answer in cited sentences, in one call of a model.

    The model sees the customer's own words, the conversation, the sections that were found, and what the company has
    rejected. It opens with the point, keeps procedures as steps, and names what the sections do not cover. If no model
    answers, `quoting` quotes the best section instead and the turn is degraded (`answer`).

    :param models: the models that write.
    :param quoting: answers when no model does; None to give no answer then.
    :param budget: tokens of passages in the prompt.
    :param temperature: of the reply.
    :param samples: drafts written at the same time, each in a separate call. Keep the draft that agrees most with the
        others; their agreement is a gate of `RetryRouter`.
    :param sample_temperature: of all drafts but the first, which has `temperature`.
    :param guard: the rules for text that is streamed before it is verified, if the tenant's policy wants that.

    ```python
    GenerativeAnswerer(models).run(question="Can I return a gift?", query="return a gift", documents=documents)
    ```
    """

    def __init__(
        self,
        models: ChatModels,
        quoting: ExtractiveAnswerer | None = None,
        budget: int = 4_000,
        temperature: float = 0.3,
        samples: int = 1,
        sample_temperature: float = 0.9,
        guard: AnswerRules | None = None,
    ) -> None:
        if not 1 <= samples <= MOST_SAMPLES:
            raise ValueError(f"samples: from 1 to {MOST_SAMPLES}")
        self.models = models
        self.quoting = quoting
        self.budget = budget
        self.temperature = temperature
        self.samples = samples
        self.sample_temperature = sample_temperature
        self.guard = guard or AnswerRules()

    @component.output_types(answers=list[GeneratedAnswer])
    def run(
        self,
        question: str,
        query: str,
        documents: list[Document],
        history: list[Exchange] | None = None,
        context: str = "",
        related: list[Related] | None = None,
        rejected: list[RejectedApproach] | None = None,
        locale: str = "ru",
        quality: Quality = "balanced",
        complexity: Complexity = "unknown",
    ) -> dict[str, list[GeneratedAnswer]]:
        """Return one answer; without claims if the documents hold none, and empty if no model and no quotation answers.

        :param question: the customer's words.
        :param query: the standalone question.
        :param documents: the evidence, best first; the model cites them by their place, from 1.
        """
        passages = fitting(to_passages(documents), self.budget, locale)
        if not passages:
            return {"answers": []}
        values: dict[str, object] = {
            "company": policy.current().name,
            "today": day(datetime.now(UTC).date().isoformat(), locale),
            "passages": block("passages", [formatted(n, one, locale) for n, one in enumerate(passages, 1)]),
            "related": block("related", related_lines(related or ())),
            "rejected": block("rejected", rejected_lines(rejected or ())),
            "history": block("history", transcript(history or ())),
            "context": block("context", context),
            "question": block("question", as_asked(question, query)),
        }
        on_text = self._on_text(question, passages, locale) if token_sink.is_open() else None
        try:
            draft = self._draft(values, passages, on_text, locale, quality, complexity)
        except ModelFailed as error:
            degraded(WRITING, error)
            if self.quoting is None:
                return {"answers": []}
            sections = [_hit_section(document) for document in documents]
            quoted: dict[str, Any] = self.quoting.run(query=query, documents=sections, rejected=rejected)
            return {"answers": quoted["answers"]}
        return {"answers": [to_answer(draft, query, documents)]}

    def _draft(
        self,
        values: dict[str, object],
        passages: Sequence[Passage],
        on_text: OnText | None,
        locale: str,
        quality: Quality,
        complexity: Complexity,
    ) -> Draft:
        def write(temperature: float, on_text: OnText | None = None) -> Draft:
            form = fill(
                AnswerForm,
                self.models,
                self.models.prompt(WRITING, locale),
                values=values,
                step=WRITING,
                tier=tier_of(quality, complexity),
                temperature=temperature,
                on_text=on_text,
            )
            return draft_of(form, passages)

        if self.samples == 1:
            return write(self.temperature, on_text)
        # Which draft is kept is known at the end: none is shown while it is written.
        unseen = None if on_text is None else lambda _: None
        temperatures = [self.temperature, *[self.sample_temperature] * (self.samples - 1)]
        with ThreadPoolExecutor(self.samples) as pool:
            written = [pool.submit(copy_context().run, write, temperature, unseen) for temperature in temperatures]
        drafts, failures = list[Draft](), list[ModelFailed]()
        for one in written:
            try:
                drafts.append(one.result())
            except ModelFailed as error:
                failures.append(error)
        if not drafts:
            raise failures[0]
        for failure in failures:
            degraded("agreement", failure)
        if len(drafts) == 1:
            return drafts[0]
        draft, agreed = _most_agreed(drafts)
        return replace(draft, agreement=agreed)

    def _on_text(self, question: str, passages: Sequence[Passage], locale: str) -> OnText:
        """Return the callback for pieces of the reply; a call with one is cancelled when its last reader leaves."""
        rules = policy.current()
        if rules.streaming == "verified":
            return lambda _: None
        guard = AnswerGuard(Turn("", question, locale, evidence=Evidence(tuple(passages))), rules, self.guard)

        def shown(sentences: list[str]) -> Draft:
            written = tuple(SentenceForm.model_validate_json(one) for one in sentences)
            return guard.draft(
                draft_of(AnswerForm(covers="partially", sentences=written, missing=(), options=(), see=()), passages)
            )

        return _DraftStream(shown).feed


def draft_of(form: AnswerForm, passages: Sequence[Passage]) -> Draft:
    """Convert the form to a draft. Drop invalid citations and repeated sentences."""
    numbered = dict(enumerate(passages, 1))
    missing = topics(form.missing)
    options = tuple(dict.fromkeys(filter(None, map(str.strip, form.options))))
    if form.covers == "none":
        chosen = tuple(dict.fromkeys(numbered[number].chunk_id for number in form.see if number in numbered))
        to_read = chosen if chosen or not options else None
        return Draft("", (), (), missing=missing, options=options, answerability="cannot", to_read=to_read)
    claims: list[Claim] = []
    said: set[str] = set()
    listed, paragraph = False, 0
    for sentence in form.sentences:
        text = _MARK.sub("", sentence.text).strip()
        bullet = _BULLET.match(text)
        body = text[bullet.end() :].strip() if bullet else text
        # Two lists may share a step; any other repeated sentence is a mistake of the model.
        if not body or (body in said and not bullet):
            continue
        cites = tuple(dict.fromkeys(number for number in sentence.cites if number in numbered))
        apart = listed or body.endswith(":") or paragraph + len(body) > _PARAGRAPH
        gap = f"\n{bullet[1]} " if bullet else "\n\n" if apart else " "
        claims.append(Claim(body, cites, gap=gap))
        said.add(body)
        listed = bool(bullet) or body.startswith(("```", "~~~", "|"))
        paragraph = len(body) if apart else paragraph + len(body)
    draft = Draft("", (), (), missing=missing if form.covers == "partially" else ())
    return with_claims(draft, claims, numbered)


def _hit_section(document: Document) -> Document:
    """Return a document with the sentences of the section that was found only. A model reads all its sections."""
    section = document.meta.get("hit_section")
    if not section:
        return document
    spans = [span for span in to_passage(document).sentences if section["start"] <= span[0] < section["end"]]
    return with_meta(document, sentences=tuple(spans), heading=section["heading"]) if spans else document


class _DraftStream:
    """Reads a reply in JSON as it arrives and emits each complete sentence as provisional text.

    :param draft_of: makes the draft of the sentences so far, each a JSON object, as it may be shown.
    """

    def __init__(self, draft_of: Callable[[list[str]], Draft]) -> None:
        self._draft_of = draft_of
        self._reply = ""
        self._count = 0
        self._emitted = ""

    def feed(self, piece: str) -> None:
        """Take the next piece of the reply."""
        self._reply += piece
        sentences = _SENTENCE.findall(self._reply) if "}" in piece else []
        if len(sentences) <= self._count:
            return
        self._count = len(sentences)
        with suppress(ValidationError):
            text = self._draft_of(sentences).text
            if text.startswith(self._emitted):
                token_sink.emit(text[len(self._emitted) :], provisional=True)
                self._emitted = text


def _most_agreed(drafts: Sequence[Draft]) -> tuple[Draft, float]:
    """Return the draft that agrees most with the others, and its mean agreement (0..1); of equals, the first."""
    means = [
        sum(_agreement(draft, other) for other in drafts if other is not draft) / (len(drafts) - 1) for draft in drafts
    ]
    best = max(range(len(drafts)), key=means.__getitem__)
    return drafts[best], means[best]


def _agreement(draft: Draft, other: Draft) -> float:
    """Return the share (0..1) of the shorter draft's words that the longer one contains.

    0 if each names numbers or codes that the other lacks, or if only one of them answers; 1 if neither does.
    """
    text, other_text = (" ".join(claim.text for claim in one.claims) for one in (draft, other))
    facts, other_facts = ({*numbers(one), *codes(one)} for one in (text, other_text))
    if not (facts <= other_facts or other_facts <= facts):
        return 0.0
    words, other_words = set(stems(text)), set(stems(other_text))
    fewest = min(len(words), len(other_words))
    return len(words & other_words) / fewest if fewest else float(not (draft.claims or other.claims))
