"""The events of a streamed turn, in order: the same facts as the `turn.v1` object, as they become certain.

`accepted` · after the relevance gate, `stage`s, `sources-early`, a `rag_iteration` after each pass · `token`s of an
answer that is being written, each sentence once it is checked · `notice`, shown above the answer · the remaining
`token`s; all of them joined are the answer's text · `claim`s · `verdict` · `suggestions` · `result`, the object itself
· `done`. A turn that is refused has `accepted`, `result` and `done` alone. `revise` gives the text that replaces all
tokens so far, when the answer as a whole ended up otherwise; `retract` takes back the answer, or the early sources,
if nothing replaces them. `error` ends a stream that has no result.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from textwrap import shorten
from typing import Literal, TypeAlias, get_args

from haystack import Document

from components.decide.answer_guard import shown_link
from components.language.texts import text
from components.passages import to_passage
from components.turn import SHOWN
from pipelines.ask import help_links
from pipelines.ask.contract import IterationPart, TurnAnswer
from pipelines.ask.iterations import Passes
from pipelines.ask.steps import Step
from tenants.accounts import policy

TurnEventName: TypeAlias = Literal[
    "accepted",
    "stage",
    "rag_iteration",
    "sources-early",
    "notice",
    "token",
    "claim",
    "revise",
    "retract",
    "verdict",
    "suggestions",
    "result",
    "done",
    "error",
]
NAMES: Mapping[str, TurnEventName] = {name: name for name in get_args(TurnEventName)}
LAST: frozenset[TurnEventName] = frozenset({"done", "error"})

_EARLY_CITATIONS = 5
_SNIPPET = 240
_SENTENCE = re.compile(r".+?(?:\[\d+\]\s*|\n+|\Z)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Event:
    """A stream event. `number` counts from 1 within a stream."""

    number: int
    name: TurnEventName
    data: Mapping[str, object]


NamedEvent: TypeAlias = tuple[TurnEventName, Mapping[str, object]]


class Narrator:
    """Turns the steps of a running turn into events. Called in the threads of the steps.

    No events are sent before the relevance gate, so that a refusal has only its result. Only the first answer is
    streamed while it is being written: if a later pass writes another one, that replaces the first at the end.
    """

    def __init__(self) -> None:
        self.sources_sent = False
        self.text = ""
        self._pass = 1
        self._text_pass = 0
        self._passes = Passes()
        self._buffered: list[NamedEvent] = []

    def piece(self, text: str, *, provisional: bool) -> Iterator[NamedEvent]:
        if not self.sources_sent or (self.text and self._text_pass != self._pass):
            return
        self._text_pass = self._pass
        self.text += text
        yield "token", {"text": text, "provisional": provisional}

    def step(self, step: Step) -> Iterator[NamedEvent]:
        outputs = step.outputs or {}
        self._pass = outputs.get("attempt", self._pass)
        events: list[NamedEvent] = [("stage", {"node": step.name, "iteration": self._pass})]
        if (ended := self._passes.add(step)) is not None:
            events.append(("rag_iteration", _iteration(ended)))
        if self.sources_sent:
            yield from events
            return
        self._buffered += events
        if "enough" in outputs:
            self.sources_sent = True
            yield from self._buffered
            yield "sources-early", {"citations": _early_citations(outputs["enough"]), "provisional": True}

    def end(self, answer: TurnAnswer) -> Iterator[NamedEvent]:
        if answer.outcome in SHOWN:
            if answer.answer.notice:
                yield "notice", {"text": answer.answer.notice}
            yield from self._remaining_text(answer)
            for index, claim in enumerate(answer.claims, 1):
                yield "claim", {"index": index, "status": claim.status}
            yield "verdict", answer.verdict.model_dump(mode="json")
            if answer.suggested_questions:
                yield "suggestions", {"questions": list(answer.suggested_questions)}
        else:
            if self.text:
                yield "retract", {"what": "answer", "notice": text("outcomes.notice.retracted", answer.locale)}
            if self.sources_sent:
                yield "retract", {"what": "sources"}
        yield "result", answer.model_dump(mode="json")

    def _remaining_text(self, answer: TurnAnswer) -> Iterator[NamedEvent]:
        """Yield the events that complete or replace the text sent so far."""
        final = answer.answer.text
        if final.startswith(self.text):
            for piece in _SENTENCE.findall(final[len(self.text) :]):
                yield "token", {"text": piece, "provisional": False}
        else:
            yield "revise", {"text": final, "notice": text("outcomes.notice.revised", answer.locale)}


def _iteration(part: IterationPart) -> dict[str, object]:
    """Return the figures of a pass; its time is called `tookMs`, as clients of such streams know it."""
    figures = part.model_dump(mode="json")
    retriever = figures["retriever"]
    retriever["tookMs"] = retriever.pop("took_ms")
    return {"tookMs": figures.pop("took_ms"), **figures}


def _early_citations(documents: Sequence[Document]) -> list[dict[str, object]]:
    rules, links = policy.current(), help_links.of_caller()
    return [
        {
            "index": index,
            "doc_id": passage.doc_id,
            "chunk_id": passage.chunk_id,
            "title": passage.title,
            "heading": passage.heading,
            "snippet": shorten(passage.text, _SNIPPET, placeholder="…"),
            "url": shown_link(passage.url, rules) or (links.to(passage) if links else None),
            "score": round(passage.score, 4),
        }
        for index, passage in enumerate(map(to_passage, documents[:_EARLY_CITATIONS]), 1)
    ]
