"""Identity provider of a tenant for signing in to the desk (OpenID Connect). Its secret is encrypted."""

from collections.abc import Mapping
from typing import Annotated, TypeAlias
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    Field,
    SecretStr,
    StringConstraints,
)
from sqlalchemy import JSON, Text
from sqlalchemy.orm import Mapped, mapped_column

from tenants.accounts import settings_history
from tenants.accounts.policy import Domain
from tenants.core.validation import FrozenModel, validated
from tenants.desk.operators import TenantRole
from tenants.storage import database
from tenants.storage.sealed import SealedText
from tenants.storage.tables import Base, TenantKeyed

_LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})


def _checked_issuer(issuer: str) -> str:
    """Check an issuer. Plain HTTP would expose codes and secrets on the network, so it is for this machine only."""
    try:
        parts = urlsplit(issuer)
        host = parts.hostname or ""
    except ValueError as broken:
        raise ValueError("issuer_invalid") from broken
    secure = parts.scheme == "https" or (parts.scheme == "http" and host in _LOOPBACK)
    if not secure or not host or "@" in parts.netloc or parts.query or parts.fragment:
        raise ValueError("issuer_invalid")
    return issuer


_Short: TypeAlias = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=300)]


class Provider(FrozenModel):
    """Sign-in settings of a tenant. Allowed are people with a verified e-mail address of a listed domain, and those
    added by their address. If `default_role` is None, only those who were added.

    :param role_claim: the token's claim for the role; empty to ignore roles.
    :param roles: maps values of the claim to roles; the most powerful one counts.
    """

    issuer: Annotated[str, StringConstraints(strip_whitespace=True, max_length=500), AfterValidator(_checked_issuer)]
    client_id: _Short
    client_secret: SecretStr | None = Field(None, max_length=1_000)
    domains: Annotated[tuple[Domain, ...], Field(max_length=50)] = ()
    role_claim: Annotated[str, StringConstraints(strip_whitespace=True, max_length=200)] = ""
    roles: Annotated[dict[_Short, TenantRole], Field(max_length=50)] = Field(default_factory=dict)
    default_role: TenantRole | None = None

    @property
    def secret(self) -> str:
        """Return the client's secret in plain text."""
        return self.client_secret.get_secret_value() if self.client_secret else ""


class SignInProviderRow(TenantKeyed, Base):
    """A tenant's identity provider."""

    __tablename__ = "sign_in_providers"
    unknown = "provider_unknown"

    issuer: Mapped[str] = mapped_column(Text)
    client_id: Mapped[str] = mapped_column(Text)
    client_secret: Mapped[str] = mapped_column(SealedText)
    rules: Mapped[dict[str, object]] = mapped_column(JSON)


def parsed(given: Mapping[str, object]) -> Provider:
    """Validate a provider. Raises `Invalid`, `provider_invalid`, with the field."""
    return validated(Provider, given, "provider_invalid")


def own() -> Provider | None:
    """Return the provider of the tenant in context; None if people sign in by password only."""
    with database.reading() as session:
        row = session.find(SignInProviderRow)
    return None if row is None else _provider(row)


def put(provider: Provider) -> Provider:
    """Store the provider. Without a secret, keep the stored one unless the issuer or the client changes."""
    with database.writing() as session:
        row = session.find(SignInProviderRow, lock=True)
        before = {} if row is None else _noted(_provider(row))
        if row is None:
            row = SignInProviderRow(issuer="", client_id="", client_secret="", rules={})
            session.add(row)
        same = (row.issuer, row.client_id) == (provider.issuer, provider.client_id)
        if provider.client_secret is not None:
            row.client_secret = provider.secret
            if before:
                settings_history.note(session, "sign_in", "rotated", provider.issuer)
        elif not same:
            # Changing the address must not send the secret to a new server.
            row.client_secret = ""
        row.issuer, row.client_id = provider.issuer, provider.client_id
        row.rules = provider.model_dump(mode="json", include={"domains", "role_claim", "roles", "default_role"})
        stored = _provider(row)
        settings_history.note(
            session, "sign_in", "changed" if before else "added", provider.issuer, before, _noted(stored)
        )
    return stored


def remove() -> None:
    """Remove the provider: people sign in by password only. Raises `NotFound`: `provider_unknown`."""
    with database.writing() as session:
        row = session.existing(SignInProviderRow)
        settings_history.note(session, "sign_in", "removed", row.issuer, _noted(_provider(row)))
        session.delete(row)


def _noted(provider: Provider) -> dict[str, object]:
    return provider.model_dump(mode="json", exclude={"client_secret"})


def _provider(row: SignInProviderRow) -> Provider:
    known = {"issuer": row.issuer, "client_id": row.client_id, "client_secret": row.client_secret or None}
    return Provider.model_validate({**known, **row.rules})
