"""`opora webhook`: receivers of a tenant's chat events."""

from typing import Annotated

import typer

from components.ingest.fetch import canonical
from tenants.chats import outbox, webhooks
from ui.api.webhook import DeliveryPart, WebhookPart
from ui.cli.terminal import CommandGroup

group = CommandGroup("webhooks")
message = group.message

WebhookId = Annotated[str, typer.Argument(help=message("help.webhook_id"))]


def _print_webhooks(found: list[WebhookPart]) -> None:
    rows = ((one.webhook_id, one.url, ", ".join(one.events)) for one in found)
    group.print_columns(("webhook", "url", "events"), rows)


def _print_deliveries(found: list[DeliveryPart]) -> None:
    rows = ((one.delivery_id, one.event, one.state, one.fault) for one in found)
    group.print_columns(("delivery", "event", "state", "fault"), rows)


@group.tenant_command("add")
def webhook_add(
    url: Annotated[str, typer.Argument(help=message("help.url"))],
    events: Annotated[list[str] | None, typer.Option("--event", help=message("help.event"))] = None,
) -> None:
    added = webhooks.add(canonical(url), events or ())
    typer.echo(message("added", webhook_id=added.webhook_id, secret=added.secrets[0]))


@group.tenant_command("list", show=_print_webhooks)
def webhook_list() -> list[WebhookPart]:
    return [WebhookPart.model_validate(one) for one in webhooks.own()]


@group.tenant_command("remove")
def webhook_remove(webhook_id: WebhookId) -> None:
    webhooks.remove(webhook_id)
    typer.echo(message("removed", webhook_id=webhook_id))


@group.tenant_command("rotate")
def webhook_rotate(webhook_id: WebhookId) -> None:
    rotated = webhooks.rotate(webhook_id)
    typer.echo(message("added", webhook_id=rotated.webhook_id, secret=rotated.secrets[0]))


@group.tenant_command("test")
def webhook_test(webhook_id: WebhookId) -> None:
    typer.echo(message("again", delivery_id=outbox.enqueue_test(webhook_id)))


@group.tenant_command("deliveries", show=_print_deliveries)
def webhook_deliveries(
    dead: Annotated[bool, typer.Option("--dead", help=message("help.dead"))] = False,
) -> list[DeliveryPart]:
    return [DeliveryPart.model_validate(one) for one in outbox.latest(state="dead" if dead else None)]


@group.tenant_command("redeliver")
def webhook_redeliver(delivery_id: Annotated[str, typer.Argument(help=message("help.delivery_id"))]) -> None:
    outbox.deliver_again(delivery_id)
    typer.echo(message("again", delivery_id=delivery_id))
