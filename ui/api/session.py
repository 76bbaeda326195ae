"""`POST /widget/sessions`: a visitor token for a site, and the site's widget settings."""

from typing import Annotated

from fastapi import Request
from pydantic import BaseModel, Field

from components.language.texts import text
from pipelines.ask.chats.customer_chats import file_limit
from pipelines.ask.contract import QUESTION_LIMIT
from pipelines.ask.staffing import Staffing, staffing
from pipelines.connections import limited_as
from pipelines.routes import OpenRouter
from settings import get_settings
from tenants.access.quotas import RateLimiter
from tenants.accounts import policy, registry
from tenants.accounts.policy import Policy
from tenants.chats import sites
from tenants.chats.sites import Consent, Site
from tenants.chats.visitors import IDENTIFIED, TOKEN_SECONDS, Visitors, check_origin
from tenants.core.context import Tenant, acting_as


class SessionRequest(BaseModel, extra="forbid"):
    """Site, by public key, and the visitor's identity.

    `identity` is a JWT of the tenant's own server, `visitor` the token of an earlier session.
    """

    site: Annotated[str, Field(min_length=1, max_length=64)]
    identity: Annotated[str, Field(max_length=4_096)] | None = None
    visitor: Annotated[str, Field(max_length=4_096)] | None = None


class LimitsPart(BaseModel):
    """Upload and message limits: bytes per file (0: no files), characters per message."""

    file_bytes: int
    question: int


class SitePart(BaseModel):
    """Widget content before the first message."""

    name: str
    locale: str
    theme: dict[str, str]
    welcome: str
    suggested: tuple[str, ...]
    consent: Consent | None
    hours: Staffing | None
    limits: LimitsPart


class SessionAnswer(BaseModel):
    """Visitor token, valid for `expires_in` seconds, and the site.

    `tools`: whether the visitor may branch chats and see what answers cost, by the policy `chat_tools`.
    """

    token: str
    expires_in: int
    subject: str
    tools: bool
    site: SitePart


def router(limiter: RateLimiter, visitors: Visitors) -> OpenRouter:
    endpoints = OpenRouter(None, limit=16_000, tags=["chats"])

    @endpoints.post("/widget/sessions")
    async def begin_session(body: SessionRequest, request: Request) -> SessionAnswer:
        """Start or renew a visitor's session. Needs no token, but an `Origin` that the site lists."""
        site = await sites.load(body.site)
        check_origin(site, request.headers.get("origin", ""), request.headers.get("host", ""))
        settings, address = get_settings(), limited_as(request)
        limits = {
            f"sessions of {address}": settings.visitor_sessions_per_minute,
            f"sessions of site {site.key}": settings.site_sessions_per_minute,
        }
        with acting_as(Tenant(site.tenant_id, "")):
            await limiter.admit_each(limits)
            await registry.admitted()
            site = await sites.renewed(site)
            rules = await policy.load()
            shown = site_part(site, rules)
        token = visitors.begin(site, identity=body.identity, visitor=body.visitor)
        tools = rules.has_chat_tools(identified=token.subject.startswith(IDENTIFIED))
        return SessionAnswer(
            token=token.token, expires_in=TOKEN_SECONDS, subject=token.subject, tools=tools, site=shown
        )

    return endpoints


def site_part(site: Site, rules: Policy) -> SitePart:
    config = site.config
    return SitePart(
        name=site.name,
        locale=config.locale,
        theme=config.theme,
        welcome=config.welcome or text("sites.welcome", config.locale),
        suggested=config.suggested,
        consent=config.consent,
        hours=staffing(config.hours or rules.hours, config.locale),
        limits=LimitsPart(file_bytes=file_limit(site, rules), question=QUESTION_LIMIT),
    )
