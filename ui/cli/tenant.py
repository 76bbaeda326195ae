"""`opora tenant`: the tenants of an installation, and each one's policy and sign-in."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, get_args

import typer

from components.language.texts import keys, terminal_locale, text
from pipelines.ask import profiles
from settings import get_settings
from tenants.access import issued_tokens
from tenants.accounts import policy, registry
from tenants.accounts import settings_history as history
from tenants.accounts.policy import Policy
from tenants.accounts.registry import Registry, TenantRecord
from tenants.accounts.settings_history import AREAS, SettingChange
from tenants.core.context import COMMAND_LINE, SCOPES
from tenants.core.errors import Invalid
from tenants.desk import invitations, sso_providers
from tenants.insight import totals
from tenants.insight.totals import TenantSize
from tenants.privacy import removal
from tenants.work import locks
from ui.api.settings import sign_in_answer
from ui.cli.terminal import (
    CommandGroup,
    Json,
    LocaleOption,
    acting_for,
    checked_locale,
    print_json,
    print_table,
    read_json,
    texts,
)

group = CommandGroup("cli", prefix="tenant_")
message = group.message
policy_message, installation_message = texts("policy"), texts("installation")

TenantId = Annotated[str, typer.Argument(help=message("help.tenant_id"))]


@group.installation_command("policy")
def tenant_policy(
    tenant_id: TenantId,
    changes: Annotated[list[str], typer.Option("--set", metavar="NAME=VALUE", help=policy_message("help.set"))] = [],  # noqa: B006 - Typer copies defaults
    defaults: Annotated[list[str], typer.Option("--unset", metavar="NAME", help=policy_message("help.unset"))] = [],  # noqa: B006
    as_json: Json = False,
) -> None:
    fields = Policy.model_fields
    values = dict(map(_parsed, changes))
    unset = {*defaults, *(name for name, value in values.items() if value is None and not _takes_null(name))}
    if unknown := unset - set(fields):
        raise Invalid("policy_invalid", field=min(unknown))
    values = {name: fields[name].get_default(call_default_factory=True) for name in unset} | {
        name: value for name, value in values.items() if name not in unset or value is not None
    }
    with acting_for(tenant_id):
        if values:
            profiles.apply_policy(values)
        now = policy.current()
    if as_json:
        print_json(now)
    else:
        _print_policy(now, values or fields)


def _parsed(change: str) -> tuple[str, object]:
    """Parse a name and a value; the value is read as JSON if possible, otherwise as text."""
    name, equals, value = change.partition("=")
    if not equals:
        raise Invalid("policy_invalid", field=change)
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value


def _takes_null(name: str) -> bool:
    """Return whether null is a value of the rule, such as no hour at all; for other rules it restores the default."""
    return name in Policy.model_fields and type(None) in get_args(Policy.model_fields[name].annotation)


def _print_policy(now: Policy, names: Iterable[str]) -> None:
    shown = now.model_dump(mode="json")
    rows = (
        (
            name,
            shown[name] if isinstance(shown[name], str) else json.dumps(shown[name], ensure_ascii=False),
            _meaning(name),
        )
        for name in names
    )
    print_table((policy_message(name) for name in ("name", "value", "meaning")), rows)


def _meaning(name: str) -> str:
    """Return what a setting means, in the words of the desk unless the value looks different there."""
    locale = terminal_locale()
    own = f"policy.field.{name}"
    if keys(own):
        return text(own, locale)
    label, hint = (text(f"desk.settings.policy.{name}.{part}", locale) for part in ("label", "hint"))
    return f"{label}. {hint}"


@group.installation_command("suspend")
def tenant_suspend(tenant_id: TenantId) -> None:
    registry.suspend(tenant_id, COMMAND_LINE)
    typer.echo(installation_message("suspended", tenant_id=tenant_id))


@group.installation_command("resume")
def tenant_resume(tenant_id: TenantId) -> None:
    registry.resume(tenant_id, COMMAND_LINE)
    typer.echo(installation_message("resumed", tenant_id=tenant_id))


@group.installation_command("invite")
def tenant_invite(tenant_id: TenantId) -> None:
    """Print only a link for a tenant's first admin, so that scripts can capture it."""
    settings = get_settings()
    place = locks.service_place(settings) or settings
    typer.echo(f"{place.browsed_at}/desk/invitation/{invitations.renew(tenant_id)}")


@group.installation_command("remove")
def tenant_remove(
    tenant_id: TenantId,
    yes: Annotated[bool, typer.Option("--yes", help=installation_message("help.unasked"))] = False,
    as_json: Json = False,
) -> None:
    Registry().get(tenant_id)
    confirmation = installation_message("remove.confirm", tenant_id=tenant_id)
    typed = tenant_id if yes else typer.prompt(confirmation, err=True)
    removed = removal.remove_confirmed(tenant_id, typed)
    if as_json:
        print_json({"tenant_id": tenant_id, "rows": removed.rows})
    else:
        typer.echo(installation_message("remove.done", tenant_id=tenant_id, rows=sum(removed.rows.values())))


@group.installation_command("sign-in")
def tenant_sign_in(
    tenant_id: TenantId,
    file: Annotated[
        Path | None, typer.Option("--set", exists=True, dir_okay=False, help=policy_message("help.provider"))
    ] = None,
    clear: Annotated[bool, typer.Option("--clear", help=policy_message("help.clear_provider"))] = False,
) -> None:
    with acting_for(tenant_id):
        if file is not None:
            sso_providers.put(sso_providers.parsed(read_json(file, "provider_invalid", field=file.name)))
        elif clear:
            sso_providers.remove()
        print_json(sign_in_answer())


def _print_changes(found: Sequence[SettingChange]) -> None:
    rows = (
        (
            f"{one.at:%Y-%m-%d %H:%M}",
            one.by,
            " ".join(filter(None, (one.area, one.about, one.act))),
            ", ".join({**one.before, **one.after}),
        )
        for one in found
    )
    print_table((policy_message(f"column.{name}") for name in ("at", "by", "what", "fields")), rows)


@group.installation_command("changes", show=_print_changes)
def tenant_changes(
    tenant_id: TenantId,
    area: Annotated[str, typer.Option(help=policy_message("help.area", areas=", ".join(AREAS)))] = "",
    limit: Annotated[int, typer.Option(min=1, max=500)] = 50,
) -> Sequence[SettingChange]:
    chosen = next((one for one in AREAS if one == area), None)
    if area and chosen is None:
        raise Invalid("area_unknown", area=area, areas=", ".join(AREAS))
    with acting_for(tenant_id):
        return history.latest(chosen, limit=limit)


@group.installation_command("add")
def tenant_add(
    tenant_id: TenantId,
    name: Annotated[str, typer.Option(help=message("help.name"))] = "",
    locale: LocaleOption = "",
) -> None:
    Registry().add(tenant_id, name=name, locale=checked_locale(locale))
    typer.echo(message("tenant.added", tenant_id=tenant_id))


def _print_tenants(listed: Sequence[tuple[TenantRecord, TenantSize]]) -> None:
    if listed:
        columns = ("id", "name", "state", "documents", "chats", "storage", "created_at")
        group.print_columns(columns, (_row(*one) for one in listed), "tenant")
    else:
        typer.echo(message("tenant.none"), err=True)


def _as_json(tenant: TenantRecord, size: TenantSize) -> Mapping[str, object]:
    return {
        "tenant_id": tenant.tenant_id,
        "name": tenant.name,
        "locale": tenant.locale,
        "created_at": f"{tenant.created_at:%FT%TZ}",
        "suspended_at": f"{tenant.suspended_at:%FT%TZ}" if tenant.suspended_at else None,
        **asdict(size),
    }


@group.installation_command("list", show=_print_tenants, form=lambda listed: [_as_json(*one) for one in listed])
def tenant_list() -> Sequence[tuple[TenantRecord, TenantSize]]:
    sizes = totals.by_tenant()
    return [(tenant, sizes.get(tenant.tenant_id, TenantSize())) for tenant in Registry().list()]


def _row(tenant: TenantRecord, size: TenantSize) -> tuple[object, ...]:
    state = text(f"desk.tenants.state.{totals.state(tenant, size)}", terminal_locale())
    storage, created_at = f"{size.storage / 1_000_000:.1f}", f"{tenant.created_at:%F}"
    return tenant.tenant_id, tenant.name, state, size.documents, size.chats, storage, created_at


@group.installation_command("token")
def tenant_token(
    tenant_id: TenantId,
    scope: Annotated[list[str], typer.Option(help=message("help.scope"))] = ["ask"],  # noqa: B006 - Typer copies defaults
    ttl: Annotated[int, typer.Option(help=message("help.ttl"), min=1)] = 3600,
    subject: Annotated[str, typer.Option(help=message("help.subject"))] = COMMAND_LINE,
) -> None:
    """Print only a signed token for a registered tenant, so that scripts can capture it."""
    for name in scope:
        if name not in SCOPES:
            raise Invalid("scope_unknown", scope=name)
    with acting_for(tenant_id):
        _, token = issued_tokens.issue(subject=subject, scopes=scope, ttl_seconds=ttl)
    typer.echo(token)
