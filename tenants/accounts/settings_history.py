"""History of changes to a tenant's settings: author, time and previous values. Secrets are never recorded."""

import json
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from secrets import token_hex
from types import MappingProxyType
from typing import Literal, TypeAlias, get_args

from pydantic_core import to_jsonable_python
from sqlalchemy import JSON, Index, String, Text, cast, func, or_, select, update
from sqlalchemy.orm import Mapped, mapped_column

from tenants.core import context
from tenants.core.errors import Conflict
from tenants.storage import database
from tenants.storage.mapping import record_of
from tenants.storage.tables import TENANT_ID, Base, TenantKeyed
from tenants.storage.tenant_session import TenantSession

Area: TypeAlias = Literal["policy", "site", "tool", "webhook", "person", "token", "sign_in", "tenant"]
AREAS: tuple[Area, ...] = get_args(Area)
Act: TypeAlias = Literal["added", "changed", "removed", "rotated", "revoked"]
Values: TypeAlias = Mapping[str, object]
_NOTHING: Values = MappingProxyType({})

_LARGE = 4_000
"""Characters of values, as JSON, from which a change is large. A small one is always recorded with its values."""
_A_DAY = 8_000_000
"""Characters of values that a tenant's changes of 24 hours may hold: the history is kept for a year."""
_MOST_LISTED = 4_000_000
"""Characters of values in a list of changes, beyond the first."""
_BATCH = 5


class SettingChangeRow(TenantKeyed, Base):
    """A change of a tenant's settings. `before` and `after` hold the fields that differ."""

    __tablename__ = "setting_changes"
    __table_args__ = (Index("ix_setting_changes_at", "tenant_id", "at"), Index("ix_changes_created", "at"))

    change_id: Mapped[str] = mapped_column(String(32), primary_key=True)
    at: Mapped[datetime]
    by: Mapped[str] = mapped_column("changed_by", TENANT_ID)
    area: Mapped[str] = mapped_column(String(16))
    act: Mapped[str] = mapped_column(String(16))
    about: Mapped[str] = mapped_column(TENANT_ID)
    before: Mapped[dict[str, object]] = mapped_column("before_json", JSON)
    after: Mapped[dict[str, object]] = mapped_column("after_json", JSON)


@dataclass(frozen=True, slots=True)
class SettingChange:
    """A change. `about` names the object: a site's key, a tool, a login; empty for the policy.

    `before` and `after` hold the fields that differ, never secrets.
    """

    change_id: str
    at: datetime
    by: str
    area: Area
    act: str
    about: str
    before: Values
    after: Values


def note(
    session: TenantSession, area: Area, act: Act, about: str = "", before: Values = _NOTHING, after: Values = _NOTHING
) -> None:
    """Record a change in the transaction that makes it. Ignore a `changed` without differences.

    A large change is recorded without its values once those of the last 24 hours have used up the room for a day.
    """
    names = [name for name in {**before, **after} if before.get(name) != after.get(name)]
    if act == "changed" and not names:
        return
    was = to_jsonable_python({name: before[name] for name in names if name in before})
    now_is = to_jsonable_python({name: after[name] for name in names if name in after})
    if not _has_room(session, _size(was, now_is)):
        was = now_is = {}
    row = SettingChangeRow(
        change_id=token_hex(8),
        at=datetime.now(UTC),
        by=context.current().subject,
        area=area,
        act=act,
        about=about[:255],
        before=was,
        after=now_is,
    )
    session.add(row)


def forget(subject: str) -> None:
    """Remove a person from the recorded changes of tokens, of which only author, time and act stay."""
    named = or_(SettingChangeRow.about == subject, SettingChangeRow.after["subject"].as_string() == subject)
    with database.writing() as session:
        erased = update(SettingChangeRow).where(SettingChangeRow.area == "token", named)
        session.execute(erased.values(about="", before={}, after={}))


def _has_room(session: TenantSession, size: int) -> bool:
    if size < _LARGE:
        return True
    since = datetime.now(UTC) - timedelta(days=1)
    columns = (SettingChangeRow.before, SettingChangeRow.after)
    held = select(*(func.sum(func.length(cast(one, Text))) for one in columns)).where(SettingChangeRow.at > since)
    return sum(one or 0 for one in session.execute(held).one()) + size <= _A_DAY


def _size(*values: Values) -> int:
    """Return the number of characters of stored values."""
    return sum(len(json.dumps(one)) for one in values)


def latest(area: Area | None = None, *, limit: int = 100) -> tuple[SettingChange, ...]:
    """Return the tenant's changes, newest first: fewer than `limit` if their values are large."""
    query = select(SettingChangeRow).order_by(SettingChangeRow.at.desc(), SettingChangeRow.change_id).limit(limit)
    if area is not None:
        query = query.where(SettingChangeRow.area == area)
    found: list[SettingChange] = []
    size = 0
    with database.reading() as session, closing(session.scalars(query.execution_options(yield_per=_BATCH))) as rows:
        for row in rows:
            size += _size(row.before, row.after)
            if found and size > _MOST_LISTED:
                break
            found.append(record_of(SettingChange, row))
    return tuple(found)


def version_of(values: Values) -> str:
    """Return a version of form values, so that a concurrent change is noticed."""
    return sha256(json.dumps(values, sort_keys=True, default=str).encode()).hexdigest()[:16]


def check_version(version: str, values: Values) -> None:
    """Raise `Conflict`, `settings_changed`, unless the version is empty or matches these values."""
    if version and version != version_of(values):
        raise Conflict("settings_changed")
