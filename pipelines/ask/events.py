"""What a stream tells of a turn, in order: the same facts as the `turn.v1` object, as they become certain.

`accepted` · then, once the relevance gate is passed, `stage`s and `sources-early` · `notice` · `token`s, which joined
are the answer's text · `claim`s · `verdict` · `suggestions` · `result`, the object itself · `done`. A turn that is
refused has `accepted`, `result` and `done` alone. `retract` takes the early sources back when no answer came of them.
`error` ends a stream that has no result.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from components.decide.answer_guard import shown_link
from components.turn import Turn
from pipelines.ask.contract import SHOWN, TurnAnswer
from tenants import policy

EventName: TypeAlias = Literal[
    "accepted",
    "stage",
    "sources-early",
    "notice",
    "token",
    "claim",
    "retract",
    "verdict",
    "suggestions",
    "result",
    "done",
    "error",
]
LAST: frozenset[EventName] = frozenset({"done", "error"})

_EARLY = 5
_SENTENCE = re.compile(r".+?(?:\[\d+\]\s*|\n+|\Z)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Event:
    """One event. `number` counts from 1 within a stream."""

    number: int
    name: EventName
    data: Mapping[str, object]


Told: TypeAlias = tuple[EventName, Mapping[str, object]]


class Narrator:
    """Tells a turn's steps while it runs. Called in the turn's thread.

    Nothing is told before the relevance gate is passed, so that a refusal is known by what it does not say.
    """

    def __init__(self) -> None:
        self.sources_told = False
        self._held: list[Told] = []

    def step(self, name: str, turn: Turn) -> Iterator[Told]:
        """What is to be told after this step."""
        stage: Told = ("stage", {"node": name, "iteration": turn.passes})
        if self.sources_told:
            yield stage
            return
        self._held.append(stage)
        if any(gate.name == "relevance" and gate.passed for gate in turn.verdict.gates):
            self.sources_told = True
            yield from self._held
            yield "sources-early", {"citations": _early(turn), "provisional": True}

    def end(self, answer: TurnAnswer) -> Iterator[Told]:
        """What is to be told once the answer stands, up to `result`."""
        if answer.outcome in SHOWN:
            if answer.answer.notice:
                yield "notice", {"text": answer.answer.notice}
            for piece in _SENTENCE.findall(answer.answer.text):
                yield "token", {"text": piece, "provisional": False}
            for index, claim in enumerate(answer.claims, 1):
                yield "claim", {"index": index, "status": claim.status}
            yield "verdict", answer.verdict.model_dump(mode="json")
            if answer.suggested_questions:
                yield "suggestions", {"questions": list(answer.suggested_questions)}
        elif self.sources_told:
            yield "retract", {"what": "sources"}
        yield "result", answer.model_dump(mode="json")


def _early(turn: Turn) -> list[dict[str, object]]:
    """The passages that an answer may come to stand on, best first."""
    rules = policy.current()
    return [
        {
            "index": index,
            "doc_id": passage.doc_id,
            "chunk_id": passage.chunk_id,
            "title": passage.title,
            "heading": passage.heading,
            "url": shown_link(passage.url, rules),
            "score": round(passage.score, 4),
        }
        for index, passage in enumerate(turn.evidence.usable()[:_EARLY], 1)
    ]
