"""Presence and typing in chats: kept in memory only, and only while it is repeated.

Every process repeats that a person is present. Without a repeat they expire, for example when a process is killed. A
new reader sends a roll call, so that it does not have to wait for the next repeat.

Threat: hundreds of streams of one chat, each sending a roll call and answering all others. A process therefore
announces a person once for all their streams, at most once a second, and so it does with typing.
"""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from secrets import token_hex
from time import monotonic
from typing import Literal, TypeAlias

from tenants.chats import fanout
from tenants.chats.fanout import Announcement
from tenants.core import context
from tenants.storage import bus

Who: TypeAlias = Literal["customer", "operator"]
SignalKind: TypeAlias = Literal["typing", "presence"]

TYPING_SECONDS = 8.0
"""Lifetime of a typing signal; widgets repeat it every three seconds."""
REPEAT_SECONDS = 15.0
PRESENT_SECONDS = 40.0
"""More than two repeats, so that a person does not disappear when one repeat is late or lost."""
ROLL_SECONDS = 1.0
"""The shortest time between two announcements of one person by one process."""
_EXPIRE_SECONDS = 4.0


@dataclass(frozen=True, slots=True)
class Signal:
    """Start or end of a person's typing or presence."""

    kind: SignalKind
    who: str
    subject: str
    name: str
    active: bool


class Attendance:
    """Presence in a chat, derived from announcements for one reader.

    :param reader: `who` and subject of the reader, who is not shown to themselves.
    """

    def __init__(self, reader: tuple[str, str], clock: Callable[[], float] = monotonic) -> None:
        self._reader = reader
        self._clock = clock
        self._streams: dict[tuple[str, str, str], float] = {}
        self._typing: dict[tuple[str, str], float] = {}
        self._names: dict[tuple[str, str], str] = {}
        self._present: tuple[tuple[str, str], ...] = ()

    def take(self, signal: Announcement) -> Iterator[Signal]:
        person = signal.who, signal.subject
        if person == self._reader:
            return
        now = self._clock()
        if signal.name:
            self._names[person] = signal.name
        if signal.kind == "typing":
            was_typing = person in self._typing
            if signal.active:
                self._typing[person] = now + TYPING_SECONDS
            else:
                self._typing.pop(person, None)
            # Repeat the signal while typing continues, because readers expire it too.
            if signal.active or was_typing:
                yield self._signal("typing", person, active=signal.active)
        elif signal.kind in ("presence", "roll_call"):
            stream = *person, signal.stream
            if signal.active:
                self._streams[stream] = now + PRESENT_SECONDS
            else:
                self._streams.pop(stream, None)
            yield from self.expire()

    def expire(self) -> Iterator[Signal]:
        now = self._clock()
        self._streams = {stream: until for stream, until in self._streams.items() if until > now}
        present = tuple(dict.fromkeys((who, subject) for who, subject, _ in self._streams))
        gone = [person for person in self._present if person not in present]
        for person in [person for person, until in self._typing.items() if until <= now or person in gone]:
            del self._typing[person]
            yield self._signal("typing", person, active=False)
        came = [person for person in present if person not in self._present]
        self._present = present
        for person in gone:
            yield self._signal("presence", person, active=False)
        for person in came:
            yield self._signal("presence", person, active=True)

    @property
    def present(self) -> tuple[Signal, ...]:
        return tuple(self._signal("presence", person, active=True) for person in self._present)

    @property
    def is_empty(self) -> bool:
        return not self._streams and not self._typing

    def _signal(self, kind: SignalKind, person: tuple[str, str], *, active: bool) -> Signal:
        return Signal(kind, *person, self._names.get(person, ""), active)


class Attendances:
    """Presence in all chats of a tenant for one reader, as `(chat_id, signal)`."""

    def __init__(self, reader: tuple[str, str]) -> None:
        self._reader = reader
        self._chats: dict[str, Attendance] = {}
        self._expired_at = monotonic()

    def take(self, announcements: Iterable[Announcement]) -> Iterator[tuple[str, Signal]]:
        """Apply announcements and yield the changes. Call it every few seconds even without announcements."""
        for one in announcements:
            attendance = self._chats.setdefault(one.chat_id, Attendance(self._reader, monotonic))
            yield from ((one.chat_id, signal) for signal in attendance.take(one))
        # Announcements of all chats arrive here, so do not check every chat for each of them.
        if monotonic() - self._expired_at < _EXPIRE_SECONDS:
            return
        self._expired_at = monotonic()
        for chat_id, attendance in list(self._chats.items()):
            yield from ((chat_id, signal) for signal in attendance.expire())
            if attendance.is_empty:
                del self._chats[chat_id]


@dataclass(slots=True)
class _Person:
    """A person at a chat through this process. Belongs to the event loop."""

    here: Announcement
    clock: Callable[[], float]
    streams: int = 0
    announced_at: float = float("-inf")
    calls_roll: bool = False
    later: asyncio.TimerHandle | None = field(default=None, repr=False)

    def announce(self, *, calls_roll: bool = False) -> None:
        """Announce whether the person is there, as soon as `ROLL_SECONDS` permit."""
        self.calls_roll = self.calls_roll or calls_roll
        wait = self.announced_at + ROLL_SECONDS - self.clock()
        if self.later is None and wait <= 0:
            self._send()
        elif self.later is None:
            self.later = asyncio.get_running_loop().call_later(wait, self._send)

    def _send(self) -> None:
        self.later, self.announced_at = None, self.clock()
        active = self.streams > 0
        announce_soon(replace(self.here, kind="roll_call" if active and self.calls_roll else "presence", active=active))
        self.calls_roll = False
        if not active:
            # Who comes back at once is announced no sooner.
            asyncio.get_running_loop().call_later(ROLL_SECONDS, self._forget)

    def _forget(self) -> None:
        if not self.streams and self.later is None:
            _PEOPLE.pop(_key(self.here), None)


_PEOPLE: dict[tuple[str, str, str, str], _Person] = {}


_TYPING: dict[tuple[str, str, str, str], Announcement] = {}
"""The latest notice of each person whose typing was announced a moment ago."""


def _key(here: Announcement) -> tuple[str, str, str, str]:
    return here.tenant_id, here.chat_id, here.who, here.subject


class Presence:
    """A reader of a chat of the caller's: shows itself to the others, and learns of them.

    :param name: how customers know an operator.
    """

    def __init__(self, chat_id: str, who: Who, name: str = "", clock: Callable[[], float] = monotonic) -> None:
        caller = context.current()
        self._here = Announcement(
            caller.tenant_id, chat_id, "presence", who, name, subject=caller.subject, stream=token_hex(8)
        )
        self._attendance = Attendance((who, caller.subject), clock)
        self._clock = clock
        self._person: _Person | None = None

    def arrive(self) -> None:
        """Show the reader, and have the others show themselves."""
        self._person = _PEOPLE.setdefault(_key(self._here), _Person(self._here, self._clock))
        self._person.streams += 1
        self._person.announce(calls_roll=True)

    def leave(self) -> None:
        """Mark the reader as gone. Called when its stream ends, for any reason."""
        if self._person is not None:
            self._person.streams -= 1
            if not self._person.streams:
                self._person.announce()
            self._person = None

    def take(self, announcements: Iterable[Announcement]) -> Iterator[Signal]:
        """Apply announcements and yield changes of others. Call it every few seconds even without announcements."""
        person = self._person
        for one in announcements:
            if person is not None and one.kind == "roll_call" and one.stream != person.here.stream:
                person.announce()
            yield from self._attendance.take(one)
        yield from self._attendance.expire()
        if person is not None and self._clock() - person.announced_at >= REPEAT_SECONDS:
            person.announce()

    @property
    def others(self) -> tuple[Signal, ...]:
        return self._attendance.present


def typing(chat_id: str, who: Who, name: str = "", *, active: bool) -> None:
    """Announce to all readers of a chat that the caller is typing in it, or has stopped."""
    caller = context.current()
    _announce_typing(Announcement(caller.tenant_id, chat_id, "typing", who, name, active, subject=caller.subject))


def _announce_typing(latest: Announcement) -> None:
    """Announce at once; within `ROLL_SECONDS` of that, only note the latest state of the same person in the chat."""
    is_soon = _key(latest) in _TYPING
    _TYPING[_key(latest)] = latest
    if not is_soon:
        announce_soon(latest)
        asyncio.get_running_loop().call_later(ROLL_SECONDS, _announce_change, latest)


def _announce_change(announced: Announcement) -> None:
    latest = _TYPING.pop(_key(announced))
    if latest.active != announced.active:
        _announce_typing(latest)


def announce_soon(announcement: Announcement) -> None:
    """Announce without waiting for it; called on the event loop."""
    if not bus.is_shared():
        fanout.announce(announcement)
    else:
        asyncio.get_running_loop().run_in_executor(None, fanout.announce, announcement)


def for_customers(signal: Signal) -> Mapping[str, object]:
    """Return a signal as customers see it: without what operators are called among themselves."""
    return {"who": signal.who, "name": signal.name, "active": signal.active}
