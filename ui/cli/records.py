"""`opora audit`, `opora gap`, `opora person`: recorded answers, knowledge gaps, personal data."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from components.language.texts import terminal_locale, text
from tenants.core.errors import Invalid
from ui.cli.terminal import DEFAULT_TENANT, Json, TenantOption, acting_for, print_json, terminal_console

if TYPE_CHECKING:
    from tenants.audit.chain import Head
    from tenants.audit.search import TurnQuery
    from tenants.privacy.persons import Person


def message(key: str, **params: str | int | float) -> str:
    """Return a text of these commands in the terminal's language."""
    return text(f"records.{key}", terminal_locale(), **params)


audit_app = typer.Typer(help=message("help.audit"), no_args_is_help=True)
gap_app = typer.Typer(help=message("help.gap"), no_args_is_help=True)
person_app = typer.Typer(help=message("help.person"), no_args_is_help=True)

Since = Annotated[datetime | None, typer.Option("--since", help=message("help.since"))]
Until = Annotated[datetime | None, typer.Option("--until", help=message("help.until"))]
Outcome = Annotated[str | None, typer.Option("--outcome", help=message("help.outcome"))]
Reason = Annotated[str | None, typer.Option("--reason", help=message("help.reason"))]
Document = Annotated[str | None, typer.Option("--document", help=message("help.document"))]
Words = Annotated[str | None, typer.Option("--text", help=message("help.text"))]
Subject = Annotated[str | None, typer.Option("--subject", help=message("help.subject"))]
Session = Annotated[str | None, typer.Option("--session", help=message("help.session"))]
Last = Annotated[int, typer.Option("--last", min=1, help=message("help.last"))]

_FAULTY = 1
_SHOWN = 50


@audit_app.command("list", help=message("help.audit_list"))
def audit_list(
    tenant: TenantOption = DEFAULT_TENANT,
    since: Since = None,
    until: Until = None,
    outcome: Outcome = None,
    reason: Reason = None,
    document: Document = None,
    words: Words = None,
    subject: Subject = None,
    session: Session = None,
    last: Last = _SHOWN,
    as_json: Json = False,
) -> None:
    """Print the newest matching turns."""
    with acting_for(tenant):
        from tenants.audit import search

        query = selected(since, until, outcome, reason, document, words, subject, session)
        records = search.find(query, limit=last)
    if as_json:
        from ui.api.records import summary

        print_json([summary(record) for record in records])
        return
    rows = (
        (
            f"{record.at:%F %T}",
            record.outcome,
            record.reason or "",
            record.question or message("erased"),
            record.turn_id,
        )
        for record in records
    )
    print_table(("at", "outcome", "reason", "question", "turn_id"), rows)


@audit_app.command("show", help=message("help.audit_show"))
def audit_show(
    turn_id: Annotated[str, typer.Argument(help=message("help.turn_id"))], tenant: TenantOption = DEFAULT_TENANT
) -> None:
    """Print the full record of one turn, as JSON."""
    with acting_for(tenant):
        from tenants.audit import search
        from ui.api.records import whole

        print_json(whole(search.get(turn_id)))


@audit_app.command("verify", help=message("help.audit_verify"))
def audit_verify(
    tenant: TenantOption = DEFAULT_TENANT,
    head: Annotated[str, typer.Option("--head", help=message("help.head"))] = "",
    as_json: Json = False,
) -> None:
    """Verify the chain. Exits with 1 if any record was tampered with."""
    with acting_for(tenant):
        from dataclasses import asdict

        from tenants.audit import search

        verification = search.verify(_head(head))
    if as_json:
        print_json(asdict(verification))
    else:
        typer.echo(message("verify.links", links=verification.links, erased=verification.erased))
        typer.echo(message("verify.head", head=f"{verification.head.sequence}:{verification.head.hash}"))
        for fault in verification.faults:
            where = f"{fault.sequence} {fault.turn_id or ''}".strip()
            typer.echo(f"  {where}: {message(f'fault.{fault.kind}')}", err=True)
        typer.echo(message("verify.broken" if verification.faults else "verify.whole"))
    if verification.faults:
        raise typer.Exit(_FAULTY)


@audit_app.command("export", help=message("help.audit_export"))
def audit_export(
    tenant: TenantOption = DEFAULT_TENANT,
    since: Since = None,
    until: Until = None,
    kind: Annotated[str, typer.Option("--format", help=message("help.audit_format"))] = "jsonl",
    out: Annotated[Path | None, typer.Option("--out", help=message("help.out"), dir_okay=False)] = None,
) -> None:
    """Export the chain as JSON Lines, or the turns as a table."""
    with acting_for(tenant):
        from pipelines.ask.insight import checked
        from ui.api.records import exported

        write_lines(exported(checked(kind), utc(since), utc(until)), out)


@audit_app.command("erase", help=message("help.audit_erase"))
@person_app.command("erase", help=message("help.person_erase"))
def person_erase(
    tenant: TenantOption = DEFAULT_TENANT, subject: Subject = None, session: Session = None, as_json: Json = False
) -> None:
    """Erase everything stored about a person."""
    with acting_for(tenant):
        from dataclasses import asdict

        from tenants.privacy import persons

        erased = asdict(persons.erase(_person(subject, session)))
    if as_json:
        print_json(erased)
    else:
        typer.echo(message("erase.done", **erased))
        typer.echo(message("erase.beyond"))


@person_app.command("export", help=message("help.person_export"))
def person_export(tenant: TenantOption = DEFAULT_TENANT, subject: Subject = None, session: Session = None) -> None:
    """Print everything stored about a person, as JSON."""
    with acting_for(tenant):
        from tenants.privacy import persons

        print_json(persons.export(_person(subject, session)))


@person_app.command("journal", help=message("help.person_journal"))
def person_journal() -> None:
    """Print the recorded erasures, for `opora restore --erasures`."""
    from tenants.privacy import erasures

    for line in erasures.journal():
        typer.echo(line, nl=False)


@audit_app.command("stale", help=message("help.audit_stale"))
def audit_stale(
    tenant: TenantOption = DEFAULT_TENANT,
    cited_days: Annotated[int, typer.Option("--cited-days", min=1, help=message("help.cited_days"))] = 30,
    older_days: Annotated[int, typer.Option("--older-days", min=1, help=message("help.older_days"))] = 365,
    as_json: Json = False,
) -> None:
    """Print cited documents that may be out of date."""
    with acting_for(tenant):
        from dataclasses import asdict

        from tenants.knowledge import freshness

        stale = freshness.stale(cited_within=timedelta(days=cited_days), older_than=timedelta(days=older_days))
    if as_json:
        print_json([asdict(document) | {"last_cited_at": document.last_cited_at.isoformat()} for document in stale])
        return
    rows = (
        (
            document.doc_id,
            document.title,
            document.updated_at,
            str(document.citations),
            ", ".join(message(f"doubt.{name}") for name in document.doubts),
        )
        for document in stale
    )
    print_table(("doc_id", "title", "updated_at", "citations", "doubts"), rows)


@gap_app.command("list", help=message("help.gap_list"))
def gap_list(
    tenant: TenantOption = DEFAULT_TENANT,
    closed: Annotated[bool, typer.Option("--closed", help=message("help.closed"))] = False,
    dismissed: Annotated[bool, typer.Option("--dismissed", help=message("help.dismissed"))] = False,
    words: Words = None,
    as_json: Json = False,
) -> None:
    """Print the questions that the knowledge base could not answer, grouped by meaning."""
    with acting_for(tenant):
        from pipelines.ask.articles import gap_meanings

        groups = gap_meanings.groups("closed" if closed else "dismissed" if dismissed else "open", words or "")
    if as_json:
        from ui.api.gap import gap_as_json

        print_json([[gap_as_json(gap) for gap in group.gaps] for group in groups])
        return
    rows = (
        (gap.gap_id, str(gap.count), gap.reason, f"{'  ' * (position > 0)}{gap.question}", ", ".join(gap.doc_ids))
        for group in groups
        for position, gap in enumerate(group.gaps)
    )
    print_table(("gap_id", "count", "reason", "question", "nearest"), rows)


@gap_app.command("close", help=message("help.gap_close"))
def gap_close(
    gap_id: Annotated[str, typer.Argument(help=message("help.gap_id"))], tenant: TenantOption = DEFAULT_TENANT
) -> None:
    """Close a gap after its questions can be answered."""
    from ui.cli.articles import articles_service

    with acting_for(tenant), articles_service() as service:
        typer.echo(message("gap.closed", question=service.close_gap(gap_id).question))


@gap_app.command("dismiss", help=message("help.gap_dismiss"))
def gap_dismiss(
    gap_id: Annotated[str, typer.Argument(help=message("help.gap_id"))], tenant: TenantOption = DEFAULT_TENANT
) -> None:
    """Dismiss a gap that needs no article."""
    with acting_for(tenant):
        from tenants.knowledge import gaps

        typer.echo(message("gap.dismissed", question=gaps.dismiss(gap_id).question))


@gap_app.command("reopen", help=message("help.gap_reopen"))
def gap_reopen(
    gap_id: Annotated[str, typer.Argument(help=message("help.gap_id"))], tenant: TenantOption = DEFAULT_TENANT
) -> None:
    """Undo `close` and `dismiss`."""
    with acting_for(tenant):
        from tenants.knowledge import gaps

        typer.echo(message("gap.reopened", question=gaps.reopen(gap_id).question))


def selected(
    since: datetime | None,
    until: datetime | None,
    outcome: str | None,
    reason: str | None,
    document: str | None,
    words: str | None,
    subject: str | None = None,
    session: str | None = None,
) -> "TurnQuery":
    """Build the query for these options."""
    from tenants.audit.search import TurnQuery
    from tenants.core import context
    from tenants.privacy import persons

    return TurnQuery(
        since=utc(since),
        until=utc(until),
        outcome=outcome,
        reason=reason,
        document=document,
        text=words,
        session_id=session,
        person=persons.digest(context.current().tenant_id, subject) if subject else None,
    )


def write_lines(lines: Iterable[str], out: Path | None) -> None:
    """Write lines, which include their line endings, to a file or print them."""
    if out is None:
        for line in lines:
            typer.echo(line, nl=False)
    else:
        with out.open("w", encoding="utf-8", newline="") as file:
            file.writelines(lines)


def utc(moment: datetime | None) -> datetime | None:
    """Parse a moment, taken as UTC unless it has an offset."""
    return moment if moment is None or moment.tzinfo else moment.replace(tzinfo=UTC)


def _head(value: str) -> "Head | None":
    from tenants.audit.chain import Head

    sequence, _, hash_ = value.partition(":")
    if not value:
        return None
    if not sequence.isdecimal() or not hash_:
        raise Invalid("audit_head_invalid")
    return Head(int(sequence), hash_)


def _person(subject: str | None, session: str | None) -> "Person":
    from tenants.privacy.persons import Person

    return Person(subject, session)


def print_table(columns: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> None:
    """Print rows of cells under column headers."""
    from rich.markup import escape
    from rich.table import Table

    table = Table()
    for column in columns:
        table.add_column(message(f"column.{column}"), overflow="fold")
    for row in rows:
        table.add_row(*(escape(cell) for cell in row))
    terminal_console().print(table)
