"""Bases and column types of all tables, the same on SQLite and PostgreSQL. Every key starts with the tenant.

Each package has its tables in a `tables.py`. Here are those that packages below their owner read: tenants, the state of
their lexicons, and values of the installation.
"""

from datetime import UTC, datetime
from typing import TYPE_CHECKING, ClassVar, TypeAlias

from sqlalchemy import (
    JSON,
    Dialect,
    ForeignKey,
    String,
    Text,
    TypeDecorator,
)
from sqlalchemy import DateTime as SqlDateTime
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column
from sqlalchemy.types import TypeEngine

from tenants.core.errors import NotFound
from tenants.storage.sealed import SealedText

if TYPE_CHECKING:
    from tenants.core.json import Json

    JsonObject: TypeAlias = dict[str, Json]
else:  # SQLAlchemy reads annotations at run time, and cannot follow a type that holds itself.
    JsonObject = dict

TENANT_ID = String(255)
KEY = String(512)


class UtcDateTime(TypeDecorator[datetime]):
    """An aware moment in UTC. SQLite keeps no offset, so it is cut off on the way in and put back on the way out."""

    impl = SqlDateTime
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:  # noqa: ARG002
        return None if value is None else value.astimezone(UTC).replace(tzinfo=None)

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:  # noqa: ARG002
        return None if value is None else value.replace(tzinfo=UTC)


class Base(DeclarativeBase):
    """Base of all tables; maps Python types to column types.

    :cvar unknown: the code of `NotFound` for a row that does not exist.
    """

    unknown: ClassVar[str] = NotFound.code

    type_annotation_map: ClassVar[dict[type, TypeEngine[datetime] | type[TypeDecorator[datetime]]]] = {
        datetime: UtcDateTime
    }


class TenantOwned:
    """Mixin of tables whose rows belong to a tenant. Sessions restrict every query to theirs."""

    tenant_id: Mapped[str] = mapped_column(TENANT_ID)


class TenantKeyed(TenantOwned):
    """Mixin of tables whose key starts with the tenant."""

    tenant_id: Mapped[str] = mapped_column(TENANT_ID, ForeignKey("tenants.tenant_id"), primary_key=True, sort_order=-1)


class TenantRow(TenantOwned, Base):
    """A customer of the installation: its policy and the location of its chunks."""

    __tablename__ = "tenants"
    unknown = "tenant_unknown"

    tenant_id: Mapped[str] = mapped_column(TENANT_ID, primary_key=True)
    name: Mapped[str] = mapped_column(Text)
    locale: Mapped[str] = mapped_column(String(8))
    policy: Mapped[dict[str, object]] = mapped_column(JSON)
    collection: Mapped[str] = mapped_column(String(190), unique=True)
    generation: Mapped[int]
    newest_generation: Mapped[int]
    relations: Mapped[int] = mapped_column(default=0)
    document_changes: Mapped[int] = mapped_column(default=0, server_default="0")
    created_at: Mapped[datetime]
    suspended_at: Mapped[datetime | None]


class LexiconStateRow(TenantKeyed, Base):
    """The newest revision of a tenant's lexicon and whether an ingest run is, or was left, in the middle of it."""

    __tablename__ = "lexicon_states"

    revision: Mapped[int]
    dirty: Mapped[bool]


class InstallationRow(Base):
    """Something that holds for the installation as a whole, sealed."""

    __tablename__ = "installation"

    name: Mapped[str] = mapped_column(String(64), primary_key=True)
    value: Mapped[str] = mapped_column(SealedText)
