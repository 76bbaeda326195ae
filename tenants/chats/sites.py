"""Websites with a tenant's widget: public keys, allowed origins, and secrets of visitor tokens.

The key is public, part of the page, and proves nothing: it identifies the site. The browser's `Origin` header tells
where the key is used.
"""

import re
from asyncio import to_thread
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from secrets import token_hex, token_urlsafe
from types import MappingProxyType
from typing import Annotated, Literal, TypeAlias, get_args
from urllib.parse import urlsplit

from pydantic import Field, StringConstraints
from sqlalchemy import select

from settings import get_settings
from tenants.accounts import policy, settings_history
from tenants.accounts.hours import Hours
from tenants.chats.tables import SiteRow
from tenants.core import context
from tenants.core.context import Tenant, acting_as
from tenants.core.errors import Clash, Complaint, Invalid, InvalidFields, NotFound
from tenants.core.validation import FrozenModel, validated
from tenants.storage import database
from tenants.storage.cache import Key, TenantCache
from tenants.storage.mapping import record_of

ANY_ORIGIN = "*"
SECRET_AGE = timedelta(days=30)
"""Time for which a secret signs visitor tokens. The previous one recognises returning visitors for the same time."""

MAX_SECRETS = 3
MAX_SITES = 100
MAX_ORIGINS = 100
_MAX_NAME = 200
_UNCHANGED: Mapping[str, object] = MappingProxyType({})

_ORIGIN = re.compile(r"https?://(\[[0-9a-f:]+\]|[a-z0-9._-]+)(:\d{1,5})?")
_ShortText: TypeAlias = Annotated[str, StringConstraints(strip_whitespace=True, max_length=500)]
_Name: TypeAlias = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z_-]{0,31}$")]
HelpCentre: TypeAlias = Literal["off", "hidden", "listed"]
HELP_CENTRES: tuple[HelpCentre, ...] = get_args(HelpCentre)
_Value: TypeAlias = Annotated[str, StringConstraints(pattern=r"^[#A-Za-z0-9 .,%()_-]{1,64}$")]


class Consent(FrozenModel):
    """Consent that visitors give before they write: the text beside an unticked box, and a link to the details."""

    text: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=2_000)]
    url: Annotated[str, StringConstraints(pattern=r"^https?://[^\s\"'<>\\]+$", max_length=2_000)] | None = None


class SiteConfig(FrozenModel):
    """Settings of a site's widget and help centre.

    `help_centre`: `off`, `hidden` from search engines, or `listed` in them.
    """

    locale: Literal["ru", "en"] = "ru"
    theme: dict[_Name, _Value] = Field(default_factory=dict, max_length=20)
    welcome: _ShortText = ""
    suggested: Annotated[tuple[_ShortText, ...], Field(max_length=6)] = ()
    consent: Consent | None = None
    files: bool = True
    hours: Hours | None = None
    help_centre: HelpCentre = "hidden"


@dataclass(frozen=True, slots=True)
class Site:
    """A site. `secrets` sign visitor tokens, newest first; `identity_secret` verifies identity tokens signed by the
    tenant's own site, None if it signs none."""

    key: str
    tenant_id: str
    name: str
    origins: tuple[str, ...]
    config: SiteConfig
    secrets: tuple[str, ...]
    identity_secret: str | None
    identity_required: bool
    created_at: datetime
    renewed_at: datetime

    def allows_origin(self, origin: str) -> bool:
        """Whether pages of this origin may show the site's widget."""
        return origin in self.origins or ANY_ORIGIN in self.origins

    @property
    def has_help_centre(self) -> bool:
        """Whether the tenant's documents are public pages. Never where visitors must prove who they are."""
        return self.config.help_centre != "off" and not self.identity_required


_SITES: TenantCache[Mapping[str, Site]] = TenantCache("sites", size_of=lambda sites: 1 + len(sites))
_OWNERS: TenantCache[str] = TenantCache("site_owners")
"""Tenants of the sites, by key."""


def find(key: str) -> Site:
    """Return the site with a public key, of any tenant. Raises `NotFound` with the code `site_unknown`."""
    tenant_id = _OWNERS.get(_cache_key(key), lambda _: _owner(key))
    site = _of_tenant(tenant_id).get(key)
    if site is None:
        # It is newer than the cached sites, or it was removed.
        _OWNERS.drop(key)
        _SITES.drop(tenant_id)
        site = _of_tenant(tenant_id).get(key)
    if site is None:
        raise NotFound("site_unknown")
    return site


async def load(key: str) -> Site:
    """Call `find`. Safe on the event loop: a database query runs in a thread."""
    tenant_id = _OWNERS.peek(_cache_key(key))
    known = None if tenant_id is None else _SITES.peek(_cache_key(tenant_id))
    return known[key] if known is not None and key in known else await to_thread(find, key)


def own() -> tuple[Site, ...]:
    """Return the sites of the tenant in context, by name."""
    return tuple(sorted(_of_tenant(context.current().tenant_id).values(), key=lambda one: one.name))


def get(key: str) -> Site:
    """Return a site of the tenant in context. Raises `NotFound` with the code `site_unknown`."""
    site = find(key)
    if site.tenant_id != context.current().tenant_id:
        raise NotFound("site_unknown")
    return site


def add(
    name: str,
    origins: Sequence[str],
    config: SiteConfig | None = None,
    *,
    identified: bool = False,
    identity_required: bool = False,
    key: str = "",
) -> Site:
    """Add a site of the tenant in context.

    :param origins: such as `https://shop.example`; `*` allows all, including clients that are not browsers.
    :param identified: the tenant's own site signs identity tokens of its visitors.
    :param identity_required: refuse visitors without an identity token.
    :param key: a chosen public key, never one from a request; random if empty.
    :raises Invalid: `origin_invalid` with the origin, `origins_too_many`, `site_key_invalid`, `site_invalid` with the
        field `name`, `sites_too_many`.
    """
    if key and not re.fullmatch(r"[A-Za-z0-9_-]{4,64}", key):
        raise Invalid("site_key_invalid")
    row = SiteRow(
        key=key or f"site_{token_hex(12)}",
        name=_checked_name(name),
        origins=_checked_origins(origins),
        config=_in_own_locale(config or SiteConfig()).model_dump(mode="json"),
        secrets=[_secret()],
        identity_secret=_random_secret() if identified or identity_required else None,
        identity_required=identity_required,
        created_at=datetime.now(UTC),
    )
    # The key may belong to a site of another tenant.
    with Invalid("site_key_invalid").instead_of(Clash), database.writing() as session:
        session.check_room(SiteRow, MAX_SITES, "sites_too_many")
        session.add(row)
        settings_history.note(session, "site", "added", row.key, after=_settings_of(_site(row)))
    return _refreshed(row)


def hours(key: str) -> Hours | None:
    """Return the opening hours for the chats of a site: the site's own, else the tenant's. `key` may be empty."""
    own_hours = None
    if key:
        with suppress(NotFound):  # it was removed, and its chats stay
            own_hours = get(key).config.hours
    return own_hours or policy.current().hours


def set_hours(key: str, chosen: Hours | None, *, version: str = "") -> None:
    """Set the hours of a site, or, with an empty key, the tenant's. None removes them: a site then follows the tenant.

    :param version: of the site or of the policy that the caller has read.
    :raises Conflict: `settings_changed`.
    """
    if not key:
        policy.apply({"hours": chosen}, version)
    else:
        update(key, version=version, config={"hours": chosen})


def update(
    key: str,
    *,
    version: str = "",
    name: str | None = None,
    origins: Sequence[str] | None = None,
    config: Mapping[str, object] = _UNCHANGED,
    identity_required: bool | None = None,
) -> Site:
    """Change some settings of a site of the tenant in context.

    :param version: of the site that the caller has read (`version_of`); empty skips the check.
    :param config: fields of `SiteConfig`.
    :param identity_required: true gives the site an identity secret if it has none.
    :raises Invalid: the errors of `add`, `site_invalid` with the field.
    :raises Conflict: `settings_changed`, if the site has changed since.
    """
    with database.writing() as session:
        row = session.existing(SiteRow, key, lock=True)
        before = _settings_of(_site(row))
        settings_history.check_version(version, before)
        chosen = parsed({**SiteConfig.model_validate(row.config).model_dump(), **config})
        row.config = chosen.model_dump(mode="json")
        row.name = row.name if name is None else _checked_name(name)
        row.origins = row.origins if origins is None else _checked_origins(origins)
        row.identity_required = row.identity_required if identity_required is None else identity_required
        if row.identity_required and row.identity_secret is None:
            row.identity_secret = _random_secret()
        settings_history.note(session, "site", "changed", key, before, _settings_of(_site(row)))
    return _refreshed(row)


def version_of(site: Site) -> str:
    """Return the version of a site's settings that a form was filled in from."""
    return settings_history.version_of(_settings_of(site))


def remove(key: str) -> None:
    """Take a site of the tenant in context away, and with it the tokens of its visitors. Its chats stay."""
    with database.writing() as session:
        session.delete(row := session.existing(SiteRow, key))
        settings_history.note(session, "site", "removed", key, _settings_of(_site(row)))
    expire()


def rotate(key: str, *, revoke: bool = False, identity: bool = False) -> Site:
    """Sign visitor tokens with a new secret from now on.

    :param revoke: tokens signed before are refused at once: a secret has leaked.
    :param identity: the identity secret is replaced, too.
    """
    with database.writing() as session:
        row = session.existing(SiteRow, key, lock=True)
        row.secrets = [_secret(), *(() if revoke else row.secrets)][:MAX_SECRETS]
        if identity:
            row.identity_secret = _random_secret()
        settings_history.note(session, "site", "revoked" if revoke else "rotated", key)
    return _refreshed(row)


def renew(site: Site, now: datetime | None = None) -> Site:
    """Return the site with a recent secret; create a new secret if the current one is too old."""
    now = now or datetime.now(UTC)
    if now - site.renewed_at < SECRET_AGE:
        return site
    with acting_as(Tenant(site.tenant_id, "")):
        with database.writing() as session:
            row = session.existing(SiteRow, site.key, lock=True)
            # Another replica may have been quicker.
            if now - _renewed_at(row) >= SECRET_AGE:
                row.secrets = [_secret(), *row.secrets][:MAX_SECRETS]
        return _refreshed(row)


def checked_origin(origin: str) -> str:
    """Return an origin as browsers write it. Raises `Invalid` with the code `origin_invalid`."""
    if origin == ANY_ORIGIN:
        return origin
    origin_text = origin.strip().lower().rstrip("/")
    if not _ORIGIN.fullmatch(origin_text):
        raise Invalid("origin_invalid", origin=origin[:200])
    parts = urlsplit(origin_text)
    default = {"http": ":80", "https": ":443"}[parts.scheme]
    return origin_text.removesuffix(default)


def _checked_origins(origins: Sequence[str]) -> list[str]:
    if len(origins) > MAX_ORIGINS:
        raise Invalid("origins_too_many", limit=MAX_ORIGINS)
    return [checked_origin(one) for one in origins]


def parsed(given: Mapping[str, object]) -> SiteConfig:
    """Validate a configuration. Raises `Invalid` with the code `site_invalid` and the field."""
    return validated(SiteConfig, given, "site_invalid")


async def renewed(site: Site) -> Site:
    """Call `renew` if a new secret is due. Safe on the event loop."""
    return site if datetime.now(UTC) - site.renewed_at < SECRET_AGE else await to_thread(renew, site)


def expire() -> None:
    """Expire the sites of the tenant in context after a commit that changed them."""
    _SITES.expire(_cache_key(context.current().tenant_id))


def refresh() -> None:
    """Reload the sites of the tenant in context in this process; other processes are not notified."""
    _SITES.drop(context.current().tenant_id)


def _of_tenant(tenant_id: str) -> Mapping[str, Site]:
    def read(_known: Mapping[str, Site] | None) -> Mapping[str, Site]:
        with acting_as(Tenant(tenant_id, "")), database.reading() as session:
            return {row.key: _site(row) for row in session.scalars(select(SiteRow))}

    return _SITES.get(_cache_key(tenant_id), read)


def _owner(key: str) -> str:
    with database.across_tenants() as session:
        tenant_id = session.scalar(select(SiteRow.tenant_id).where(SiteRow.key == key))
    if tenant_id is None:
        raise NotFound("site_unknown")
    return tenant_id


def _in_own_locale(config: SiteConfig) -> SiteConfig:
    """Set the locale to the tenant's, unless the configuration names one."""
    if "locale" in config.model_fields_set:
        return config
    return config.model_copy(update={"locale": policy.current().locale})


def _checked_name(name: str) -> str:
    named = " ".join(name.split())
    if not 1 <= len(named) <= _MAX_NAME or "\0" in named:
        kind = "string_too_long" if named else "missing"
        raise InvalidFields("site_invalid", Complaint(("name",), kind, {"max_length": _MAX_NAME}))
    return named


def _settings_of(site: Site) -> Mapping[str, object]:
    """Return the settings of a site as recorded in the change history."""
    own_fields = {"name": site.name, "origins": list(site.origins), "identity_required": site.identity_required}
    return {**own_fields, **site.config.model_dump(mode="json")}


def _cache_key(name: str) -> Key:
    return get_settings().database, name


def _refreshed(row: SiteRow) -> Site:
    expire()
    return _site(row)


def _secret() -> dict[str, str]:
    return {"secret": _random_secret(), "created_at": datetime.now(UTC).isoformat()}


def _random_secret() -> str:
    return token_urlsafe(48)


def _renewed_at(row: SiteRow) -> datetime:
    return datetime.fromisoformat(row.secrets[0]["created_at"])


def _site(row: SiteRow) -> Site:
    secrets = tuple(one["secret"] for one in row.secrets)
    config = SiteConfig.model_validate(row.config)
    return record_of(Site, row, config=config, secrets=secrets, renewed_at=_renewed_at(row))
