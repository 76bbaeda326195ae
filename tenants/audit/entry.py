"""What is recorded of one turn, on its way from the answer to the database."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from typing import Self

from tenants.gaps import Miss


@dataclass(frozen=True, slots=True)
class Entry:
    """One turn to be recorded. Everything in it is redacted already.

    :param person: a digest of tenant and subject; empty for an anonymous turn.
    :param documents: every document that was found, with the cited passages of each.
    :param text: question and answer in lower case, for searching.
    :param body: the content, as canonical JSON.
    """

    tenant_id: str
    turn_id: str
    at: datetime
    outcome: str
    reason: str | None
    person: str
    session_id: str
    documents: Mapping[str, tuple[str, ...]]
    misses: tuple[Miss, ...]
    text: str
    body: str

    def line(self) -> bytes:
        """One line of the spool. Newlines are at both ends, so that a line cut short spoils no other."""
        head = {field.name: getattr(self, field.name) for field in fields(self) if field.name != "body"}
        head |= {"at": self.at.isoformat(), "misses": [asdict(miss) for miss in self.misses]}
        return f"\n{canonical(head)}\t{self.body}\n".encode()

    @classmethod
    def read(cls, line: bytes) -> Self:
        """The entry that wrote this line. Raises `ValueError` for a line cut short."""
        head, tab, body = line.decode().strip("\n").partition("\t")
        if not tab or not line.endswith(b"}\n"):
            raise ValueError("line cut short")
        given = json.loads(head)
        return cls(
            **{name: given[name] for name in ("tenant_id", "turn_id", "outcome", "reason", "person", "session_id")},
            at=datetime.fromisoformat(given["at"]).astimezone(UTC),
            documents={doc_id: tuple(chunk_ids) for doc_id, chunk_ids in given["documents"].items()},
            misses=tuple(
                Miss(**{**miss, "stems": tuple(miss["stems"]), "doc_ids": tuple(miss["doc_ids"])})
                for miss in given["misses"]
            ),
            text=given["text"],
            body=body,
        )


def canonical(value: object) -> str:
    """JSON with one spelling for one value: sorted keys, no spaces, letters as they are."""
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
