"""`opora backup`, `opora restore`, `opora tenant remove` and other commands for the whole installation."""

from pathlib import Path
from typing import Annotated

import typer

from components.language.texts import terminal_locale, text
from ui.cli.terminal import SUBJECT, Json, explained, print_json, progress_bar


def message(key: str, **params: str | int) -> str:
    """Return a text of these commands in the terminal's language."""
    return text(f"installation.{key}", terminal_locale(), **params)


TenantId = Annotated[str, typer.Argument(help=message("help.tenant_id"))]
File = Annotated[Path, typer.Argument(dir_okay=False, help=message("help.file"))]


def backup(path: File, as_json: Json = False) -> None:
    """Write a backup of the whole installation."""
    from settings import get_settings
    from tenants import backup as backups

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
    """Restore a backup into an empty installation and build its index."""
    from settings import get_settings
    from tenants import backup as backups

    journals = erasures or []
    restored = backups.restore(path, get_settings(), journals)
    documents = _build_indexes() if index else 0
    if as_json:
        manifest = restored.manifest.model_dump(mode="json", exclude={"checksums", "sealed"})
        print_json({**manifest, "erasures": restored.erasures, "documents": documents})
    else:
        tenants = restored.manifest.rows["tenants"]
        started_at = f"{restored.manifest.started_at:%F %T} UTC"
        typer.echo(message("restore.done", tenants=tenants, started_at=started_at, documents=documents))
        if journals:
            typer.echo(message("restore.erased", erasures=restored.erasures))
    if not journals:
        typer.echo(message("restore.journal_missing", started_at=f"{restored.manifest.started_at:%F %T} UTC"), err=True)


def doctor() -> None:
    """Report problems with the settings and the reverse proxy."""
    from pipelines.doctor import findings
    from settings import get_settings

    found = tuple(findings(get_settings()))
    for error in found:
        typer.echo(explained(error))
    if found:
        raise typer.Exit(1)
    typer.echo(message("well"))


def _build_indexes() -> int:
    """Build the index of every tenant from the stored texts. Returns the number of documents."""
    from pipelines.ingest.library import Library
    from pipelines.ingest.usecase import Ingest
    from tenants import index
    from tenants.accounts.registry import Registry
    from tenants.core.context import Tenant, acting_as

    library, documents = Library(Ingest().rewrite), 0
    tenants = Registry().list()
    with progress_bar(message("restore.building")) as progress:
        for done, tenant in enumerate(tenants):
            progress.update(progress.task_ids[0], completed=done, total=len(tenants))
            with acting_as(Tenant(tenant.tenant_id, "restore")):
                documents += library.check(mend=True).documents
    index.close_all()
    return documents


def tenant_suspend(tenant_id: TenantId) -> None:
    """Suspend a tenant."""
    from tenants.accounts import registry

    registry.suspend(tenant_id, SUBJECT)
    typer.echo(message("suspended", tenant_id=tenant_id))


def tenant_resume(tenant_id: TenantId) -> None:
    """Resume a suspended tenant."""
    from tenants.accounts import registry

    registry.resume(tenant_id, SUBJECT)
    typer.echo(message("resumed", tenant_id=tenant_id))


def tenant_invite(tenant_id: TenantId) -> None:
    """Print only a link for a tenant's first admin, so that scripts can capture it."""
    from settings import get_settings
    from tenants.desk import invitations

    typer.echo(f"{get_settings().browsed_at}/desk/invitation/{invitations.invite(tenant_id)}")


def tenant_remove(
    tenant_id: TenantId,
    yes: Annotated[bool, typer.Option("--yes", help=message("help.unasked"))] = False,
    as_json: Json = False,
) -> None:
    """Remove a tenant with all its data."""
    from tenants.accounts.registry import Registry
    from tenants.privacy import removal

    Registry().get(tenant_id)
    typed = tenant_id if yes else typer.prompt(message("remove.confirm", tenant_id=tenant_id), err=True)
    removed = removal.remove_confirmed(tenant_id, typed)
    if as_json:
        print_json({"tenant_id": tenant_id, "rows": removed.rows})
    else:
        typer.echo(message("remove.done", tenant_id=tenant_id, rows=sum(removed.rows.values())))
