"""`opora document`: document management on the command line."""

from collections.abc import Mapping, Sequence
from typing import Annotated

import typer
from rich.markup import escape

from components.ingest.inspection import InspectedChunk
from components.language.marks import HEADING_LINE
from components.language.texts import terminal_locale, text_or
from pipelines.ingest.library import Library
from pipelines.ingest.usecase import Ingest
from pipelines.problems import refused_as
from tenants.core.errors import Invalid
from tenants.core.json import Json as Value
from tenants.knowledge.catalogue import Selection
from ui.api.library import (
    DocumentAnswer,
    DocumentFilter,
    DocumentPart,
    DocumentQuery,
    DocumentsAnswer,
    VersionPart,
    document_answer,
    documents_answer,
)
from ui.cli.terminal import CommandGroup, flag_texts, print_table, terminal_console

_SINGLE_VALUE = ("words", "flagged", "stale", "date_from", "date_to")
_SEVERAL_VALUES = {
    "status": "statuses",
    "trust": "trust",
    "tag": "tags",
    "project_key": "project_keys",
    "evidence_tier": "evidence_tiers",
    "source_type": "source_types",
    "lang": "languages",
}
_SHOWN = ("status", "trust", "priority", "tags", "project_key", "evidence_tier", "source_type", "source", "url", "lang")
_VALUES = {
    "status": "desk.documents.status",
    "trust": "desk.documents.trust",
    "lang": "desk.documents.language",
    "source_type": "library.source_type",
}
"""Texts for the values of properties; sources may have other values than these."""


group = CommandGroup("library")
message = group.message

Doc = Annotated[str, typer.Argument(help=message("help.doc"))]
Where = Annotated[list[str] | None, typer.Option("--where", help=message("help.where"))]


def _print_documents(page: DocumentsAnswer) -> None:
    if not page.documents:
        typer.echo(message("list.none"), err=True)
        return
    rows = (
        (
            document.doc_id,
            f"{document.title} ⚠" if document.flags else document.title,
            _value("status", document.status),
            _value("trust", document.trust),
            document.updated_at,
            document.chunk_count,
        )
        for document in page.documents
    )
    columns = ("doc_id", "title", "status", "trust", "updated_at", "chunks")
    group.print_columns(columns, rows, "property")
    typer.echo(message("list.total", shown=len(page.documents), total=page.total), err=True)
    if page.next is not None:
        typer.echo(message("list.more", after=page.next), err=True)


@group.tenant_command("list", show=_print_documents)
def list_documents(
    where: Where = None,
    limit: Annotated[int, typer.Option(min=1, max=500, help=message("help.limit"))] = 50,
    after: Annotated[str, typer.Option(help=message("help.after"))] = "",
) -> DocumentsAnswer:
    return documents_answer(_library().page(_selection(where or ()), after=after, limit=limit))


def _print_document(document: DocumentAnswer) -> None:
    _print_record(document)
    for chunk in document.chunks or ():
        _print_chunk(chunk, document.title)
    if document.text is not None:
        typer.echo(f"\n{document.text}")


@group.tenant_command("show", show=_print_document)
def show(
    doc: Doc,
    chunks: Annotated[bool, typer.Option("--chunks", help=message("help.chunks"))] = False,
    with_text: Annotated[bool, typer.Option("--text", help=message("help.text"))] = False,
    version: Annotated[int | None, typer.Option(min=1, help=message("help.version"))] = None,
) -> DocumentAnswer:
    parts = ["versions", "edges"]
    parts += ["chunks"] if chunks else []
    parts += ["text"] if with_text or version else []
    return document_answer(_library(), doc, DocumentQuery(include=",".join(parts), version=version))


@group.tenant_command("set", show=lambda done: typer.echo(message("done.set", count=done["documents"])))
def set_properties(
    docs: Annotated[list[str] | None, typer.Argument(help=message("help.docs"))] = None,
    where: Where = None,
    title: Annotated[str | None, typer.Option(help=message("help.title"))] = None,
    status: Annotated[str | None, typer.Option(help=message("help.status"))] = None,
    trust: Annotated[str | None, typer.Option(help=message("help.trust"))] = None,
    priority: Annotated[int | None, typer.Option(min=0, max=100, help=message("help.priority"))] = None,
    tag: Annotated[list[str] | None, typer.Option(help=message("help.tag"))] = None,
    project_key: Annotated[str | None, typer.Option(help=message("help.project_key"))] = None,
    evidence_tier: Annotated[str | None, typer.Option(help=message("help.evidence_tier"))] = None,
    source_type: Annotated[str | None, typer.Option(help=message("help.source_type"))] = None,
    unset: Annotated[list[str] | None, typer.Option(help=message("help.unset"))] = None,
) -> dict[str, int]:
    properties: dict[str, Value] = {
        "title": title,
        "status": status,
        "trust": trust,
        "priority": priority,
        "tags": list(tag) if tag else None,
        "project_key": project_key,
        "evidence_tier": evidence_tier,
        "source_type": source_type,
    }
    changes: dict[str, Value] = {name: value for name, value in properties.items() if value is not None}
    changes |= dict.fromkeys(unset or ())
    if not changes:
        raise Invalid("nothing_to_set")
    if not docs and not where:
        raise Invalid("documents_unnamed")
    return {"documents": _set(docs or (), where or (), changes)}


def _print_deleted(removed: list[dict[str, str | int]]) -> None:
    for document in removed:
        typer.echo(message("done.deleted", **document))


@group.tenant_command("delete", show=_print_deleted)
def delete(docs: Annotated[list[str], typer.Argument(help=message("help.docs"))]) -> list[dict[str, str | int]]:
    """Remove documents. If one of them is unknown, remove none."""
    library = _library()
    for doc_id in docs:
        library.read(doc_id)
    return [{"doc_id": doc_id, "chunks": library.delete(doc_id)} for doc_id in dict.fromkeys(docs)]


def _print_versions(versions: tuple[VersionPart, ...]) -> None:
    columns = ("property.version", "versions.created_at", "property.title", "versions.in_force")
    rows = (
        (
            one.version,
            f"{one.created_at:%Y-%m-%d %H:%M}" if one.created_at else "",
            one.title,
            "•" if one.in_force else "",
        )
        for one in versions
    )
    print_table((message(column) for column in columns), rows)


@group.tenant_command("versions", show=_print_versions)
def versions(doc: Doc) -> tuple[VersionPart, ...]:
    return document_answer(_library(), doc, DocumentQuery(include="versions")).versions or ()


@group.tenant_command("restore", show=lambda stored: typer.echo(message("done.restored", version=stored.version)))
def restore(doc: Doc, version: Annotated[int, typer.Argument(min=1, help=message("help.version"))]) -> DocumentPart:
    return DocumentPart.model_validate(_library().restore(doc, version))


def _library() -> Library:
    return Library(Ingest().rewrite)


def _set(docs: Sequence[str], where: Sequence[str], changes: Mapping[str, Value]) -> int:
    library = _library()
    for doc_id in docs:
        library.read(doc_id)
    for doc_id in docs:
        library.change(doc_id, changes)
    return len(docs) + (library.change_all(_selection(where), changes) if where else 0)


def _selection(where: Sequence[str]) -> Selection:
    """Return the documents that match conditions like `tag=old`. Raises `Invalid` with the code `condition_invalid`."""
    conditions: dict[str, str | list[str]] = {}
    for condition in where:
        name, equals, value = condition.partition("=")
        if name in _SEVERAL_VALUES and equals:
            values = conditions.setdefault(_SEVERAL_VALUES[name], [])
            if isinstance(values, list):
                values.append(value)
        elif name in _SINGLE_VALUE and equals:
            conditions[name] = value
        else:
            raise Invalid("condition_invalid", condition=condition)
    with refused_as("condition_invalid", condition=", ".join(where)):
        return DocumentFilter.model_validate(conditions).selection()


def _flags(flags: Sequence[str]) -> str:
    return message("show.flags", flags=flag_texts(flags))


def _value(name: str, value: object) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value))
    words = "" if value is None else str(value)
    return text_or(words, f"{_VALUES[name]}.{words}", terminal_locale()) if name in _VALUES else words


def _print_record(document: DocumentAnswer) -> None:
    console = terminal_console()
    record = document.model_dump(mode="json")
    console.print(f"[bold]{escape(document.title)}[/] [dim]{escape(document.doc_id)}[/]", highlight=False)
    for name in _SHOWN:
        shown = _value(name, record[name])
        if name in document.overrides:
            shown = message("show.set_over", value=shown, given=_value(name, document.given[name]))
        if shown:
            console.print(f"  {message(f'property.{name}')}: {escape(shown)}", highlight=False)
    updated_at, version, count = document.updated_at or "", document.version, document.chunk_count
    console.print(f"  {message('show.stored', updated_at=updated_at, version=version, chunks=count)}")
    if document.flags:
        console.print(f"  [yellow]{escape(_flags(document.flags))}[/]", highlight=False)
    for edge in document.edges or ():
        console.print(f"  {escape(edge.from_doc)} {edge.kind} {escape(edge.to_doc)} ({edge.weight:g})", highlight=False)


def _print_chunk(chunk: InspectedChunk, title: str) -> None:
    """Render a chunk with its metadata; the overlap with the previous chunk is grey.

    :param title: of the document, shown for a chunk without headings.
    """
    console = terminal_console()
    figures = [message("show.figures", tokens=chunk.tokens, sentences=len(chunk.sentences))]
    if chunk.page is not None:
        figures.append(message("show.page", page=chunk.page))
    if chunk.overlap:
        figures.append(message("show.overlap", overlap=chunk.overlap))
    if chunk.flags:
        figures.append(_flags(chunk.flags))
    # Small sections share a chunk, with their headings in its text.
    heading = chunk.heading or ", ".join(HEADING_LINE.findall(chunk.text)) or title
    console.print(f"\n[bold]{message('show.heading', index=chunk.index + 1, heading=escape(heading))}[/]")
    console.print(f"[cyan]{escape('; '.join(figures))}[/]", highlight=False)
    console.print(
        f"[dim]{escape(chunk.text[: chunk.overlap])}[/]{escape(chunk.text[chunk.overlap :])}", highlight=False
    )
    terms = ", ".join(f"{term.stem} ({term.chunks})" for term in chunk.terms)
    console.print(f"[cyan]{escape(message('show.terms', terms=terms))}[/]", highlight=False)
