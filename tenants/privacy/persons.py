"""Inventory of personal data: each kind, how it is found, and how it is erased.

| kept | found by | what erasing does |
|---|---|---|
| audit: content of turns | digest of tenant and subject; session | content and salt deleted, the link stays |
| spool: turns on their way to the audit | the same | stored without content as they arrive |
| feedback: verdicts on answers | digest of tenant and subject; session | deleted, with all others on their turns |
| gaps: questions asked | the audit's turns | count reduced; deleted if no other turn asked |
| previews of articles: answers to questions asked | the audit's turns | deleted; the author asks again |
| tickets | subject; session | deleted |
| conversations, for a day | subject; session | deleted |
| chats with messages and files, pending webhook deliveries | subject; session, or the chat's id | deleted |
| consents | subject | deleted |
| answers kept for a repeated request | subject; session in the answer | deleted |
| streams that can be read again, for an hour | subject | deleted |
| jobs, for a week: uploader of the files | subject | the name is removed |
| metadata of issued tokens | subject | deleted; the tokens work until they are revoked or expire |
| traces in Phoenix, for 90 days | digest of tenant and subject; session | deleted |

A thumb in Phoenix is deleted with the trace of its turn; it has no name and no text.
A trace on its way to Phoenix, which takes some seconds or as long as Phoenix is down, is found by erasing again.
Counters of requests and digests of earlier searches are in memory and hold no text. Logs hold no personal text.
Copies elsewhere, such as backups, are out of reach: they have to expire, and the journal of erasures
(`tenants.privacy.erasures`) makes sure that a restore does not bring erased data back.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from functools import lru_cache

from sqlalchemy import select, union

from settings import get_settings
from tenants.access import issued_tokens
from tenants.accounts.registry import Registry
from tenants.audit import search, store
from tenants.audit.recorder import Recorder
from tenants.audit.store import TurnOwner
from tenants.chats import conversations, handoffs
from tenants.core import context
from tenants.core.context import Tenant, acting_as
from tenants.core.errors import Invalid
from tenants.desk import feedback
from tenants.insight import traces
from tenants.privacy import chat_people as chats
from tenants.privacy import erasures
from tenants.privacy.erasures import Erasure
from tenants.storage import database
from tenants.tables import Base
from tenants.work import idempotency, jobs, stream_log
from tenants.work.jobs import Job

_MAX_ROWS = 1_000_000
"""Turns exported at most: more than one person asks in 13 months."""


@dataclass(frozen=True, slots=True)
class ErasureReport:
    """Number of erased items by kind."""

    turns: int
    feedback: int
    conversations: int
    chats: int
    tickets: int
    answers: int
    jobs: int
    traces: int


@dataclass(frozen=True, slots=True)
class Person:
    """A person of the tenant in context: by `subject` (as in the token), by session, or one session of a subject.

    Raises `Invalid` with the code `person_missing` if neither is given.
    """

    subject: str | None = None
    session_id: str | None = None

    def __post_init__(self) -> None:
        if not self.subject and not self.session_id:
            raise Invalid("person_missing")

    @property
    def owner(self) -> TurnOwner:
        """Return the person as the audit knows them."""
        person = digest(context.current().tenant_id, self.subject) if self.subject else ""
        return TurnOwner(person, self.session_id or "")


@lru_cache(maxsize=4_096)
def digest(tenant_id: str, subject: str) -> str:
    """Return the pseudonym of a person in the audit: the same in all turns, and not the name."""
    return Tenant(tenant_id, subject).key("person")


def export(person: Person) -> Mapping[str, list[object]]:
    """Return all data about a person, by kind."""
    owner = person.owner
    query = search.TurnQuery(person=owner.person or None, session_id=owner.session_id or None)
    remembered = conversations.of_person(person.subject, person.session_id)
    tickets = handoffs.of_person(person.subject, person.session_id)
    return {
        "turns": [dict(turn.content or {}) for turn in search.find(query, limit=_MAX_ROWS)],
        "feedback": [
            asdict(verdict) | {"at": verdict.at.isoformat()}
            for verdict in feedback.of_person(owner.person, owner.session_id)
        ],
        "conversations": [
            asdict(conversation) | {"updated_at": conversation.updated_at.isoformat()} for conversation in remembered
        ],
        "chats": chats.export(person.subject, person.session_id),
        "consents": chats.consents(person.subject, person.session_id),
        "tickets": [asdict(ticket) | {"created_at": ticket.created_at.isoformat()} for ticket in tickets],
        "answers": list(idempotency.of_person(person.subject, person.session_id)),
        "jobs": [
            {"job_id": job.job_id, "created_at": job.created_at.isoformat()}
            for job in _jobs(person.subject, person.session_id)
        ],
        "tokens": [
            {"token_id": token.token_id, "issued_at": token.issued_at.isoformat()}
            for token in (issued_tokens.of_person(person.subject) if person.subject and not person.session_id else ())
        ],
        "traces": list(traces.of_person(owner.person, owner.session_id)),
    }


def erase(person: Person) -> ErasureReport:
    """Erase all data about a person, including records on their way to the audit.

    Raises `TryAgain` when Phoenix does not answer: all but the traces is erased then.
    """
    owner = person.owner
    erasures.note(context.current().tenant_id, person=owner.person, session_id=owner.session_id)
    report = _erase(owner, person.subject, person.session_id)
    return replace(report, traces=traces.erase(owner.person, owner.session_id))


def erase_again(erasure: Erasure) -> None:
    """Repeat an erasure of a tenant that is newer than the restored backup; the traces are gone already."""
    if not Registry().exists(erasure.tenant_id):
        return
    with acting_as(Tenant(erasure.tenant_id, "restore")):
        owner = TurnOwner(erasure.person, erasure.session_id)
        erasures.note(erasure.tenant_id, person=owner.person, session_id=owner.session_id)
        # The journal knows people by their digest alone.
        known = [one for one in subjects() if digest(erasure.tenant_id, one) == owner.person] if owner.person else []
        nobody: list[str | None] = ["" if owner.person else None]
        for subject in known or nobody:
            _erase(owner, subject, owner.session_id or None)


def subjects() -> tuple[str, ...]:
    """Return the subjects that the records of the tenant in context name."""
    named = [mapper for mapper in Base.registry.mappers if {"tenant_id", "subject"} <= set(mapper.columns.keys())]
    theirs = (select(mapper.attrs["subject"].class_attribute) for mapper in named)
    with database.reading() as session:
        return tuple(session.scalars(union(*theirs)))


def _erase(owner: TurnOwner, subject: str | None, session_id: str | None) -> ErasureReport:
    settings, tenant_id = get_settings(), context.current().tenant_id
    if subject:
        # First, because it is refused while Redis is away.
        stream_log.erase([subject])
    recorder = Recorder(settings)
    recorder.collect()
    thumbs = feedback.of_person(owner.person, owner.session_id)
    feedback.erase(owner.person, owner.session_id)
    turns = store.erase(owner, settings)
    quarantined = recorder.spool.erase_quarantined(lambda entry: entry.tenant_id == tenant_id and owner.covers(entry))
    remembered = conversations.of_person(subject, session_id)
    conversations.erase(subject, session_id)
    chatted = chats.of_person(subject, session_id)
    chats.erase(subject, session_id)
    tickets = handoffs.of_person(subject, session_id)
    handoffs.erase(subject, session_id)
    answers = idempotency.of_person(subject, session_id)
    idempotency.erase(subject, session_id)
    person_jobs = _jobs(subject, session_id)
    if person_jobs:
        jobs.disown(person_jobs[0].subject)
    if subject and not session_id:
        issued_tokens.forget(subject)
    database.scrub(settings)
    return ErasureReport(
        turns=len(turns) + quarantined,
        feedback=len(thumbs),
        conversations=len(remembered),
        chats=len(chatted),
        tickets=len(tickets),
        answers=len(answers),
        jobs=len(person_jobs),
        traces=0,
    )


def _jobs(subject: str | None, session_id: str | None) -> tuple[Job, ...]:
    """Return the person's jobs. A job belongs to no session."""
    return jobs.of_person(subject) if subject and not session_id else ()
