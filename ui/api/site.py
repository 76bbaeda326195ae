"""`/sites`: the websites that show a tenant's widget."""

from datetime import datetime
from typing import Annotated, TypeAlias

from pydantic import BaseModel, Field

from pipelines.routes import OpenRouter
from tenants.chats import sites
from tenants.chats.sites import MAX_ORIGINS, Site, SiteConfig

_SITES, _SITE = "/sites", "/sites/{key}"

_Origins: TypeAlias = Annotated[tuple[Annotated[str, Field(max_length=300)], ...], Field(max_length=MAX_ORIGINS)]
_Name: TypeAlias = Annotated[str, Field(min_length=1, max_length=200)]


class NewSite(BaseModel, extra="forbid"):
    """Site to add. `identified`: the tenant's own server signs the identity of visitors.

    Its key is always a new one. Threat: with a chosen key, a tenant would receive the visitors of another tenant's
    removed site, whose key is still in that shop's pages, or those of the service's demo page.
    """

    name: _Name
    origins: _Origins = ()
    config: SiteConfig = SiteConfig()
    identified: bool = False
    identity_required: bool = False


class SiteChange(BaseModel, extra="forbid"):
    """Changes to a site; omitted fields stay unchanged. `version` is the site version that the caller saw."""

    version: Annotated[str, Field(max_length=32)] = ""
    name: _Name | None = None
    origins: _Origins | None = None
    config: dict[str, object] = Field(default_factory=dict, description="Fields of a site's `config`.")
    identity_required: bool | None = None


class Rotation(BaseModel, extra="forbid"):
    """`revoke`: reject older visitor tokens immediately. `identity`: replace the identity secret as well."""

    revoke: bool = False
    identity: bool = False


class SitePart(BaseModel):
    """Site without its secrets; `identity_secret` is present once, when it has just been created."""

    key: str
    name: str
    origins: tuple[str, ...]
    config: SiteConfig
    identified: bool
    identity_required: bool
    created_at: datetime
    version: str
    identity_secret: str | None = None


class SitesAnswer(BaseModel):
    """A tenant's sites by name."""

    sites: tuple[SitePart, ...]


router = OpenRouter("admin", limit=100_000, tags=["sites"])


@router.get(_SITES)
def list_sites() -> SitesAnswer:
    """List all sites."""
    return SitesAnswer(sites=tuple(map(site_part, sites.own())))


@router.post(_SITES)
def add_site(body: NewSite) -> SitePart:
    """Add a site. Its identity secret, if any, is shown only once."""
    return site_part(sites.add(**dict(body)), secret=True)


@router.get(_SITE)
def read_site(key: str) -> SitePart:
    """Return one site."""
    sites.refresh()
    return site_part(sites.get(key))


@router.patch(_SITE)
def change_site(key: str, body: SiteChange) -> SitePart:
    """Change the given fields. Returns 409 if the site has a newer version than `version`."""
    return site_part(sites.update(key, **dict(body)))


@router.post(f"{_SITE}/rotate")
def rotate_secrets(key: str, body: Rotation) -> SitePart:
    """Sign visitor tokens with a new secret from now on."""
    return site_part(sites.rotate(key, revoke=body.revoke, identity=body.identity), secret=body.identity)


@router.delete(_SITE)
def remove_site(key: str) -> SitesAnswer:
    """Remove a site; its chats are kept. Returns the remaining sites."""
    sites.remove(key)
    return list_sites()


def site_part(site: Site, *, secret: bool = False) -> SitePart:
    return SitePart(
        key=site.key,
        name=site.name,
        origins=site.origins,
        config=site.config,
        identified=site.identity_secret is not None,
        identity_required=site.identity_required,
        created_at=site.created_at,
        version=sites.version_of(site),
        identity_secret=site.identity_secret if secret else None,
    )
