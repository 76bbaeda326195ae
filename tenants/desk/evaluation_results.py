"""Runs over a tenant's own evaluation questions: their progress, their figures, and what became worse."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from secrets import token_hex
from typing import Any, Literal, TypeAlias

from sqlalchemy import Select, func, select, update

from tenants.accounts import policy
from tenants.chats import mail, outbox
from tenants.desk.tables import EvaluationResultRow, OperatorRow
from tenants.storage import database
from tenants.storage.mapping import record_of, records
from tenants.storage.tables import JsonObject
from tenants.storage.tenant_session import TenantSession

MOST_ALERTED = 20
"""Administrators who get an alert by e-mail."""
MOST = 100
"""Runs that are kept of a tenant; the oldest goes for a new one."""

_A_DAY = timedelta(hours=20)  # one night's run may end earlier than that of the night before
_UNSEEN = (EvaluationResultRow.state == "done", EvaluationResultRow.seen_at.is_(None))

State: TypeAlias = Literal["running", "done", "stopped"]


@dataclass(frozen=True, slots=True)
class EvaluationResult:
    """A run. `figures` are counts, and empty before the end; `reason` is the cause of a stop.

    `loss` holds the shares that became worse since the run before, beyond noise; None without a loss. `seen_at` is
    the time of its acknowledgement.
    """

    run_id: str
    created_at: datetime
    updated_at: datetime
    nightly: bool
    state: State
    reason: str
    done: int
    total: int
    figures: JsonObject
    loss: JsonObject | None
    seen_at: datetime | None


def begin(total: int, *, nightly: bool) -> str:
    """Start a run and return its id. Runs that no process finished are closed as interrupted.

    Call it under the claim of the tenant's evaluation, which makes sure that no process is at work on those.
    """
    now, run_id = datetime.now(UTC), token_hex(8)
    newest = _own(EvaluationResultRow.run_id).limit(MOST)
    with database.writing() as session:
        session.execute(
            update(EvaluationResultRow)
            .where(EvaluationResultRow.state == "running")
            .values(state="stopped", reason="interrupted")
        )
        session.add(
            EvaluationResultRow(run_id=run_id, created_at=now, updated_at=now, nightly=nightly, total=total, loss=None)
        )
        session.flush()
        session.remove(EvaluationResultRow, EvaluationResultRow.run_id.not_in(newest))
    return run_id


def progress(run_id: str, done: int) -> None:
    """Store how many questions were asked."""
    with database.writing() as session:
        row = session.existing(EvaluationResultRow, run_id)
        row.done, row.updated_at = done, datetime.now(UTC)


def stop(run_id: str, reason: str) -> None:
    """Close a run that asked only some of its questions. It is no point of the plot."""
    with database.writing() as session:
        row = session.existing(EvaluationResultRow, run_id)
        row.state, row.reason, row.updated_at = "stopped", reason, datetime.now(UTC)


def finish(run_id: str, figures: JsonObject, answers: JsonObject, loss: JsonObject | None) -> None:
    """Store what a run found. A loss is announced by webhook, and once a day by e-mail, in the same transaction."""
    address = policy.current().alert_email
    with database.writing() as session:
        row = session.existing(EvaluationResultRow, run_id)
        row.state, row.done, row.updated_at = "done", row.total, datetime.now(UTC)
        row.figures, row.answers, row.loss = figures, answers, loss
        if loss is None:
            row.seen_at = row.updated_at
        else:
            outbox.enqueue(session, "quality.dropped", "", {"run_id": run_id, **loss})
            if mail.has_alerted(session, datetime.now(UTC) - _A_DAY):
                return
            for to in (address,) if address else _administrators(session):
                mail.enqueue_alert(session, to, {"run_id": run_id, "loss": loss})


def latest() -> tuple[EvaluationResult, ...]:
    """Return the runs of the tenant, newest first."""
    return records(EvaluationResult, _own(EvaluationResultRow))


def get(run_id: str) -> tuple[EvaluationResult, JsonObject]:
    """Return a run and its answers. Raises `NotFound` with the code `evaluation_unknown`."""
    with database.reading() as session:
        row = session.existing(EvaluationResultRow, run_id)
        return record_of(EvaluationResult, row), row.answers


def unseen_loss() -> EvaluationResult | None:
    """Return the newest run with a loss that is not acknowledged."""
    with database.reading() as session:
        row = session.scalars(_own(EvaluationResultRow).where(*_UNSEEN).limit(1)).first()
        return record_of(EvaluationResult, row) if row is not None else None


def acknowledge() -> None:
    """Remove the notice of a loss for all operators."""
    with database.writing() as session:
        session.execute(update(EvaluationResultRow).where(*_UNSEEN).values(seen_at=datetime.now(UTC)))


def last_nights(since: datetime) -> Mapping[str, datetime]:
    """Return when the newest nightly run of each tenant began, of those since then that are done or could not be
    afforded."""
    ended = select(EvaluationResultRow.tenant_id, func.max(EvaluationResultRow.created_at)).where(
        EvaluationResultRow.nightly,
        EvaluationResultRow.created_at >= since,
        EvaluationResultRow.state != "running",
        EvaluationResultRow.reason.not_in(("interrupted", "shutdown")),
    )
    with database.across_tenants() as session:
        found = session.execute(ended.group_by(EvaluationResultRow.tenant_id))
        return {tenant_id: began for tenant_id, began in found}  # noqa: C416 - rows are no pairs to the type checker


def _administrators(session: TenantSession) -> Sequence[str]:
    """Return the logins of administrators that are e-mail addresses."""
    admins = select(OperatorRow.login).where(OperatorRow.role == "admin")
    logins = session.scalars(admins.order_by(OperatorRow.login).limit(MOST_ALERTED))
    return tuple(filter(None, map(mail.address_in, logins)))


def _own(*columns: Any) -> Select[Any]:  # noqa: ANN401 - columns or a mapped class
    """Return the tenant's runs, newest first."""
    query = select(*columns)
    return query.order_by(EvaluationResultRow.created_at.desc(), EvaluationResultRow.run_id.desc())
