"""The tables that replicas share: secrets of the installation, leases, and records on their way to the audit."""

from sqlalchemy import LargeBinary, String, Text
from sqlalchemy.orm import Mapped, mapped_column

from tenants.storage.sealed import SealedText
from tenants.storage.tables import Base


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
