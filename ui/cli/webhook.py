"""`opora webhook`: receivers of a tenant's chat events."""

from typing import Annotated

import typer

from components.language.texts import terminal_locale, text
from ui.cli.terminal import DEFAULT_TENANT, Group, Json, TenantOption, acting_for, print_json, terminal_console


def message(key: str, **params: str | float) -> str:
    """Return a text of these commands in the terminal's language."""
    return text(f"webhooks.{key}", terminal_locale(), **params)


webhook_app = typer.Typer(cls=Group, help=message("help.webhook"), no_args_is_help=True)
WebhookId = Annotated[str, typer.Argument(help=message("help.webhook_id"))]


@webhook_app.command("add", help=message("help.add"))
def webhook_add(
    url: Annotated[str, typer.Argument(help=message("help.url"))],
    events: Annotated[list[str] | None, typer.Option("--event", help=message("help.event"))] = None,
    tenant: TenantOption = DEFAULT_TENANT,
) -> None:
    """Add a receiver. Its secret is shown only once."""
    with acting_for(tenant):
        from components.ingest.fetch import canonical
        from tenants.chats import webhooks

        added = webhooks.add(canonical(url), events or ())
    typer.echo(message("added", webhook_id=added.webhook_id, secret=added.secrets[0]))


@webhook_app.command("list", help=message("help.list"))
def webhook_list(tenant: TenantOption = DEFAULT_TENANT, as_json: Json = False) -> None:
    """List all receivers, without secrets."""
    with acting_for(tenant):
        from tenants.chats import webhooks

        found = webhooks.own()
    if as_json:
        print_json([{"webhook_id": one.webhook_id, "url": one.url, "events": list(one.events)} for one in found])
        return
    from rich.table import Table

    table = Table(message("column.webhook"), message("column.url"), message("column.events"))
    for one in found:
        table.add_row(one.webhook_id, one.url, ", ".join(one.events))
    terminal_console().print(table)


@webhook_app.command("remove", help=message("help.remove"))
def webhook_remove(webhook_id: WebhookId, tenant: TenantOption = DEFAULT_TENANT) -> None:
    """Remove a receiver."""
    with acting_for(tenant):
        from tenants.chats import webhooks

        webhooks.remove(webhook_id)
    typer.echo(message("removed", webhook_id=webhook_id))


@webhook_app.command("rotate", help=message("help.rotate"))
def webhook_rotate(webhook_id: WebhookId, tenant: TenantOption = DEFAULT_TENANT) -> None:
    """Rotate the secret. The new one is shown only once."""
    with acting_for(tenant):
        from tenants.chats import webhooks

        rotated = webhooks.rotate(webhook_id)
    typer.echo(message("added", webhook_id=rotated.webhook_id, secret=rotated.secrets[0]))


@webhook_app.command("test", help=message("help.test"))
def webhook_test(webhook_id: WebhookId, tenant: TenantOption = DEFAULT_TENANT) -> None:
    """Send a test event to a receiver; the running service delivers it."""
    with acting_for(tenant):
        from tenants.chats import outbox

        delivery_id = outbox.enqueue_test(webhook_id)
    typer.echo(message("again", delivery_id=delivery_id))


@webhook_app.command("deliveries", help=message("help.deliveries"))
def webhook_deliveries(
    dead: Annotated[bool, typer.Option("--dead", help=message("help.dead"))] = False,
    tenant: TenantOption = DEFAULT_TENANT,
    as_json: Json = False,
) -> None:
    """List the newest deliveries and their results."""
    with acting_for(tenant):
        from tenants.chats import outbox

        found = outbox.latest(state="dead" if dead else None)
    rows = [
        {
            "delivery_id": one.delivery_id,
            "event": one.event,
            "state": one.state,
            "attempts": one.attempts,
            "fault": one.fault,
            "created_at": one.created_at.isoformat(),
        }
        for one in found
    ]
    if as_json:
        print_json(rows)
        return
    from rich.table import Table

    table = Table(message("column.delivery"), message("column.event"), message("column.state"), message("column.fault"))
    for row in rows:
        table.add_row(*(str(row[name]) for name in ("delivery_id", "event", "state", "fault")))
    terminal_console().print(table)


@webhook_app.command("redeliver", help=message("help.redeliver"))
def webhook_redeliver(
    delivery_id: Annotated[str, typer.Argument(help=message("help.delivery_id"))], tenant: TenantOption = DEFAULT_TENANT
) -> None:
    """Retry a delivery under the same id."""
    with acting_for(tenant):
        from tenants.chats import outbox

        outbox.deliver_again(delivery_id)
    typer.echo(message("again", delivery_id=delivery_id))
