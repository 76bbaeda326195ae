"""Records on their way to the audit, in the database that replicas share."""

from typing import Never

import pytest

from settings import Settings
from tenants.audit import shared_spool
from tenants.audit.shared_spool import SharedSpool
from tenants.core.errors import TryAgain
from tenants.storage import database
from tenants.storage.audit_tables import SpooledRow
from tests.audits import entry

ENTRIES = [entry(f"t-{number}") for number in range(3)]


def test_records_wait_for_any_replica_in_the_order_they_came(records: Settings) -> None:
    shared = database.is_shared(records)
    assert [SharedSpool(records).append(one) for one in ENTRIES] == [shared] * 3
    spool = SharedSpool(records)
    first = spool.first(2)
    assert [line.entry for line in first] == (ENTRIES[:2] if shared else [])
    spool.remove(first)
    assert [line.entry for line in spool.first(2)] == (ENTRIES[2:] if shared else [])


@pytest.mark.parametrize("records", ["postgresql"], indirect=True)
def test_a_line_of_another_version_stands_there_unread(records: Settings) -> None:
    with database.writing(records) as session:
        session.add(SpooledRow(spooled_id="0", line=b'{"of": "another version"}\n'))
    SharedSpool(records).append(ENTRIES[0])
    assert [line.entry for line in SharedSpool(records).first(9)] == [None, ENTRIES[0]]


@pytest.mark.parametrize("records", ["postgresql"], indirect=True)
def test_a_database_that_does_not_answer_is_left_alone_for_a_while(
    records: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    spool, tries, now = SharedSpool(records), 0, 0.0

    def away(settings: Settings) -> Never:
        nonlocal tries
        tries += 1
        raise TryAgain

    monkeypatch.setattr(shared_spool, "monotonic", lambda: now)
    with monkeypatch.context() as patch:
        patch.setattr(database, "single_statement", away)
        assert [spool.append(one) for one in ENTRIES] == [False] * 3
        assert tries == 1
    assert not spool.append(ENTRIES[0])
    now = 11.0
    assert spool.append(ENTRIES[0])
