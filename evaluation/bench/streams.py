"""A client that reads streams of events and notes when each event came."""

import json
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException, HTTPResponse
from time import monotonic, sleep

TIMEOUT_SECONDS = 120


@dataclass(frozen=True, slots=True)
class Event:
    """One event. `at` are seconds of the machine's monotonic clock, `number` is its place in the stream as it says."""

    at: float
    number: int
    name: str
    data: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class StreamedTurn:
    """A streamed turn as its client saw it. `status` is the HTTP status; 0 when the connection broke."""

    question: str
    started_at: float
    status: int
    events: tuple[Event, ...]

    def seconds_to(self, name: str) -> float | None:
        """Seconds from the start to the first event of a name."""
        return next((event.at - self.started_at for event in self.events if event.name == name), None)

    @property
    def result(self) -> Mapping[str, object]:
        """The `turn.v1` object; empty when none came."""
        return next((event.data for event in self.events if event.name == "result"), {})

    @property
    def faults(self) -> list[str]:
        """What is wrong with the stream as such: events lost, out of order or of another turn, no end."""
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
        return faults


def stream_turn(port: int, token: str, question: str, *, until: str = "", **more: object) -> StreamedTurn:
    """Ask, and read the stream to its end.

    :param until: hang up at the first event of this name.
    :param more: what else the request holds.
    """
    connection = HTTPConnection("127.0.0.1", port, timeout=TIMEOUT_SECONDS)
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    body = json.dumps({"question": question, **more}).encode()
    started_at = monotonic()
    events: list[Event] = []
    status = 0
    try:
        connection.request("POST", "/ask/stream", body, headers)
        response = connection.getresponse()
        status = response.status
        for event in read_events(response) if status == 200 else ():
            events.append(event)
            if event.name == until:
                break
    except (HTTPException, OSError):
        status = 0
    finally:
        connection.close()
    return StreamedTurn(question, started_at, status, tuple(events))


def stream_turns(
    port: int, token: str, questions: Sequence[str], *, clients: int, apart: float = 0.0
) -> list[StreamedTurn]:
    """All questions, `clients` of them open at once.

    :param apart: seconds between the first questions of two clients.
    """

    def ask(place: int, question: str) -> StreamedTurn:
        sleep(place * apart if place < clients else 0.0)
        return stream_turn(port, token, question)

    with ThreadPoolExecutor(clients) as pool:
        return list(pool.map(ask, range(len(questions)), questions))


def open_at_once(turns: Sequence[StreamedTurn]) -> int:
    """The most streams that were open at one moment."""
    ends = [(turn.events[-1].at, -1) for turn in turns if turn.events]
    open_now = highest = 0
    for _, change in sorted([*ends, *((turn.started_at, 1) for turn in turns if turn.events)]):
        open_now += change
        highest = max(highest, open_now)
    return highest


def read_events(response: HTTPResponse) -> Iterator[Event]:
    """The events of a stream as they come."""
    fields: dict[str, str] = {}
    for raw in response:
        line = raw.decode("utf-8").rstrip("\n")
        if line:
            name, _, value = line.partition(": ")
            fields[name] = value
        elif "data" in fields:
            number = fields.get("id", "").rpartition(":")[2]
            place = int(number) if number.isdecimal() else 0
            yield Event(monotonic(), place, fields.get("event", ""), json.loads(fields["data"]))
            fields = {}
