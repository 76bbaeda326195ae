"""`opora document`: document management on the command line."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from components.language.texts import keys, terminal_locale, text
from tenants.core.errors import Invalid
from ui.cli.terminal import DEFAULT_TENANT, Group, Json, TenantOption, acting_for, print_json, terminal_console

if TYPE_CHECKING:
    from pipelines.ingest.library import Library
    from pipelines.ingest.library_contract import ChunkPart, DocumentAnswer
    from tenants.core.json import Json as Value
    from tenants.knowledge.catalogue import Selection

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


def message(key: str, **params: str | int) -> str:
    """Return a text of these commands in the terminal's language."""
    return text(f"library.{key}", terminal_locale(), **params)


app = typer.Typer(cls=Group, help=message("help.group"), no_args_is_help=True)

Doc = Annotated[str, typer.Argument(help=message("help.doc"))]
Where = Annotated[list[str] | None, typer.Option("--where", help=message("help.where"))]


@app.command("list", help=message("help.list"))
def list_documents(
    where: Where = None,
    limit: Annotated[int, typer.Option(min=1, max=500, help=message("help.limit"))] = 50,
    after: Annotated[str, typer.Option(help=message("help.after"))] = "",
    tenant: TenantOption = DEFAULT_TENANT,
    as_json: Json = False,
) -> None:
    """List the matching documents."""
    with acting_for(tenant):
        from pipelines.ingest.library_contract import documents_answer

        page = documents_answer(_library().page(_selection(where or ()), after=after, limit=limit))
    if as_json:
        print_json(page.model_dump(mode="json"))
        return
    if not page.documents:
        typer.echo(message("list.none"), err=True)
        return
    from rich.table import Table

    table = Table()
    for column in ("doc_id", "title", "status", "trust", "updated_at", "chunks"):
        # Never truncate ids: they are copied into the next command.
        table.add_column(message(f"property.{column}"), overflow="fold" if column == "doc_id" else "ellipsis")
    for document in page.documents:
        title = f"{document.title} ⚠" if document.flags else document.title
        table.add_row(
            document.doc_id, title, document.status, document.trust, document.updated_at, str(document.chunk_count)
        )
    terminal_console().print(table)
    typer.echo(message("list.total", shown=len(page.documents), total=page.total), err=True)
    if page.next is not None:
        typer.echo(message("list.more", after=page.next), err=True)


@app.command("show", help=message("help.show"))
def show(
    doc: Doc,
    chunks: Annotated[bool, typer.Option("--chunks", help=message("help.chunks"))] = False,
    whole: Annotated[bool, typer.Option("--text", help=message("help.text"))] = False,
    version: Annotated[int | None, typer.Option(min=1, help=message("help.version"))] = None,
    tenant: TenantOption = DEFAULT_TENANT,
    as_json: Json = False,
) -> None:
    """Show a document, its text and the extracted metadata."""
    parts = ["versions", "edges", *(["chunks", "omitted"] if chunks else []), *(["text"] if whole or version else [])]
    with acting_for(tenant):
        from pipelines.ingest.library_contract import DocumentQuery, document_answer

        document = document_answer(_library(), doc, DocumentQuery(include=",".join(parts), version=version))
    if as_json:
        print_json(document.model_dump(mode="json"))
        return
    _print_record(document)
    for chunk in document.chunks or ():
        _print_chunk(chunk)
    for piece in document.omitted or ():
        why = text(f"desk.documents.omitted.why.{piece.why}", terminal_locale())
        typer.echo(message("show.omitted", why=why, text=piece.text, times=piece.times))
    if document.text is not None:
        typer.echo(f"\n{document.text}")


@app.command("set", help=message("help.set"))
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
    tenant: TenantOption = DEFAULT_TENANT,
    as_json: Json = False,
) -> None:
    """Set properties of the named documents or of all that match."""
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
    with acting_for(tenant):
        count = _set(docs or (), where or (), changes)
    if as_json:
        print_json({"documents": count})
    else:
        typer.echo(message("done.set", count=count))


@app.command("delete", help=message("help.delete"))
def delete(
    docs: Annotated[list[str], typer.Argument(help=message("help.docs"))],
    tenant: TenantOption = DEFAULT_TENANT,
    as_json: Json = False,
) -> None:
    """Remove documents. If one of them is unknown, remove none."""
    with acting_for(tenant):
        library = _library()
        for doc_id in docs:
            library.read(doc_id)
        removed = {doc_id: library.delete(doc_id) for doc_id in dict.fromkeys(docs)}
    if as_json:
        print_json([{"doc_id": doc_id, "chunks": chunks} for doc_id, chunks in removed.items()])
        return
    for doc_id, chunks in removed.items():
        typer.echo(message("done.deleted", doc_id=doc_id, chunks=chunks))


@app.command("versions", help=message("help.versions"))
def versions(doc: Doc, tenant: TenantOption = DEFAULT_TENANT, as_json: Json = False) -> None:
    """List the stored versions of a document."""
    with acting_for(tenant):
        from pipelines.ingest.library_contract import DocumentQuery, document_answer

        versions = document_answer(_library(), doc, DocumentQuery(include="versions")).versions or ()
    if as_json:
        print_json([version.model_dump(mode="json") for version in versions])
        return
    from rich.table import Table

    table = Table(
        message("property.version"),
        message("versions.created_at"),
        message("property.title"),
        message("versions.in_force"),
    )
    for one in versions:
        written = f"{one.created_at:%Y-%m-%d %H:%M}" if one.created_at else ""
        table.add_row(str(one.version), written, one.title, "•" if one.in_force else "")
    terminal_console().print(table)


@app.command("restore", help=message("help.restore"))
def restore(
    doc: Doc,
    version: Annotated[int, typer.Argument(min=1, help=message("help.version"))],
    tenant: TenantOption = DEFAULT_TENANT,
    as_json: Json = False,
) -> None:
    """Restore an earlier version."""
    with acting_for(tenant):
        from pipelines.ingest.library_contract import document_part

        document = document_part(_library().restore(doc, version))
    if as_json:
        print_json(document.model_dump(mode="json"))
    else:
        typer.echo(message("done.restored", version=document.version))


def _library() -> "Library":
    from pipelines.ingest.library import Library
    from pipelines.ingest.usecase import Ingest

    return Library(Ingest().rewrite)


def _set(docs: Sequence[str], where: Sequence[str], changes: "Mapping[str, Value]") -> int:
    library = _library()
    for doc_id in docs:
        library.read(doc_id)
    for doc_id in docs:
        library.change(doc_id, changes)
    return len(docs) + (library.change_all(_selection(where), changes) if where else 0)


def _selection(where: Sequence[str]) -> "Selection":
    """Return the documents that match conditions like `tag=old`. Raises `Invalid` with the code `condition_invalid`."""
    from pydantic import ValidationError

    from pipelines.ingest.library_contract import DocumentFilter

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
    try:
        return DocumentFilter.model_validate(conditions).selection()
    except ValidationError as unfit:
        raise Invalid("condition_invalid", condition=", ".join(where)) from unfit


def _flags(flags: Sequence[str]) -> str:
    texts = {flag: f"documents.flag.{flag}" for flag in flags}
    return message(
        "show.flags",
        flags=", ".join(text(key, terminal_locale()) if key in keys(key) else flag for flag, key in texts.items()),
    )


def _value(value: object) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value))
    return "" if value is None else str(value)


def _print_record(document: "DocumentAnswer") -> None:
    from rich.markup import escape

    console = terminal_console()
    record = document.model_dump(mode="json")
    console.print(f"[bold]{escape(document.title)}[/] [dim]{escape(document.doc_id)}[/]", highlight=False)
    for name in _SHOWN:
        shown = _value(record[name])
        if name in document.overrides:
            shown = message("show.set_over", value=shown, given=_value(document.given[name]))
        if shown:
            console.print(f"  {message(f'property.{name}')}: {escape(shown)}", highlight=False)
    figures = {"updated_at": document.updated_at, "version": document.version, "chunks": document.chunk_count}
    console.print("  " + ", ".join(f"{message(f'property.{name}')} {value}" for name, value in figures.items()))
    if document.flags:
        console.print(f"  [yellow]{escape(_flags(document.flags))}[/]", highlight=False)
    for edge in document.edges or ():
        console.print(f"  {escape(edge.from_doc)} {edge.kind} {escape(edge.to_doc)} ({edge.weight:g})", highlight=False)


def _print_chunk(chunk: "ChunkPart") -> None:
    """Render a chunk with its metadata; the overlap with the previous chunk is grey."""
    from rich.markup import escape

    console = terminal_console()
    figures = [message("show.figures", tokens=chunk.tokens, sentences=len(chunk.sentences))]
    if chunk.page is not None:
        figures.append(message("show.page", page=chunk.page))
    if chunk.overlap:
        figures.append(message("show.overlap", overlap=chunk.overlap))
    if chunk.flags:
        figures.append(_flags(chunk.flags))
    console.print(f"\n[bold]{message('show.heading', index=chunk.index + 1, heading=escape(chunk.heading))}[/]")
    console.print(f"[cyan]{escape('; '.join(figures))}[/]", highlight=False)
    console.print(
        f"[dim]{escape(chunk.text[: chunk.overlap])}[/]{escape(chunk.text[chunk.overlap :])}", highlight=False
    )
    terms = ", ".join(f"{term.stem} ({term.chunks})" for term in chunk.terms)
    console.print(f"[cyan]{escape(message('show.terms', terms=terms))}[/]", highlight=False)
