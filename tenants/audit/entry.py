"""Audit entries on their way from the answer to the database."""

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Self

from tenants.knowledge.gaps import Miss

_CANONICAL = json.JSONEncoder(ensure_ascii=False, sort_keys=True, separators=(",", ":"))


@dataclass(frozen=True, slots=True)
class Entry:
    """A turn to record. All of its text is redacted already.

    :param person: a digest of tenant and subject; empty for an anonymous turn.
    :param body: the content, a JSON object with `request`, `found` (document ids) and `answer` (`turn.v1`).
    """

    tenant_id: str
    turn_id: str
    at: datetime
    outcome: str
    reason: str | None
    person: str
    session_id: str
    misses: tuple[Miss, ...]
    body: str

    def line(self) -> bytes:
        """Return one line of the spool. It has a newline at both ends, so a truncated line damages no other."""
        head = [self.tenant_id, self.turn_id, self.at.isoformat(), self.outcome, self.reason, self.person]
        misses = [[miss.reason, miss.question, miss.key, miss.stems, miss.doc_ids] for miss in self.misses]
        return f"\n{canonical([*head, self.session_id, misses])}\t{self.body}\n".encode()

    @classmethod
    def read(cls, line: bytes) -> Self:
        """Parse the entry of a line. Raises `ValueError` for a truncated line."""
        head, tab, body = line.decode().strip("\n").partition("\t")
        if not tab or not line.endswith(b"}\n"):
            raise ValueError("line cut short")
        tenant_id, turn_id, at, outcome, reason, person, session_id, misses = json.loads(head)
        parsed_misses = tuple(
            Miss(why, question, key, tuple(stems), tuple(doc_ids)) for why, question, key, stems, doc_ids in misses
        )
        when = datetime.fromisoformat(at).astimezone(UTC)
        return cls(tenant_id, turn_id, when, outcome, reason, person, session_id, parsed_misses, body)


@dataclass(frozen=True, slots=True)
class Findable:
    """The search keys of a turn.

    :param text: question and answer in lower case.
    :param documents: every document that was found, with its passages that the answer cites.
    """

    text: str
    documents: dict[str, list[str]]

    @classmethod
    def of(cls, body: str) -> Self:
        """Extract the searchable fields from the content of a turn."""
        content = json.loads(body)
        documents: dict[str, list[str]] = {doc_id: [] for doc_id in content["found"]}
        # A related document does not support the answer, so it does not count as cited.
        for citation in (cited for cited in content["answer"]["citations"] if cited.get("origin") != "related"):
            documents.setdefault(citation["doc_id"], []).append(citation["chunk_id"])
        return cls(searchable(f"{content['request']['question']}\n{content['answer']['answer']['text']}"), documents)


def searchable(text: str) -> str:
    """Normalise a text for search: lower case, ё as е."""
    return text.lower().replace("ё", "е")


def canonical(value: object) -> str:
    """Return canonical JSON: sorted keys, no spaces, no escapes for letters."""
    return _CANONICAL.encode(value)
