"""The sandbox survives every file and returns a document or a typed error."""

import gc
import json
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from components.ingest import sandbox
from components.ingest.formats.parsed import Parsed
from components.ingest.sandbox import Sandbox
from tenants.core.errors import CallerError, TooLarge, TryAgain

_REAL = sandbox._PROGRAM
_PROGRAM = (
    "import sys; sys.path.insert(0, sys.argv[1]); from tests.unit.components.ingest.misbehaving import main; main()"
)


@pytest.fixture(scope="module", autouse=True)
def misbehaving() -> Iterator[Sandbox]:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(sandbox, "_PROGRAM", _PROGRAM)
        box = Sandbox(workers=2, seconds=10)
        yield box
        box.close()


def code(box: Sandbox, name: str, data: bytes = b"text") -> str:
    with pytest.raises(CallerError) as refused:
        box.read(name, data)
    return refused.value.code


def test_a_real_file_is_read_by_its_format(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox, "_PROGRAM", _REAL)
    box = Sandbox(workers=1)
    assert box.read("a.md", "# Гарантия\n\nДва года.".encode()) == Parsed("", "# Гарантия\n\nДва года.")
    with pytest.raises(CallerError):
        box.read("a.exe", b"MZ")
    box.close()


def test_a_reader_that_hangs_is_killed_and_the_next_file_is_read() -> None:
    box = Sandbox(workers=1, seconds=1)
    with pytest.raises(TooLarge) as slow:
        box.read("hang", b"")
    assert (slow.value.code, slow.value.params) == ("file_too_slow", {"seconds": 1})
    box.seconds = 10
    assert box.read("good", b"next").text == "next"
    box.close()


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("grow", "file_too_demanding"),
        ("crash", "file_damaged"),
        ("leave", "file_damaged"),
        ("descend", "file_too_deep"),
        ("typed", "pages_too_many"),
        ("endless", "text_too_long"),
        ("unheard of", "file_damaged"),
        ("boast", "answer_too_long"),
        ("say:", "file_damaged"),
        ("say:nonsense", "file_damaged"),
        ("say:{}", "file_damaged"),
        ('say:{"result": {"title": 5}}', "file_damaged"),
        ('say:{"result": {"text": "a", "run": "rm"}}', "file_damaged"),
        ('say:{"result": {"markup": "html"}}', "file_damaged"),
        ('say:{"error": {"kind": "os.system", "code": "NO", "params": {}}}', "file_damaged"),
    ],
)
def test_every_failure_is_a_typed_error_and_reading_continues(misbehaving: Sandbox, name: str, expected: str) -> None:
    assert code(misbehaving, name) == expected
    assert misbehaving.read("good", b"next").text == "next"


def test_unencodable_text_is_repaired(misbehaving: Sandbox) -> None:
    assert misbehaving.read("half", b"").text == "a?b"


def test_the_log_names_where_a_reader_failed_without_file_content(
    misbehaving: Sandbox, caplog: pytest.LogCaptureFixture
) -> None:
    assert code(misbehaving, "no such reader", "не для журнала".encode()) == "file_damaged"
    assert "a reader failed: KeyError at " in caplog.text
    assert "misbehaving.py:" in caplog.text
    assert "no such reader" not in caplog.text
    assert "журнал" not in caplog.text


@pytest.mark.parametrize("cause", ["a\nb", "a" * 501, "<b>"])
def test_a_forged_cause_is_not_logged(misbehaving: Sandbox, caplog: pytest.LogCaptureFixture, cause: str) -> None:
    answer = {"error": {"kind": "Invalid", "code": "odd", "params": {}}, "cause": cause}
    assert code(misbehaving, f"say:{json.dumps(answer)}") == "file_damaged"
    assert not caplog.records


def test_a_worker_knows_nothing_of_our_environment(misbehaving: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPORA_SECRET", "do not tell")
    misbehaving.close()
    environment = json.loads(misbehaving.read("environment", b"").text)
    # What the interpreter and our own package set for themselves, and what keeps a library small.
    assert not [name for name in environment if not name.startswith(("LC_", "HAYSTACK_", "OPENBLAS_"))]


def test_a_worker_writes_no_file(misbehaving: Sandbox, tmp_path: Path) -> None:
    target = tmp_path / "escaped"
    assert code(misbehaving, "write", str(target).encode()) == "file_damaged"
    assert not target.exists() or not target.stat().st_size


def test_a_worker_is_replaced_after_many_files() -> None:
    sandbox_of_three = Sandbox(workers=1, requests=3)
    served = [sandbox_of_three.read("good", b"").meta["pid"] for _ in range(7)]
    assert [served.count(pid) for pid in dict.fromkeys(served)] == [3, 3, 1]
    sandbox_of_three.close()


def test_threads_share_workers_and_get_their_own_answers(misbehaving: Sandbox) -> None:
    def read(number: int) -> str:
        if number % 7 == 3:
            return code(misbehaving, "crash")
        return misbehaving.read("good", str(number).encode()).text

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(read, range(40)))
    assert answers == ["file_damaged" if number % 7 == 3 else str(number) for number in range(40)]


def test_no_process_remains_after_closing_or_garbage_collection() -> None:
    closed, forgotten = Sandbox(workers=1), Sandbox(workers=1)
    pids = [one.read("good", b"").meta["pid"] for one in (closed, forgotten)]
    closed.close()
    del forgotten
    gc.collect()
    assert not [pid for pid in pids if Path(f"/proc/{pid}").exists()]
    assert closed.read("good", b"again").text == "again"
    closed.close()


def test_a_failed_process_start_asks_to_try_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    with pytest.raises(TryAgain) as lacking:
        Sandbox().read("a.md", b"text")
    assert lacking.value.code == "reader_unavailable"
