"""Short constructors of audit entries."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime

from tenants.audit.entry import Entry, canonical
from tenants.knowledge.gaps import Miss

AT = datetime(2024, 11, 1, 12, tzinfo=UTC)


def entry(
    turn_id: str,
    *,
    tenant_id: str = "acme",
    at: datetime = AT,
    outcome: str = "answered",
    reason: str | None = None,
    person: str = "p",
    session_id: str = "s",
    question: str = "Вопрос?",
    text: str = "Ответ.",
    cited: Mapping[str, Iterable[str]] | None = None,
    found: Iterable[str] = (),
    misses: Iterable[Miss] = (),
) -> Entry:
    """Return a recorded turn. `cited` maps documents to their cited passages; `found` are other retrieved ones."""
    cited = cited or {}
    citations = [
        {"doc_id": doc_id, "chunk_id": chunk_id, "cited": True}
        for doc_id, chunk_ids in cited.items()
        for chunk_id in chunk_ids
    ]
    body = {
        "answer": {"outcome": outcome, "refusal_reason": reason, "answer": {"text": text}, "citations": citations},
        "found": [*cited, *found],
        "history": [],
        "request": {"question": question},
    }
    return Entry(tenant_id, turn_id, at, outcome, reason, person, session_id, tuple(misses), canonical(body))


def miss(question: str, *stems: str, reason: str = "no_relevant_context", doc_ids: tuple[str, ...] = ()) -> Miss:
    """Return an unanswered question; its normal form is its stems, by default the words of the question."""
    about = stems or tuple(question.lower().split())
    return Miss(reason, question, " ".join(about), tuple(sorted(about)), doc_ids)
