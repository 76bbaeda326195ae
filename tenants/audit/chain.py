"""The hash chain: building links and detecting tampering."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from hashlib import sha256
from typing import Literal, TypeAlias

from tenants.audit.entry import canonical

GENESIS = "0" * 64
"""The hash that the first link has as its predecessor."""

Kind: TypeAlias = Literal["turn", "erasure", "pruning", "article"]
FaultKind: TypeAlias = Literal[
    "changed", "missing", "moved", "content_changed", "content_missing", "cut_off", "foreign", "unreadable"
]


@dataclass(frozen=True, slots=True)
class Content:
    """Content covered by a link's digest. `body` is JSON text; all four fields are empty after erasure."""

    person: str
    session_id: str
    salt: str
    body: str

    @property
    def digest(self) -> str:
        """Return the SHA-256 (hex) of the salt and the content."""
        return sha256(canonical([self.salt, self.person, self.session_id, self.body]).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Link:
    """A link as stored, with its content unless that was erased.

    :param note: JSON text. Erasure: `{"sequences": [...]}`; pruning: the last pruned `Head`; publication or withdrawal
        of an article: its document, version and author.
    """

    tenant_id: str
    sequence: int
    kind: str
    at: datetime
    turn_id: str | None
    outcome: str | None
    reason: str | None
    note: str | None
    digest: str | None
    previous: str
    hash: str = ""
    content: Content | None = None

    def computed(self) -> str:
        """Return the hash of these fields: SHA-256 (hex) over canonical JSON."""
        covered = {name: getattr(self, name) for name in _COVERED} | {"at": self.at.isoformat()}
        return sha256(canonical(covered).encode()).hexdigest()


_COVERED = {field.name for field in fields(Link)} - {"hash", "content"}


@dataclass(frozen=True, slots=True)
class Head:
    """The newest link of a chain: save it elsewhere to check the chain against it later."""

    sequence: int
    hash: str


@dataclass(frozen=True, slots=True)
class Fault:
    """A defect of a chain, and its position."""

    kind: FaultKind
    sequence: int
    turn_id: str | None = None


@dataclass(frozen=True, slots=True)
class Verification:
    """Result of checking a chain. `erased` counts missing contents whose erasure is recorded."""

    links: int
    erased: int
    head: Head
    faults: tuple[Fault, ...]


class ChainVerifier:
    """Checks links in order of sequence. Pass all of them to `feed`, then read `result`.

    :param anchors: heads that were saved earlier; they must be links of this chain, unless pruned since.
    """

    def __init__(self, tenant_id: str, anchors: Sequence[Head]) -> None:
        self._tenant_id = tenant_id
        self._anchors = anchors
        self._first: Link | None = None
        self._last = Head(0, GENESIS)
        self._links = 0
        self._empty: dict[int, str | None] = {}
        self._erased: set[int] = set()
        self._pruned: set[Head] = set()
        self._faults: list[Fault] = []

    def feed(self, links: Iterable[Link]) -> None:
        """Check the next links."""
        for link in links:
            self._check_position(link)
            self._check_content(link)
            self._links += 1
            self._last = Head(link.sequence, link.hash)

    def result(self) -> Verification:
        """Return the findings, once all links have been fed."""
        first = self._first
        if first is not None and first.sequence > 1 and Head(first.sequence - 1, first.previous) not in self._pruned:
            self._fault("missing", first.sequence - 1)
        unexplained = self._empty.keys() - self._erased
        for number in unexplained:
            self._fault("content_missing", number, self._empty[number])
        for anchor in self._anchors:
            if anchor.sequence > self._last.sequence or (not anchor.sequence and self._links):
                self._fault("cut_off", anchor.sequence)
        faults = tuple(sorted(set(self._faults), key=lambda fault: (fault.sequence, fault.kind)))
        return Verification(self._links, len(self._empty) - len(unexplained), self._last, faults)

    def _check_position(self, link: Link) -> None:
        if link.tenant_id != self._tenant_id:
            self._fault("foreign", link.sequence, link.turn_id)
        if self._first is None:
            self._first = link
            if link.sequence == 1 and link.previous != GENESIS:
                self._fault("moved", 1, link.turn_id)
        elif link.sequence != self._last.sequence + 1:
            self._fault("missing", self._last.sequence + 1)
        elif link.previous != self._last.hash:
            self._fault("moved", link.sequence, link.turn_id)
        if link.computed() != link.hash or any(
            link.sequence == anchor.sequence and link.hash != anchor.hash for anchor in self._anchors
        ):
            self._fault("changed", link.sequence, link.turn_id)

    def _check_content(self, link: Link) -> None:
        if link.kind == "turn" and link.content is None:
            self._empty[link.sequence] = link.turn_id
        elif link.content is not None and link.content.digest != link.digest:
            self._fault("content_changed", link.sequence, link.turn_id)
        try:
            if link.kind == "erasure":
                self._erased.update(json.loads(link.note or "")["sequences"])
            elif link.kind == "pruning":
                self._pruned.add(Head(**json.loads(link.note or "")))
        except (ValueError, TypeError, KeyError):
            self._fault("unreadable", link.sequence)

    def _fault(self, kind: FaultKind, sequence: int, turn_id: str | None = None) -> None:
        self._faults.append(Fault(kind, sequence, turn_id))
