"""Database tables of work: jobs, answers to repeated requests, and leases of processes."""

from datetime import datetime

from sqlalchemy import JSON, BigInteger, Index, String, Text
from sqlalchemy.orm import Mapped, mapped_column

from tenants.storage.sealed import SealedText
from tenants.storage.tables import TENANT_ID, Base, TenantKeyed


class IdempotencyRow(TenantKeyed, Base):
    """A request that carries an `Idempotency-Key`, and the answer it got; None while the process `holder` is at it."""

    __tablename__ = "idempotency"
    __table_args__ = (Index("ix_idempotency_created", "created_at"),)

    subject: Mapped[str] = mapped_column(TENANT_ID, primary_key=True)
    key: Mapped[str] = mapped_column(TENANT_ID, primary_key=True)
    request_hash: Mapped[str] = mapped_column(String(64))
    answer: Mapped[str | None] = mapped_column(SealedText)
    holder: Mapped[str] = mapped_column(String(32), server_default="")
    created_at: Mapped[datetime]


class JobRow(TenantKeyed, Base):
    """A job: files to ingest and documents to remove, with the result.

    `revision` increases with every visible change of the job, `attempts` with every start without progress beyond
    `farthest` documents, `faults` with every error that ended an attempt. `holder` is the process that started it last.
    """

    __tablename__ = "jobs"
    __table_args__ = (Index("ix_jobs_state", "state", "tenant_id"),)

    job_id: Mapped[str] = mapped_column(String(32), primary_key=True)
    subject: Mapped[str] = mapped_column(TENANT_ID)
    kind: Mapped[str] = mapped_column(String(16))
    state: Mapped[str] = mapped_column(String(16), default="queued")
    files: Mapped[list[str]] = mapped_column(JSON)
    gone: Mapped[list[str]] = mapped_column(JSON)
    size: Mapped[int] = mapped_column(BigInteger)
    progress: Mapped[dict[str, object]] = mapped_column(JSON, default=dict)
    report: Mapped[dict[str, object] | None] = mapped_column(JSON)
    error: Mapped[str | None] = mapped_column(String(64))
    revision: Mapped[int] = mapped_column(default=1)
    attempts: Mapped[int] = mapped_column(default=0)
    farthest: Mapped[int] = mapped_column(default=0)
    faults: Mapped[int] = mapped_column(default=0)
    cancelling: Mapped[bool] = mapped_column(default=False)
    holder: Mapped[str] = mapped_column(String(32), default="", server_default="")
    created_at: Mapped[datetime]
    started_at: Mapped[datetime | None]
    begun_at: Mapped[datetime | None]
    finished_at: Mapped[datetime | None]


class LeaseRow(Base):
    """A claim of a process, for as long as `until` says in seconds since 1970; used on PostgreSQL.

    `wanted`: another process waits for it.
    """

    __tablename__ = "leases"

    name: Mapped[str] = mapped_column(Text, primary_key=True)
    holder: Mapped[str] = mapped_column(String(32))
    until: Mapped[float]
    wanted: Mapped[bool]
