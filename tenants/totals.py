"""How much there is of what an operator of the whole installation watches: counts over all tenants, nothing else."""

from sqlalchemy import func, literal, select

from tenants import database
from tenants.chats.tables import ChatRow, OutboxRow
from tenants.models import GapRow, JobRow, TenantRow


def by_state() -> dict[str, dict[str, int]]:
    """Counts by state. Raises `TryAgain` when the records cannot be read."""
    states = {
        "tenants": (literal("registered"), TenantRow.tenant_id),
        "jobs": (JobRow.state, JobRow.job_id),
        "gaps": (GapRow.status, GapRow.gap_id),
        "deliveries": (OutboxRow.state, OutboxRow.delivery_id),
        "chats": (ChatRow.state, ChatRow.chat_id),
    }
    with database.reading() as session:
        return {
            name: {
                str(value): count
                for value, count in session.execute(select(state, func.count(key)).group_by(state))
                if value is not None
            }
            for name, (state, key) in states.items()
        }
