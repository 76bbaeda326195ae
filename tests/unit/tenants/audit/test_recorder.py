"""From the answer to the database: no record is lost or duplicated, whatever breaks on the way."""

import errno
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from itertools import takewhile
from threading import Event
from unittest.mock import Mock

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy.exc import IntegrityError, OperationalError

from settings import ROOT, Settings
from tenants.accounts.registry import Registry
from tenants.audit import recorder, search, store
from tenants.audit.entry import Entry
from tenants.audit.recorder import Recorder
from tenants.audit.search import TurnQuery
from tenants.audit.spool import Spool, read
from tenants.core.context import Tenant, acting_as
from tenants.core.errors import TryAgain
from tenants.storage import database
from tests.audits import entry, miss


@pytest.fixture(autouse=True)
def _tenant(installation: Settings) -> Iterator[None]:
    Registry().add("acme")
    with acting_as(Tenant("acme", "anna")):
        yield


def recorded() -> list[str]:
    return sorted(record.turn_id for record in search.find(TurnQuery(), limit=10_000))


def spooled(installation: Settings) -> list[str]:
    return [path.name for path in (installation.data_dir / "spool").glob("*.jsonl")]


class Outage:
    """Makes the store refuse, or stop and wait, while it is on."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.on = True
        self.met = Event()
        works = store.append

        def append(entries: list[Entry], settings: Settings) -> int:
            if self.on:
                self.met.set()
                raise OperationalError("INSERT", {}, Exception("database is locked"))
            return works(entries, settings)

        monkeypatch.setattr(store, "append", append)


@pytest.fixture
def outage(monkeypatch: pytest.MonkeyPatch) -> Outage:
    monkeypatch.setattr(recorder, "PACE", 0.001)
    return Outage(monkeypatch)


words = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)


@given(words, words, st.lists(words, max_size=3))
def test_a_line_says_what_was_written(question: str, session_id: str, stems: list[str]) -> None:
    written = entry("t1", question=question, session_id=session_id, misses=[miss(question, *stems)])
    assert Entry.read(written.line()) == written


@given(data=st.data())
def test_a_line_cut_short_spoils_no_other(data: st.DataObject, tmp_path_factory: pytest.TempPathFactory) -> None:
    torn = entry("torn").line()
    cut = data.draw(st.integers(0, len(torn) - 1))
    path = tmp_path_factory.mktemp("spool") / "one.jsonl"
    path.write_bytes(entry("t1").line() + torn[:cut] + entry("t2").line())
    assert [one.turn_id for one, _ in read(path) if one] in (["t1", "t2"], ["t1", "torn", "t2"])
    path.write_bytes(entry("t1").line() + torn[:cut])
    assert next(one.turn_id for one, _ in read(path) if one) == "t1"


def test_recorded_turns_arrive_once_and_the_spool_is_emptied(installation: Settings) -> None:
    carrier = Recorder(installation)
    carrier.start()
    for number in range(200):
        carrier.record(entry(f"t{number:03}"))
    carrier.close()
    assert recorded() == [f"t{number:03}" for number in range(200)]
    assert spooled(installation) == []
    assert search.verify().faults == ()


def test_a_turn_is_spooled_before_it_is_carried_over(installation: Settings) -> None:
    carrier = Recorder(installation)
    carrier.record(entry("t1"))
    (name,) = spooled(installation)
    spooled_lines = [one for one, _ in read(installation.data_dir / "spool" / name)]
    assert spooled_lines == [entry("t1")]
    carrier.close()


def test_an_outage_loses_nothing_and_blocks_nobody(
    installation: Settings, outage: Outage, caplog: pytest.LogCaptureFixture
) -> None:
    carrier = Recorder(installation)
    carrier.start()
    for number in range(50):
        carrier.record(entry(f"t{number:03}"))
    assert outage.met.wait(30)
    for number in range(50, 100):
        carrier.record(entry(f"t{number:03}"))
    assert recorded() == []
    outage.on = False
    carrier.close()
    carrier = Recorder(installation)
    carrier.collect()
    assert recorded() == [f"t{number:03}" for number in range(100)]
    assert spooled(installation) == []
    assert caplog.text.count("records wait in the spool") == 1
    assert search.verify().faults == ()


def test_records_refused_by_the_database_wait_for_the_next_start(installation: Settings, outage: Outage) -> None:
    carrier = Recorder(installation)
    carrier.record(entry("t1"))
    carrier.close()
    assert recorded() == []
    with pytest.raises(TryAgain):
        Recorder(installation).collect()
    outage.on = False
    Recorder(installation).collect()
    assert recorded() == ["t1"]


def test_a_segment_in_use_is_not_treated_as_abandoned(installation: Settings) -> None:
    living = Recorder(installation)
    living.record(entry("t1"))
    Recorder(installation).collect()
    assert recorded() == []
    assert len(spooled(installation)) == 1
    living.close()
    assert recorded() == ["t1"]


def test_where_the_spool_cannot_be_written_the_database_takes_the_record(
    installation: Settings, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fails(spool: Spool, one: Entry) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr(Spool, "append", fails)
    carrier = Recorder(installation)
    carrier.record(entry("t0"))
    assert recorded() == ["t0"]
    monkeypatch.setattr(store, "append", Mock(side_effect=TryAgain))
    with pytest.raises(TryAgain, match="not_recorded"):
        carrier.record(entry("t1"))
    assert "turn t1 is not recorded" in caplog.text
    carrier.close()


FULL = """
import errno, os
from tenants.audit import store
from tenants.core.errors import TryAgain
room = 40_000
write = os.write
def bounded(descriptor, line):
    global room
    fits = min(len(line), room)
    if not fits:
        raise OSError(errno.ENOSPC, "No space left on device")
    room -= fits
    return write(descriptor, line[:fits])
def nothing_fits(*arguments):
    raise TryAgain
os.write, store.append = bounded, nothing_fits
"""
ACKNOWLEDGING = """
from settings import get_settings
from tenants.audit.recorder import Recorder
from tests.audits import entry
carrier = Recorder(get_settings())
carrier.start()
for number in range(10_000):
    try:
        carrier.record(entry(f"t{number:06}"))
    except TryAgain as error:
        print("full", flush=True)
        break
    print(f"t{number:06}", flush=True)
input()
"""


@pytest.mark.chaos
def test_a_full_disk_and_a_kill_lose_no_acknowledged_record(installation: Settings) -> None:
    database.close_all()
    process = subprocess.Popen(
        [sys.executable, "-c", FULL + ACKNOWLEDGING],
        stdin=subprocess.PIPE,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
    )
    assert process.stdout is not None
    answered = list(takewhile("full".__ne__, (line.decode().strip() for line in process.stdout)))
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
    assert process.stdin is not None
    process.stdin.close()
    assert len(answered) > 100
    Recorder(installation).collect()
    assert recorded() == answered
    assert search.verify().faults == ()
    assert spooled(installation) == []


def test_a_refused_record_is_quarantined_and_delays_no_other(
    installation: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    works = store.append

    def append(entries: list[Entry], settings: Settings) -> int:
        if any(entry.turn_id == "bad" for entry in entries):
            raise IntegrityError("INSERT", {}, Exception("refused"))
        return works(entries, settings)

    monkeypatch.setattr(store, "append", append)
    carrier = Recorder(installation)
    for turn_id in ("t1", "bad", "t2"):
        carrier.record(entry(turn_id))
    carrier.close()
    assert recorded() == ["t1", "t2"]
    assert b'"bad"' in (installation.data_dir / "spool" / "aside.txt").read_bytes()
    assert carrier.spool.erase_quarantined(lambda one: one.turn_id == "bad") == 1
    assert (installation.data_dir / "spool" / "aside.txt").read_bytes() == b""


RECORDING = """
import sys
from settings import get_settings
from tenants.audit.recorder import Recorder
from tests.audits import entry
carrier = Recorder(get_settings())
carrier.start()
number = 0
while True:
    carrier.record(entry(f"t{number:06}"))
    print(f"t{number:06}", flush=True)
    number += 1
"""


@pytest.mark.parametrize("after", [1, 40, 400])
@pytest.mark.chaos
def test_a_killed_process_loses_no_turn_that_it_answered(installation: Settings, after: int) -> None:
    database.close_all()
    process = subprocess.Popen(
        [sys.executable, "-c", RECORDING], cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}, stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    answered = [process.stdout.readline().decode().strip() for _ in range(after)]
    process.send_signal(signal.SIGKILL)
    answered += [line.decode().strip() for line in process.stdout if line.endswith(b"\n")]
    process.wait()
    process.stdout.close()
    Recorder(installation).collect()
    result = recorded()
    assert set(answered) <= set(result)
    assert len(result) == len(set(result))
    assert search.verify().faults == ()
    assert spooled(installation) == []


def test_a_hanging_database_does_not_delay_shutdown(
    installation: Settings, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    hanging, free = Event(), Event()

    def hang(entries: list[Entry], settings: Settings) -> int:
        hanging.set()
        free.wait()
        raise OperationalError("INSERT", {}, Exception("gone"))

    works = store.append
    monkeypatch.setattr(store, "append", hang)
    monkeypatch.setattr(recorder, "PACE", 0.001)
    monkeypatch.setattr(recorder, "_PATIENCE", 0.001)
    carrier = Recorder(installation)
    carrier.start()
    carrier.record(entry("t1"))
    assert hanging.wait(30)
    carrier.close()
    assert "records stay in the spool" in caplog.text
    free.set()
    assert carrier._carrying.close(patience=30)
    monkeypatch.setattr(store, "append", works)
    Recorder(installation).collect()
    assert recorded() == ["t1"]
