"""`opora up`: creates what an installation lacks for its first start, and says where everything is.

A second start finds all of it there and creates nothing.
"""

from dataclasses import dataclass
from pathlib import Path

import typer

from components.language.texts import terminal_locale
from pipelines.ingest.folder import catch_up
from pipelines.ingest.usecase import Ingest
from settings import Settings
from tenants import index
from tenants.access import issued_tokens
from tenants.accounts.registry import Registry
from tenants.chats import sites
from tenants.chats.sites import SiteConfig
from tenants.core.errors import CallerError, Invalid, NotFound
from tenants.desk import invitations, operators
from tenants.knowledge import watched
from ui.cli import terminal
from ui.cli.ingest import print_report
from ui.cli.terminal import acting_for, counted_by, progress_bar, texts

_TOKEN_SECONDS = 30 * 86_400


message = texts("up")


@dataclass(frozen=True, slots=True)
class Prepared:
    """A prepared installation, and the secrets that were created for it.

    :param invitation: the one-time link's secret; empty once the tenant has a user.
    :param token: a token for questions; empty if the tenant had one before.
    """

    tenant_id: str
    site: str
    invitation: str = ""
    token: str = ""


def prepare(tenant_id: str, settings: Settings) -> Prepared:
    """Create what a tenant lacks: a site, a link for its first administrator, a token."""
    with acting_for(tenant_id):
        if not sites.own():
            locale = "en" if terminal_locale() == "en" else "ru"
            sites.add(Registry().get(tenant_id).name, [settings.browsed_at], SiteConfig(locale=locale))
        invitation = "" if operators.all() else invitations.renew(tenant_id)
        token = ""
        if not issued_tokens.all():
            _, token = issued_tokens.issue(subject="up", scopes=("ask",), ttl_seconds=_TOKEN_SECONDS)
        return Prepared(tenant_id, sites.own()[0].key, invitation, token)


def watch_dir(settings: Settings) -> Path:
    return settings.watch_dir or settings.data_dir.resolve() / "watch"


def watch(tenant_id: str, source: Path | None, settings: Settings) -> Path:
    """Choose the folder that the service watches for a tenant; return its path.

    :param source: a folder of the user's; None: the one of the last start, at first an empty one.
    :raises CallerError: `watch_taken`, if documents are in the tenant's own folder already.
    """
    if Path(tenant_id).name != tenant_id:
        raise Invalid("tenant_id_invalid")
    place = watch_dir(settings) / tenant_id
    if source is None:
        if not place.is_symlink():
            place.mkdir(parents=True, exist_ok=True)
        return place.resolve()
    if not source.exists():
        raise NotFound("path_missing", path=str(source))
    if not source.is_dir():
        raise NotFound("folder_needed", path=str(source))
    if place.resolve() != source.resolve():
        _link(place, source.resolve())
    return source.resolve()


def ingest_changes(tenant_id: str, folder: Path) -> None:
    """Ingest what has changed in the folder since the service last watched it, and print a report."""
    with acting_for(tenant_id), progress_bar(terminal.message("ingest.reading")) as update:
        report = catch_up(folder, Ingest(), counted_by(update))
    index.close_all()
    if report is not None:
        print_report(report, as_json=False)


def announce(prepared: Prepared, folder: Path, settings: Settings) -> None:
    address, site, tenant_id = settings.browsed_at, prepared.site, prepared.tenant_id
    snippet = f'<script src="{address}/widget/loader.js" data-site="{site}" async></script>'
    headers = """-H "Authorization: Bearer $OPORA_TOKEN" -H 'Content-Type: application/json'"""
    call = f"""curl {address}/ask/run {headers} -d '{{"question": "…"}}'"""
    typer.echo("\n" + message("running", address=f"{address}/desk"))
    if prepared.invitation:
        typer.echo(message("invitation", link=f"{address}/desk/invitation/{prepared.invitation}"))
    typer.echo(message("documents", folder=str(folder)))
    typer.echo(message("chat", address=f"{address}/chat/{site}"))
    typer.echo(message("widget", snippet=snippet, site=site, tenant=tenant_id))
    if prepared.token:
        typer.echo(message("token_new", call=call, tenant=tenant_id, token=prepared.token))
    else:
        typer.echo(message("token", call=call, tenant=tenant_id))
    typer.echo(message("stop"))


def _link(place: Path, source: Path) -> None:
    """Let the service watch `source` in the place of a tenant's own folder. Documents of the folder before stay."""
    place.parent.mkdir(parents=True, exist_ok=True)
    if place.is_symlink():
        with acting_for(place.name):
            watched.put({}, gone=watched.all())
        place.unlink()
    elif place.exists():
        with CallerError("watch_taken", folder=str(place), source=str(source)).instead_of(OSError):
            place.rmdir()
    place.symlink_to(source, target_is_directory=True)
