"""`opora backup`, `restore` and `migrate`: commands for the whole installation."""

from pathlib import Path
from typing import Annotated

import typer

from pipelines.ingest.library import Library
from pipelines.ingest.usecase import Ingest
from settings import get_settings
from tenants import backup as backups
from tenants import index as indexes
from tenants.accounts.registry import Registry
from tenants.chats import files
from tenants.core.context import Tenant, acting_as
from tenants.storage import database
from ui.cli import terminal
from ui.cli.terminal import Json, print_json, progress_bar, texts

message = texts("installation")

File = Annotated[Path, typer.Argument(dir_okay=False, help=message("help.file"))]


def backup(path: File, as_json: Json = False) -> None:
    manifest = backups.take(path, get_settings())
    if as_json:
        print_json(manifest.model_dump(mode="json", exclude={"checksums", "sealed"}))
        return
    size = path.stat().st_size / 1_000_000
    typer.echo(message("backup.done", path=str(path), size=f"{size:.1f}", tenants=manifest.rows["tenants"]))


def restore(
    path: File,
    erasures: Annotated[list[Path] | None, typer.Option("--erasures", help=message("help.erasures"))] = None,
    index: Annotated[bool, typer.Option("--index/--no-index", help=message("help.index"))] = True,
    as_json: Json = False,
) -> None:
    journals = erasures or []
    restored = backups.restore(path, get_settings(), journals)
    documents = _build_indexes() if index else 0
    started_at = f"{restored.manifest.started_at:%F %T} UTC"
    if as_json:
        manifest = restored.manifest.model_dump(mode="json", exclude={"checksums", "sealed"})
        print_json({**manifest, "erasures": restored.erasures, "documents": documents})
    else:
        tenants = restored.manifest.rows["tenants"]
        typer.echo(message("restore.done", tenants=tenants, started_at=started_at, documents=documents))
        if journals:
            typer.echo(message("restore.erased", erasures=restored.erasures))
    if not journals:
        typer.echo(message("restore.journal_missing", started_at=started_at), err=True)


def migrate() -> None:
    before, now = database.migrate()
    for tenant in Registry().list():
        with acting_as(Tenant(tenant.tenant_id, "migrate")):
            files.move()
    key = "migrate.unchanged" if before == now else "migrate.done"
    typer.echo(terminal.message(key, before=before or "-", now=now))


def _build_indexes() -> int:
    """Build the index of every tenant from the stored texts. Returns the number of documents."""
    library, documents = Library(Ingest().rewrite), 0
    tenants = Registry().list()
    with progress_bar(message("restore.building")) as update:
        for done, tenant in enumerate(tenants):
            update(completed=done, total=len(tenants))
            with acting_as(Tenant(tenant.tenant_id, "restore")):
                documents += library.check(mend=True).documents
    indexes.close_all()
    return documents
