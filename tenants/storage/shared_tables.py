"""The tables that replicas share for a while: leases, the records on their way to the audit, uploads, streams."""

from datetime import datetime

from sqlalchemy import ForeignKeyConstraint, Index, LargeBinary, String, Text
from sqlalchemy.orm import Mapped, mapped_column

from tenants.storage.sealed import SealedText
from tenants.storage.tables import TENANT_ID, Base, TenantKeyed, TenantOwned


class InstallationRow(Base):
    """Something that holds for the installation as a whole, sealed."""

    __tablename__ = "installation"

    name: Mapped[str] = mapped_column(String(64), primary_key=True)
    value: Mapped[str] = mapped_column(SealedText)


class LeaseRow(Base):
    """A claim of a process, for as long as `until` says in seconds since 1970; used on PostgreSQL.

    `wanted`: another process waits for it.
    """

    __tablename__ = "leases"

    name: Mapped[str] = mapped_column(Text, primary_key=True)
    holder: Mapped[str] = mapped_column(String(32))
    until: Mapped[float]
    wanted: Mapped[bool]


class SpooledRow(Base):
    """A record on its way to the audit, as a line of the spool. Ids sort by the time they were made."""

    __tablename__ = "audit_spool"

    spooled_id: Mapped[str] = mapped_column(String(32), primary_key=True)
    line: Mapped[bytes] = mapped_column(LargeBinary)


class StreamRow(TenantKeyed, Base):
    """A streamed turn that its reader may come back to, at any replica. `holder` is the process that runs it."""

    __tablename__ = "streams"
    __table_args__ = (Index("ix_streams_begun", "begun_at"),)

    turn_id: Mapped[str] = mapped_column(String(128), primary_key=True)
    owner: Mapped[str] = mapped_column(String(64))
    holder: Mapped[str] = mapped_column(String(32))
    request_hash: Mapped[str] = mapped_column(String(64))
    begun_at: Mapped[datetime]


class StreamEventRow(TenantOwned, Base):
    """An event of such a stream."""

    __tablename__ = "stream_events"
    __table_args__ = (
        ForeignKeyConstraint(
            ["tenant_id", "turn_id"],
            ["streams.tenant_id", "streams.turn_id"],
            ondelete="CASCADE",
            name="fk_event_stream",
        ),
    )

    tenant_id: Mapped[str] = mapped_column(TENANT_ID, primary_key=True)
    turn_id: Mapped[str] = mapped_column(String(128), primary_key=True)
    number: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    name: Mapped[str] = mapped_column(String(32))
    data: Mapped[str] = mapped_column(SealedText)
