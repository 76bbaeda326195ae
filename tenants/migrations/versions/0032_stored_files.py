"""Files of chats and uploads in the store of files, outside of the database."""

from itertools import groupby
from operator import attrgetter

import sqlalchemy as sa
from alembic import op

from tenants.core.context import Tenant, acting_as
from tenants.storage import files

revision = "0032"
down_revision = "0031"

_PIECES = sa.table("upload_pieces", *(sa.column(name) for name in ("tenant_id", "job_id", "number", "name", "data")))


def upgrade() -> None:
    """Add the keys of chats' files, whose contents `opora migrate` and the nightly check move; they are readable until
    then. Move uploads that wait for their job; there are few."""
    op.add_column("chat_files", sa.Column("secret", sa.Text))
    of_job = sa.select(_PIECES.c.tenant_id, _PIECES.c.job_id).distinct()
    for tenant_id, job_id in op.get_bind().execute(of_job).all():
        with acting_as(Tenant(tenant_id, "migrate")):
            _move(job_id, (_PIECES.c.tenant_id == tenant_id) & (_PIECES.c.job_id == job_id))
    op.drop_table("upload_pieces")


def _move(job_id: str, is_of_job: sa.ColumnElement[bool]) -> None:
    bind, folder = op.get_bind(), files.path("uploads", job_id)
    # Copies that a replica made, or a migration that was interrupted.
    files.remove(folder)
    numbers = sa.select(_PIECES.c.name, _PIECES.c.number).where(is_of_job).order_by(_PIECES.c.name, _PIECES.c.number)
    for name, pieces in groupby(bind.execute(numbers).all(), key=attrgetter("name")):
        with files.storing():
            file = files.create(f"{folder}/{name}")
            for piece in pieces:
                data = sa.select(_PIECES.c.data).where(is_of_job, _PIECES.c.number == piece.number)
                file.write(bind.execute(data).scalar_one())
            files.finish(file)
    with files.storing():
        files.settle(folder)
