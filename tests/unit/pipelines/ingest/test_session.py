"""Changes during ingest runs, and the state after either is interrupted or killed.

A few kills here; the same program takes any number: `python -m tests.unit.pipelines.ingest.crash`.
"""

import subprocess
import sys
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextvars import Context, copy_context
from pathlib import Path

import pytest

from pipelines.ingest import library as library_module
from pipelines.ingest import run as run_module
from pipelines.ingest import session
from pipelines.ingest.library import Library
from pipelines.ingest.report import Progress
from pipelines.ingest.usecase import Ingest
from settings import ROOT
from tenants import index
from tenants.core.context import Tenant, acting_as
from tenants.core.errors import Busy, TryAgain
from tenants.knowledge import lexicon, writing
from tenants.work import locks
from tests.unit.pipelines.ingest.stored import article, check_consistent, hits, meta


@pytest.fixture
def library(tenant: Tenant, ingest: Ingest, monkeypatch: pytest.MonkeyPatch) -> Library:
    monkeypatch.setattr(run_module, "_BATCH_DOCUMENTS", 1)
    return Library(ingest.rewrite)


@pytest.fixture
def begun(ingest: Ingest, tmp_path: Path) -> Callable[..., "Begun"]:
    """Begin a run over files, and leave it after its first document."""

    def begin(**texts: str) -> Begun:
        for doc_id, edit in texts.items():
            (tmp_path / f"{doc_id}.md").write_text(f"# Статья {doc_id}\n\n{article(doc_id, 2, edit).text}")
        return Begun(ingest.start_files(tmp_path, [f"{doc_id}.md" for doc_id in texts]).steps())

    return begin


def test_changes_that_wait_hold_few_of_the_threads_that_serve_everybody(
    library: Library, begun: Callable[..., "Begun"], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "MAX_CHANGES", 2)
    begun(a="").finish()
    with session._in_line():
        library.change("a.md", {"priority": 1})
        with session._in_line(), pytest.raises(Busy, match="documents_busy"):
            library.change("a.md", {"priority": 2})
    assert library.change("a.md", {"priority": 3}).priority == 3
    assert not session._CHANGES


class Begun:
    """A run between two of its batches, in a separate context as in a service."""

    def __init__(self, steps: Generator[Progress, None, None]) -> None:
        self._steps = steps
        self._context = copy_context()
        # A step may also be a moment of waiting for the first batch, on a busy machine.
        self._context.run(next, (now for now in steps if now.documents))

    def finish(self) -> None:
        self._context.run(list, self._steps)

    def leave(self) -> None:
        self._context.run(self._steps.close)


@pytest.fixture
def cut_off(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """End every change after its record is written, as if the process had died there."""

    def die(*_: object) -> int:
        raise RuntimeError

    monkeypatch.setattr(library_module, "redescribe", die)
    return monkeypatch


def statuses(doc_id: str) -> set[object]:
    return {meta(hit)["status"] for hit in hits(doc_id)}


def test_a_change_goes_between_two_batches_and_wins_over_the_second(
    library: Library, ingest: Ingest, begun: Callable[..., Begun]
) -> None:
    begun(a="", b="").finish()
    run = begun(a="правка", b="правка")
    for doc_id in ("a.md", "b.md"):
        library.change(doc_id, {"status": "archived"})
    run.finish()
    assert {library.read(doc_id).version for doc_id in ("a.md", "b.md")} == {2}
    assert statuses("a.md") == statuses("b.md") == {"archived"}
    check_consistent()
    assert not ingest.run([]).healed


def test_a_change_that_fails_in_a_run_is_put_right_when_the_run_ends(
    library: Library, ingest: Ingest, begun: Callable[..., Begun], cut_off: pytest.MonkeyPatch
) -> None:
    ingest.run([article("a")])
    run = begun(b="", c="")
    with pytest.raises(RuntimeError):
        library.change("a", {"status": "archived"})
    assert statuses("a") == {"active"}
    run.finish()
    assert statuses("a") == {"archived"}
    check_consistent()
    assert not ingest.run([]).healed


def test_a_change_that_was_cut_off_is_finished_by_whoever_comes_next(
    library: Library, ingest: Ingest, cut_off: pytest.MonkeyPatch
) -> None:
    ingest.run([article("a"), article("b")])
    with pytest.raises(RuntimeError):
        library.change("a", {"status": "archived", "title": "Новое"})
    cut_off.undo()
    assert statuses("a") == {"active"}
    library.change("b", {"priority": 1})
    assert statuses("a") == {"archived"}
    check_consistent()
    assert not ingest.run([]).healed


def test_an_abandoned_run_is_consistent(library: Library, ingest: Ingest, begun: Callable[..., Begun]) -> None:
    begun(a="", b="").leave()
    assert library.page().total == 1
    check_consistent()
    assert not ingest.run([]).healed


def test_a_run_that_fails_leaves_its_mark(library: Library, ingest: Ingest) -> None:
    def broken() -> Iterable[object]:
        yield article("a")
        yield article("b")
        raise RuntimeError

    with pytest.raises(RuntimeError):
        ingest.run(broken())  # type: ignore[arg-type]
    library.change("a", {"status": "archived"})
    check_consistent()
    assert not ingest.run([]).healed


def test_a_check_in_the_middle_of_a_run_leaves_the_mark_to_the_run(
    library: Library, ingest: Ingest, begun: Callable[..., Begun]
) -> None:
    run = begun(a="", b="")
    lexicon.apply([lexicon.ChunkTerms(frozenset({"чужое"}), frozenset())])
    assert library.check(mend=True).lexicon_differs
    assert lexicon.begin(), "a run that is cut off now is mended by the next one"
    run.finish()
    check_consistent()
    assert not ingest.run([]).healed


def test_an_index_that_cannot_be_reached_leaves_no_mark(
    tenant: Tenant, ingest: Ingest, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unreachable() -> None:
        raise TryAgain("index_unavailable")

    with monkeypatch.context() as patch:
        patch.setattr(index, "damage", unreachable)
        with pytest.raises(TryAgain):
            ingest.run([article("a")])
    assert not ingest.run([article("a")]).healed


def test_a_change_is_turned_away_while_another_process_ingests(library: Library, ingest: Ingest) -> None:
    ingest.run([article("a")])

    def elsewhere() -> None:
        # A run of another process: its claim is taken, but unknown to this process.
        with acting_as(Tenant("acme", "elsewhere")), locks.ingesting(), pytest.raises(Busy, match="documents_busy"):
            Context().run(attempt)

    def attempt() -> None:
        with acting_as(Tenant("acme", "here")), session.change(ingest.rewrite, patience=0):
            pytest.fail("nobody should be let in")

    Context().run(elsewhere)
    library.change("a", {"priority": 1})


def test_a_change_is_turned_away_while_somebody_writes(library: Library, ingest: Ingest) -> None:
    ingest.run([article("a")])

    def attempt() -> None:
        with pytest.raises(Busy, match="documents_busy"), session.change(ingest.rewrite, patience=0):
            pytest.fail("nobody should be let in")

    with writing.alone(), ThreadPoolExecutor(1) as other:
        other.submit(copy_context().run, attempt).result()


def test_changes_and_runs_at_once_lose_nothing(library: Library, ingest: Ingest) -> None:
    ids = [f"d{at}" for at in range(6)]
    ingest.run([article(doc_id, 2) for doc_id in ids])

    def load(edit: str) -> None:
        ingest.run([article(doc_id, 2, edit=edit) for doc_id in ids])

    def change(doc_id: str) -> None:
        for priority in range(1, 4):
            library.change(doc_id, {"priority": priority, "title": f"Название {priority}"})

    with ThreadPoolExecutor(4) as pool:
        work = [pool.submit(copy_context().run, load, edit) for edit in ("первая", "вторая")]
        work += [pool.submit(copy_context().run, change, doc_id) for doc_id in ids[:3]]
        for item in work:
            item.result()
    assert {(library.read(doc_id).priority, library.read(doc_id).title) for doc_id in ids[:3]} == {(3, "Название 3")}
    assert {library.read(doc_id).version for doc_id in ids} == {3}
    check_consistent()
    assert library.check().clean
    assert not ingest.run([]).healed


_INGESTS = 3
_REBUILDS = 1
_CHANGES = 1
_SEED = 20


@pytest.mark.chaos
def test_kills_at_random_moments(tmp_path: Path) -> None:
    program = [
        sys.executable,
        "-W",
        "error",
        "-m",
        "tests.unit.pipelines.ingest.crash",
        str(tmp_path),
        str(_SEED),
        str(_INGESTS),
        str(_REBUILDS),
        str(_CHANGES),
    ]
    done = subprocess.run(program, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("killed after step") == _INGESTS + _REBUILDS + _CHANGES
