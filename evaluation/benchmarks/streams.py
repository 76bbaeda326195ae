"""Client that reads streams of turns and notes the arrival of each event."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from http.client import HTTPException
from time import monotonic, sleep
from typing import Any

from components.turn import SHOWN
from evaluation.asking import concurrently
from evaluation.benchmarks.load import Client


@dataclass(frozen=True, slots=True)
class Event:
    """An event. `at` is in seconds of the monotonic clock; `event_id` is the turn and the position in its stream."""

    at: float
    event_id: str
    name: str
    data: Mapping[str, Any]

    @property
    def number(self) -> int:
        number = self.event_id.rpartition(":")[2]
        return int(number) if number.isdecimal() else 0


@dataclass(frozen=True, slots=True)
class StreamedTurn:
    """A streamed turn as seen by its client. `status` is the HTTP status; 0 if the connection broke."""

    question: str
    started_at: float
    status: int
    events: tuple[Event, ...]

    def seconds_to(self, name: str) -> float | None:
        return next((event.at - self.started_at for event in self.events if event.name == name), None)

    @property
    def result(self) -> Mapping[str, object]:
        return next((event.data for event in self.events if event.name == "result"), {})

    @property
    def text(self) -> str:
        """Return the text that the visitor sees at the end: the tokens, as replaced and retracted by later events."""
        text = ""
        for event in self.events:
            if event.name == "token":
                text += str(event.data["text"])
            elif event.name == "revise":
                text = str(event.data["text"])
            elif event.name == "retract" and event.data["what"] == "answer":
                text = ""
        return text

    @property
    def result_text(self) -> str:
        """Return the text of the result; empty if it is no answer, because then it is not streamed."""
        answer = self.result.get("answer")
        return str(answer["text"]) if isinstance(answer, dict) and self.result["outcome"] in SHOWN else ""

    @property
    def faults(self) -> list[str]:
        """Return the faults of the stream: events lost, out of order or of another turn, no end, another text."""
        if not self.events:
            return [f"no event, status {self.status}"]
        faults = []
        if [event.number for event in self.events] != list(range(1, len(self.events) + 1)):
            faults.append("event numbers are not 1, 2, 3, …")
        if len({event.data.get("turn_id") for event in self.events}) != 1:
            faults.append("events of several turns")
        names = [event.name for event in self.events]
        if names[0] != "accepted" or names[-1] not in ("done", "error"):
            faults.append(f"it goes from {names[0]} to {names[-1]}")
        if names[-1] == "done" and names.count("result") != 1:
            faults.append("not one result")
        if self.text != self.result_text:
            faults.append("tokens and result differ")
        return faults


def stream_turn(port: int, token: str, question: str, *, until: str = "") -> StreamedTurn:
    """Ask, and read the stream to its end.

    :param until: hang up at the first event of this name.
    """
    started_at = monotonic()
    events: list[Event] = []
    status = 0
    try:
        with closing(Client(port, token)) as client:
            response = client.send("POST", "/ask/stream", {"question": question})
            status = response.status
            for event in read_events(response) if status == 200 else ():
                events.append(event)
                if event.name == until:
                    break
    except (HTTPException, OSError):
        status = 0
    return StreamedTurn(question, started_at, status, tuple(events))


def stream_turns(
    port: int, token: str, questions: Sequence[str], *, clients: int, apart: float = 0.0
) -> list[StreamedTurn]:
    """Stream all questions, with `clients` of them open at once.

    :param apart: seconds between the first questions of two clients.
    """

    def ask(place: int) -> StreamedTurn:
        sleep(place * apart if place < clients else 0.0)
        return stream_turn(port, token, questions[place])

    return concurrently(ask, range(len(questions)), clients)


def open_at_once(turns: Sequence[StreamedTurn]) -> int:
    ends = [(turn.events[-1].at, -1) for turn in turns if turn.events]
    open_now = highest = 0
    for _, change in sorted([*ends, *((turn.started_at, 1) for turn in turns if turn.events)]):
        open_now += change
        highest = max(highest, open_now)
    return highest


def read_events(lines: Iterable[bytes | str]) -> Iterator[Event]:
    fields: dict[str, str] = {}
    for raw in lines:
        line = (raw.decode("utf-8") if isinstance(raw, bytes) else raw).rstrip("\n")
        if line:
            name, _, value = line.partition(": ")
            fields[name] = value
        elif "data" in fields and fields["data"] != "[DONE]":
            yield Event(monotonic(), fields.get("id", ""), fields.get("event", ""), json.loads(fields["data"]))
            fields = {}
