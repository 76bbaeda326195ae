"""Everything that is encrypted at rest, under the newest key: after it, older secrets may be given up."""

from sqlalchemy import Table, select, type_coerce, update

from tenants.all_tables import Base
from tenants.storage import database
from tenants.storage.sealed import SealedJson, SealedText, seal_anew

_BATCH = 200


def reseal() -> int:
    """Encrypt every sealed value of the installation again. Returns their number.

    Rows are changed a few at a time, so the service keeps running.
    """
    return sum(_reseal(table) for table in Base.metadata.sorted_tables)


def columns(table: Table) -> list[str]:
    """Return the encrypted columns of a table."""
    return [column.name for column in table.columns if isinstance(column.type, SealedText | SealedJson)]


def _reseal(table: Table) -> int:
    sealed = columns(table)
    if not sealed:
        return 0
    keys = list(table.primary_key.columns)
    with database.across_tenants() as session:
        rows = session.execute(select(*keys)).all()
    done = 0
    for start in range(0, len(rows), _BATCH):
        with database.across_tenants(write=True) as session:
            for row in rows[start : start + _BATCH]:
                own = [key == value for key, value in zip(keys, row, strict=True)]
                # The stored value: not decrypted, and locked until it is written.
                raw = [type_coerce(table.c[name], table.c[name].type.impl_instance) for name in sealed]  # type: ignore[attr-defined]
                values = session.execute(select(*raw).where(*own).with_for_update()).first()
                if values is None:
                    continue
                fresh = {
                    name: type_coerce(seal_anew(str(value)), table.c[name].type.impl_instance)  # type: ignore[attr-defined]
                    for name, value in zip(sealed, values, strict=True)
                    if value is not None
                }
                if fresh:
                    session.execute(update(table).where(*own).values(fresh))
                    done += len(fresh)
    return done
