"""Standard names of figures in stored summaries of evaluation runs."""

from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0024"
down_revision = "0023"

_NAMES = {
    "right_of_claimed": "answer_precision",
    "right_of_answerable": "answer_recall",
    "claimed_of_unanswerable": "false_answer_rate",
    "false_answer": "false_answer_rate",
}
_RUNS = sa.table("evaluation_runs", sa.column("tenant_id"), sa.column("run_id"), sa.column("summary", sa.JSON))


def upgrade() -> None:
    """Rename them; there are at most a hundred runs of a tenant."""
    bind = op.get_bind()
    for tenant_id, run_id, summary in bind.execute(sa.select(_RUNS)).all():
        chosen = (_RUNS.c.tenant_id == tenant_id) & (_RUNS.c.run_id == run_id)
        bind.execute(sa.update(_RUNS).where(chosen).values(summary=renamed(summary)))


def renamed(node: Any) -> Any:  # noqa: ANN401 - any JSON
    if isinstance(node, Mapping):
        return {_name(key): _name(value) if key == "figure" else renamed(value) for key, value in node.items()}
    return [renamed(one) for one in node] if isinstance(node, list) else node


def _name(figure: str) -> str:
    """Rename a figure, also one with a kind behind a colon."""
    name, colon, kind = figure.partition(":")
    return f"{_NAMES.get(name, name)}{colon}{kind}"
