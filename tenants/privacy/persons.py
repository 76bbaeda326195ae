"""Inventory of personal data: each kind, how it is found, and how it is erased.

| kept | found by | what erasing does |
|---|---|---|
| audit: content of turns | digest of tenant and subject; session | content and salt deleted, the link stays |
| spool: turns on their way to the audit | the same | stored without content as they arrive |
| feedback: verdicts on answers | digest of tenant and subject; session | deleted, with all others on their turns |
| gaps: questions asked | the audit's turns | count reduced; deleted if no other turn asked |
| these questions in drafts of articles | the audit's turns | removed unless published |
| previews of articles: answers to questions asked | the audit's turns | deleted; the author asks again |
| tickets | subject; session | deleted |
| conversations, for a day | subject; session | deleted |
| chats with messages and files, pending webhook deliveries | subject; session, or the chat's id | deleted |
| articles written from these chats | the chat | deleted unless published |
| consents | subject | deleted |
| answers kept for a repeated request | subject; session in the answer | deleted |
| streams that can be read again, for an hour | subject | deleted |
| jobs, for a week: uploader of the files | subject | the name is removed |
| metadata of issued tokens | subject | deleted; the tokens work until they are revoked or expire |
| changes of tokens that name the person | subject | the name is removed |
| traces in Phoenix, for 90 days | digest of tenant and subject; session | deleted |

A thumb in Phoenix is deleted with the trace of its turn; it has no name and no text.
A trace that waits for Phoenix is not sent any more. Erasing again finds a trace that Phoenix was storing at the moment;
after an erasure at one site, it has to name the chat as the session.
Counters of requests and digests of earlier searches are in memory and hold no text. Logs hold no personal text.
Copies elsewhere, such as backups, are out of reach: they have to expire, and the journal of erasures
(`tenants.privacy.erasures`) makes sure that a restore does not bring erased data back.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from pydantic_core import to_jsonable_python
from sqlalchemy import ColumnElement, false, inspect, select, union, update

from settings import get_settings
from tenants.access.tables import TokenRow
from tenants.accounts import settings_history
from tenants.accounts.registry import Registry
from tenants.all_tables import Base
from tenants.audit import search, store
from tenants.audit.recorder import Recorder
from tenants.audit.store import TurnOwner
from tenants.chats import sites
from tenants.chats.tables import ConsentRow, ConversationRow, TicketRow
from tenants.chats.tickets import Ticket
from tenants.chats.visitors import IDENTIFIED
from tenants.core import context
from tenants.core.context import Tenant, acting_as
from tenants.core.errors import Invalid
from tenants.desk.feedback import Feedback
from tenants.desk.tables import FeedbackRow
from tenants.insight import traces
from tenants.privacy import chat_people as chats
from tenants.privacy import erasures
from tenants.privacy.erasures import Erasure
from tenants.storage import database
from tenants.storage.mapping import names_of
from tenants.work import idempotency, stream_log
from tenants.work.tables import JobRow

_MAX_ROWS = 1_000_000
"""Turns exported at most: more than one person asks in 13 months."""
EVERY_SITE = "*"
_CONSENT = ("site", "text", "address", "withdrawn_at", "at")


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

    :param site: the person of this site alone, with their chats and consents there; `*` for all sites. Two sites may
        identify different people by the same subject.
    :raises Invalid: `person_missing`, without a subject and a session; `person_site_beside_session`, as a chat is of
        one site.
    """

    subject: str | None = None
    session_id: str | None = None
    site: str | None = None

    def __post_init__(self) -> None:
        if self.session_id == "" or (not self.subject and self.session_id is None):
            raise Invalid("person_missing")
        if self.session_id is not None and self.site is not None:
            raise Invalid("person_site_beside_session")

    @property
    def owner(self) -> TurnOwner:
        """Return the person as the audit knows them."""
        person = digest(context.current().tenant_id, self.subject) if self.subject else ""
        return TurnOwner(person, self.session_id or "")

    def parts(self) -> "Sequence[Person]":
        """Return the person by each of their chats, if they are of one site; else the person alone.

        Raises `Invalid`: `person_at_several_sites` if a site has to be named, `person_site_unknown` if it is neither
        the tenant's nor one at which the person has chats or consents.
        """
        if self.subject is None or self.session_id is not None or self.site == EVERY_SITE:
            return (self,)
        if self.site is not None:
            _check_site(self.site, self.subject)
            return _parts_at(self.site, self.subject)
        if not self.subject.startswith(IDENTIFIED):
            return (self,)
        # Recorded answers outlive their chats, so a site counts without any.
        identifying = (one.key for one in sites.own() if one.identity_secret is not None)
        known = dict.fromkeys((*chats.sites_of(self.subject), *identifying))
        if len(known) > 1:
            raise Invalid("person_at_several_sites", sites=", ".join(known))
        return (self,)


def _check_site(site: str, subject: str) -> None:
    # A removed site may still have chats.
    names = dict.fromkeys(chats.sites_of(subject), "") | {one.key: one.name for one in sites.own()}
    if site not in names:
        listed = ", ".join(f"{key} ({name})" if name else key for key, name in names.items())
        raise Invalid("person_site_unknown", site=site, sites=listed or "-")


def _parts_at(site: str, subject: str) -> Sequence[Person]:
    return [Person(subject, chat_id) for chat_id in chats.at_site(subject, site)]


@lru_cache(maxsize=4_096)
def digest(tenant_id: str, subject: str) -> str:
    """Return the pseudonym of a person in the audit: the same in all turns, and not the name."""
    return Tenant(tenant_id, subject).key("person")


def export(person: Person) -> Mapping[str, list[object]]:
    """Return all data about a person, by kind. Raises `Invalid` as `Person.parts` does."""
    parts = person.parts()
    if parts == (person,):
        return _exported(person)
    found: dict[str, list[object]] = {}
    for part in parts:
        for kind, items in _exported(part).items():
            found.setdefault(kind, []).extend(items)
    theirs = (ConsentRow.subject == person.subject, ConsentRow.site == person.site)
    return {**found, "consents": _export(ConsentRow, _CONSENT, *theirs)}


def _exported(person: Person) -> Mapping[str, list[object]]:
    owner, subject, session_id = person.owner, person.subject, person.session_id
    query = search.TurnQuery(person=owner.person or None, session_id=owner.session_id or None)
    return {
        "turns": [dict(turn.content or {}) for turn in search.find(query, limit=_MAX_ROWS)],
        "feedback": _export(FeedbackRow, names_of(Feedback), owner.condition(FeedbackRow)),
        "conversations": _export(
            ConversationRow,
            ("session_id", "subject", "turns", "updated_at"),
            *_owned(ConversationRow, subject, session_id),
        ),
        "chats": chats.export(subject, session_id),
        "consents": _export(ConsentRow, _CONSENT, _of_subject(ConsentRow, subject, session_id)),
        "tickets": _export(TicketRow, names_of(Ticket), *_owned(TicketRow, subject, session_id)),
        "answers": list(idempotency.of_person(subject, session_id)),
        "jobs": _export(JobRow, ("job_id", "created_at"), _of_subject(JobRow, subject, session_id)),
        "tokens": _export(TokenRow, ("token_id", "issued_at"), _of_subject(TokenRow, subject, session_id)),
        "traces": list(traces.of_person(owner.person, owner.session_id)),
    }


def erase(person: Person) -> ErasureReport:
    """Erase all data about a person, including records on their way to the audit.

    Raises `TryAgain` when Phoenix does not answer: all but the traces is erased then; with a site, the chats whose
    traces remain are kept, as a repeated call finds the traces by them. Raises `Invalid` as `Person.parts` does.
    """
    owner, parts = person.owner, person.parts()
    site = "" if person.site == EVERY_SITE else person.site or ""
    erasures.record(context.current().tenant_id, person=owner.person, session_id=owner.session_id, site=site)
    if site:
        return _erase_at_site(parts, person.subject, site, with_traces=True)
    report = _erase(owner, person.subject, person.session_id)
    return replace(report, traces=traces.erase(owner.person, owner.session_id))


def erase_again(erasure: Erasure) -> None:
    """Repeat an erasure of a tenant that is newer than the restored backup; the traces are gone already."""
    if not Registry().exists(erasure.tenant_id):
        return
    with acting_as(Tenant(erasure.tenant_id, "restore")):
        owner = TurnOwner(erasure.person, erasure.session_id)
        erasures.record(erasure.tenant_id, person=owner.person, session_id=owner.session_id, site=erasure.site)
        # The journal knows people by their digest alone.
        known = [one for one in subjects() if digest(erasure.tenant_id, one) == owner.person] if owner.person else []
        if erasure.site:
            for customer in known:
                _erase_at_site(_parts_at(erasure.site, customer), customer, erasure.site, with_traces=False)
            return
        nobody: list[str | None] = ["" if owner.person else None]
        for subject in known or nobody:
            _erase(owner, subject, owner.session_id or None)


def subjects() -> tuple[str, ...]:
    """Return the subjects that the records of the tenant in context name."""
    named = [mapper for mapper in Base.registry.mappers if {"tenant_id", "subject"} <= set(mapper.columns.keys())]
    theirs = (select(mapper.attrs["subject"].class_attribute) for mapper in named)
    with database.reading() as session:
        return tuple(session.scalars(union(*theirs)))


def _erase_at_site(parts: Sequence[Person], subject: str | None, site: str, *, with_traces: bool) -> ErasureReport:
    """Erase the chats of a person at one site, and the consents that they gave there."""
    reports = []
    for part in parts:
        owner = part.owner
        # First, because a repeated erasure finds the traces by the chat.
        traced = traces.erase(owner.person, owner.session_id) if with_traces else 0
        reports.append(replace(_erase(owner, part.subject, part.session_id), traces=traced))
    _delete(ConsentRow, ConsentRow.subject == subject, ConsentRow.site == site)
    database.scrub(get_settings())
    return ErasureReport(*(sum(getattr(one, name) for one in reports) for name in names_of(ErasureReport)))


def _erase(owner: TurnOwner, subject: str | None, session_id: str | None) -> ErasureReport:
    settings, tenant_id = get_settings(), context.current().tenant_id
    if subject:
        # First, because it is refused while Redis is away.
        stream_log.erase([subject])
    recorder = Recorder(settings)
    recorder.collect()
    thumbs = _delete(FeedbackRow, owner.condition(FeedbackRow))
    turns = store.erase(owner, settings)
    quarantined = recorder.spool.erase_quarantined(
        lambda entry: entry.tenant_id == tenant_id and owner.covers(entry.person, entry.session_id)
    )
    remembered = _delete(ConversationRow, *_owned(ConversationRow, subject, session_id))
    chatted = chats.erase(subject, session_id)
    tickets = _delete(TicketRow, *_owned(TicketRow, subject, session_id))
    answers = idempotency.erase(subject, session_id)
    with database.writing() as session:
        # The documents belong to the tenant, so the jobs continue.
        disowned = update(JobRow).where(_of_subject(JobRow, subject, session_id)).values(subject="")
        job_ids = session.scalars(disowned.returning(JobRow.job_id)).all()
    _delete(TokenRow, _of_subject(TokenRow, subject, session_id))
    if subject and session_id is None:
        settings_history.forget(subject)
    database.scrub(settings)
    return ErasureReport(
        turns=len(turns) + quarantined,
        feedback=thumbs,
        conversations=remembered,
        chats=chatted,
        tickets=tickets,
        answers=answers,
        jobs=len(job_ids),
        traces=0,
    )


def _owned(
    row: type[ConversationRow] | type[TicketRow], subject: str | None, session_id: str | None
) -> list[ColumnElement[bool]]:
    theirs = ((row.subject, subject), (row.session_id, session_id))
    return [column == value for column, value in theirs if value is not None]


def _of_subject(
    row: type[ConsentRow] | type[JobRow] | type[TokenRow], subject: str | None, session_id: str | None
) -> ColumnElement[bool]:
    """Select the rows of a person that belong to no session."""
    return row.subject == subject if subject and not session_id else false()


def _export(row: type[Base], names: Sequence[str], *theirs: ColumnElement[bool]) -> list[object]:
    """Return these columns of rows, in the order of the last one, which is a moment."""
    columns = [inspect(row).attrs[name].class_attribute for name in names]
    with database.reading() as session:
        found = session.execute(select(*columns).where(*theirs).order_by(columns[-1])).all()
    return [to_jsonable_python(dict(zip(names, values, strict=True))) for values in found]


def _delete(row: type[Base], *theirs: ColumnElement[bool]) -> int:
    with database.writing() as session:
        return session.remove(row, *theirs)
