"""`opora audit`, `opora gap`, `opora person`: recorded answers, knowledge gaps, personal data."""

from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime, timedelta
from pathlib import Path
from typing import Annotated

import typer

from pipelines.ask.articles import gap_meanings
from pipelines.ask.insight import checked
from tenants.audit import search
from tenants.audit.chain import Head, Verification
from tenants.audit.search import Record, TurnQuery
from tenants.core import context
from tenants.core.errors import Invalid
from tenants.knowledge import freshness, gaps
from tenants.knowledge.freshness import Stale
from tenants.knowledge.gap_groups import Group
from tenants.privacy import erasures, persons
from tenants.privacy.persons import Person
from ui.api.gap import gap_as_json
from ui.api.records import exported, in_utc, summary, whole
from ui.cli.articles import articles_service
from ui.cli.terminal import CommandGroup, print_json, texts, write_lines

audit_group = CommandGroup("records", prefix="audit_")
gap_group = CommandGroup("records", prefix="gap_")
person_group = CommandGroup("records", prefix="person_")
message = audit_group.message
reason_text = texts("desk.reason")

Since = Annotated[datetime | None, typer.Option("--since", help=message("help.since"))]
Until = Annotated[datetime | None, typer.Option("--until", help=message("help.until"))]
Outcome = Annotated[str | None, typer.Option("--outcome", help=message("help.outcome"))]
Reason = Annotated[str | None, typer.Option("--reason", help=message("help.reason"))]
Document = Annotated[str | None, typer.Option("--document", help=message("help.document"))]
Words = Annotated[str | None, typer.Option("--text", help=message("help.text"))]
Subject = Annotated[str | None, typer.Option("--subject", help=message("help.subject"))]
Session = Annotated[str | None, typer.Option("--session", help=message("help.session"))]
Site = Annotated[str | None, typer.Option("--site", help=message("help.site"))]
GapId = Annotated[str, typer.Argument(help=message("help.gap_id"))]
Last = Annotated[int, typer.Option("--last", min=1, help=message("help.last"))]

_SHOWN = 50


def _print_records(records: Sequence[Record]) -> None:
    rows = (
        (f"{one.at:%F %T}", one.outcome, one.reason, one.question or message("erased"), one.turn_id) for one in records
    )
    audit_group.print_columns(("at", "outcome", "reason", "question", "turn_id"), rows)


@audit_group.tenant_command("list", show=_print_records, form=lambda records: [summary(one) for one in records])
def audit_list(
    since: Since = None,
    until: Until = None,
    outcome: Outcome = None,
    reason: Reason = None,
    document: Document = None,
    words: Words = None,
    subject: Subject = None,
    session: Session = None,
    last: Last = _SHOWN,
) -> Sequence[Record]:
    return search.find(selected(since, until, outcome, reason, document, words, subject, session), limit=last)


@audit_group.tenant_command("show")
def audit_show(turn_id: Annotated[str, typer.Argument(help=message("help.turn_id"))]) -> None:
    print_json(whole(search.get(turn_id)))


def _print_verification(verification: Verification) -> None:
    typer.echo(message("verify.links", links=verification.links, erased=verification.erased))
    typer.echo(message("verify.head", head=f"{verification.head.sequence}:{verification.head.hash}"))
    for fault in verification.faults:
        where = f"{fault.sequence} {fault.turn_id or ''}".strip()
        typer.echo(f"  {where}: {message(f'fault.{fault.kind}')}", err=True)
    typer.echo(message("verify.broken" if verification.faults else "verify.whole"))


@audit_group.tenant_command("verify", show=_print_verification, fails=lambda verification: verification.faults)
def audit_verify(head: Annotated[str, typer.Option("--head", help=message("help.head"))] = "") -> Verification:
    return search.verify(_head(head))


@audit_group.tenant_command("export")
def audit_export(
    since: Since = None,
    until: Until = None,
    kind: Annotated[str, typer.Option("--format", help=message("help.audit_format"))] = "jsonl",
    out: Annotated[Path | None, typer.Option("--out", help=message("help.out"), dir_okay=False)] = None,
) -> None:
    write_lines(exported(checked(kind), in_utc(since), in_utc(until)), out)


def _print_erased(erased: dict[str, int]) -> None:
    typer.echo(message("erase.done", **erased))
    typer.echo(message("erase.beyond"))


@audit_group.tenant_command("erase", show=_print_erased)
@person_group.tenant_command("erase", show=_print_erased)
def person_erase(subject: Subject = None, session: Session = None, site: Site = None) -> dict[str, int]:
    return asdict(persons.erase(Person(subject, session, site)))


@person_group.tenant_command("export")
def person_export(subject: Subject = None, session: Session = None, site: Site = None) -> None:
    print_json(persons.export(Person(subject, session, site)))


@person_group.installation_command("journal")
def person_journal() -> None:
    """Print the recorded erasures, for `opora restore --erasures`."""
    for line in erasures.journal():
        typer.echo(line, nl=False)


def _print_stale(stale: tuple[Stale, ...]) -> None:
    rows = (
        (
            document.doc_id,
            document.title,
            document.updated_at,
            document.citations,
            ", ".join(message(f"doubt.{name}") for name in document.doubts),
        )
        for document in stale
    )
    audit_group.print_columns(("doc_id", "title", "updated_at", "citations", "doubts"), rows)


@audit_group.tenant_command("stale", show=_print_stale)
def audit_stale(
    cited_days: Annotated[int, typer.Option("--cited-days", min=1, help=message("help.cited_days"))] = 30,
    older_days: Annotated[int, typer.Option("--older-days", min=1, help=message("help.older_days"))] = 365,
) -> tuple[Stale, ...]:
    return freshness.stale(cited_within=timedelta(days=cited_days), older_than=timedelta(days=older_days))


def _print_gaps(groups: tuple[Group, ...]) -> None:
    rows = (
        (
            gap.gap_id,
            gap.count,
            reason_text(gap.reason),
            f"{'↳ ' * (position > 0)}{gap.question}",
            ", ".join(gap.doc_ids),
        )
        for group in groups
        for position, gap in enumerate(group.gaps)
    )
    gap_group.print_columns(("gap_id", "count", "reason", "question", "nearest"), rows)


@gap_group.tenant_command(
    "list", show=_print_gaps, form=lambda groups: [[gap_as_json(gap) for gap in group.gaps] for group in groups]
)
def gap_list(
    closed: Annotated[bool, typer.Option("--closed", help=message("help.closed"))] = False,
    dismissed: Annotated[bool, typer.Option("--dismissed", help=message("help.dismissed"))] = False,
    words: Words = None,
) -> tuple[Group, ...]:
    return gap_meanings.groups("closed" if closed else "dismissed" if dismissed else "open", words or "")


@gap_group.tenant_command("close")
def gap_close(gap_id: GapId) -> None:
    with articles_service() as service:
        typer.echo(message("gap.closed", question=service.close_gap(gap_id).question))


@gap_group.tenant_command("dismiss")
def gap_dismiss(gap_id: GapId) -> None:
    typer.echo(message("gap.dismissed", question=gaps.decide([gap_id], "dismissed")[0].question))


@gap_group.tenant_command("reopen")
def gap_reopen(gap_id: GapId) -> None:
    typer.echo(message("gap.reopened", question=gaps.decide([gap_id], "open")[0].question))


def selected(
    since: datetime | None,
    until: datetime | None,
    outcome: str | None,
    reason: str | None,
    document: str | None,
    words: str | None,
    subject: str | None = None,
    session: str | None = None,
) -> TurnQuery:
    return TurnQuery(
        since=in_utc(since),
        until=in_utc(until),
        outcome=outcome,
        reason=reason,
        document=document,
        text=words,
        session_id=session,
        person=persons.digest(context.current().tenant_id, subject) if subject else None,
    )


def _head(value: str) -> Head | None:
    sequence, _, hash_ = value.partition(":")
    if not value:
        return None
    if not sequence.isdecimal() or not hash_:
        raise Invalid("audit_head_invalid")
    return Head(int(sequence), hash_)
