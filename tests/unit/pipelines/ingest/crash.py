"""Ingest runs, rebuilds, rollbacks and operators' changes killed with SIGKILL, each in a separate process.

A program for `test_session.py`. Imports happen once: this process forks one child per run and never opens the index or
the database itself.
Arguments: data folder, seed, number of kills for ingest runs, for rebuilds, and for operators' changes.
"""

import os
import random
import signal
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from types import ModuleType

from sqlalchemy import select

from components.ingest import transfer
from components.ingest.document import SourceDocument
from pipelines.ingest import run
from pipelines.ingest.library import Library
from pipelines.ingest.report import Progress
from pipelines.ingest.usecase import Ingest
from settings import get_settings
from tenants.accounts import registry
from tenants.accounts.registry import Registry
from tenants.core.context import Tenant, acting_as
from tenants.core.points import Hit
from tenants.index import access, open_collection
from tenants.index.qdrant_edge import EdgeCollection, EdgeFolder
from tenants.knowledge import documents, generations, lexicon
from tenants.knowledge.catalogue import Selection
from tenants.knowledge.tables import LexiconPartRow
from tenants.storage import database
from tests.records import found_by_stems
from tests.unit.pipelines.ingest.stored import article, check_consistent, hits, meta

INGEST = Ingest()
LIBRARY = Library(INGEST.rewrite)
OLD = [article(str(at), 2) for at in range(7)]
NEW = [
    OLD[0],
    article("1", 2, edit="правка"),
    article("2", 3),
    article("3", 2, priority=5),
    article("4", 1),
    article("8", 2),
]
"""Against `OLD`: one kept, one edited, one longer, one described anew, one shorter, two removed, one added."""

_STEPS: tuple[tuple[type | ModuleType, tuple[str, ...]], ...] = (
    (EdgeCollection, ("upsert", "describe", "delete")),
    (EdgeFolder, ("create", "remove")),
    (documents, ("put", "remove")),
    (generations, ("begin", "activate", "forget")),
    (lexicon, ("begin", "apply", "finish", "rebuild")),
)


def ingest(pipe: int, tenant_id: str, expected: list[SourceDocument], prune: bool) -> None:
    """Ingest in small batches. Writes `.` around each durable step and `+` for each acknowledged document."""
    acknowledged = 0

    def acknowledge(progress: Progress) -> None:
        nonlocal acknowledged
        os.write(pipe, b"+" * (progress.documents - acknowledged))
        acknowledged = progress.documents

    _announce_steps(pipe)
    with acting(tenant_id):
        INGEST.run(expected, prune=prune, progress=acknowledge)


def rebuild(pipe: int, tenant_id: str) -> None:
    """Rebuild in small batches."""
    _announce_steps(pipe)
    with acting(tenant_id):
        INGEST.rebuild().finish()


def rollback(pipe: int, tenant_id: str) -> None:
    """Roll back."""
    _announce_steps(pipe)
    with acting(tenant_id):
        INGEST.rollback().finish()


def change(pipe: int, tenant_id: str) -> None:
    """Apply an operator's changes. Writes `+` for each acknowledged change."""
    _announce_steps(pipe)
    with acting(tenant_id):
        for work, _ in CHANGES:
            work()
            os.write(pipe, b"+")


def _retitled(doc_id: str, title: str) -> bool:
    return documents.find([doc_id])[doc_id].title == title


CHANGES: tuple[tuple[Callable[[], object], Callable[[], bool]], ...] = (
    (lambda: LIBRARY.change("1", {"title": "Холодильник"}), lambda: _retitled("1", "Холодильник")),
    (lambda: LIBRARY.restore("2", 1), lambda: LIBRARY.read("2").version == 3),
    (
        lambda: LIBRARY.change_all(Selection(), {"status": "archived"}),
        lambda: {record.status for record in documents.all()} == {"archived"},
    ),
    (lambda: LIBRARY.delete("3"), lambda: documents.get("3") is None),
)
"""Each with how to see that it holds, whatever comes after it."""


def check_changes(_: int, tenant_id: str, promised: int) -> None:
    """Check after the next change: every acknowledged change is complete."""
    with acting(tenant_id):
        records = documents.all()
        present = {hit.id for hit in open_collection().scan()}
        assert all(present.issuperset(record.chunk_ids) for record in records)
        assert LIBRARY.check().clean
        assert LIBRARY.check().clean
        check_consistent()
        assert all(holds() for _, holds in CHANGES[:promised])


def _announce_steps(pipe: int) -> None:
    for owner, names in _STEPS:
        for name in names:
            setattr(owner, name, _announced(getattr(owner, name), pipe))


def _announced(step: Callable[..., object], pipe: int) -> Callable[..., object]:
    def announced(*args: object, **kwargs: object) -> object:
        os.write(pipe, b".")
        done = step(*args, **kwargs)
        os.write(pipe, b".")
        return done

    return announced


@contextmanager
def acting(tenant_id: str) -> Iterator[None]:
    run._BATCH_DOCUMENTS = 2
    transfer.BATCH = 4
    access.IN_FLIGHT = timedelta(0)
    if not Registry().exists(tenant_id):
        Registry().add(tenant_id)
    with acting_as(Tenant(tenant_id, "crash")):
        yield


def check_kept(
    _: int, tenant_id: str, before: list[SourceDocument], expected: list[SourceDocument], promised: int
) -> None:
    """Check right after a kill: every earlier document is complete in one version, and so is every acknowledged one."""
    with acting(tenant_id):
        present = {hit.id for hit in open_collection().scan()}
        records = {record.doc_id: record for record in documents.all()}
        staying = {document.doc_id for document in before} & {document.doc_id for document in expected}
        for doc_id in staying | {document.doc_id for document in expected[:promised]}:
            assert present.issuperset(records[doc_id].chunk_ids), doc_id


def check_healed(_: int, tenant_id: str, expected: list[SourceDocument]) -> None:
    """Check that the next run ends in the same state as an undisturbed one."""
    with acting(tenant_id):
        report = INGEST.run(expected, prune=True)
        assert not report.errors
        check_consistent()
        healed = [_lasting(hit) for hit in hits()]
        assert INGEST.run(expected, prune=True).unchanged == len(expected)
    with acting("undisturbed"):
        assert healed == [_lasting(hit) for hit in hits()]


def check_answers(_: int, tenant_id: str, expected: list[SourceDocument]) -> None:
    """Check right after a killed rebuild: one complete generation is in force and searchable."""
    with acting(tenant_id):
        check_consistent()
        assert {record.doc_id for record in documents.all()} == {document.doc_id for document in expected}
        assert len(found_by_stems("шланг")) == open_collection().count()


def check_tidy(_: int, tenant_id: str) -> None:
    """Check after the next run: each generation is known and has its folder, and nothing is left over."""
    with acting(tenant_id):
        check_consistent()
        placement = registry.current().placement
        known = {
            placement.at(generation.number).physical
            for generation in generations.all()
            if generation.state in {"in_force", "kept"}
        }
        assert len(generations.all()) == len(known)
        folder = get_settings().data_dir / "index"
        assert {path.name for path in folder.glob(f"{placement.collection}~g*")} == known
        terms = select(LexiconPartRow.generation).where(LexiconPartRow.tenant_id == tenant_id)
        with database.across_tenants() as session:
            assert {placement.at(number).physical for number in session.scalars(terms)} <= known


def _lasting(hit: Hit) -> tuple[str, object, dict[str, object]]:
    lasting = {name: value for name, value in meta(hit).items() if name not in {"tenant", "updated_at"}}
    return hit.id, hit.payload["content"], lasting


def in_child(work: Callable[..., None], *arguments: object, kill_after: int = sys.maxsize) -> bytes:
    """Run `work(pipe, …)` in a child and kill it after so many announced steps. Returns what it wrote until its end."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            work(writing, *arguments)
        except BaseException:
            traceback.print_exc()
            sys.stderr.flush()
            os._exit(1)
        os._exit(0)
    os.close(writing)
    written = b""
    while piece := os.read(reading, 1):
        written += piece
        if written.count(b".") == kill_after:
            os.kill(child, signal.SIGKILL)
            kill_after = sys.maxsize
    os.close(reading)
    _, status = os.waitpid(child, 0)
    if not os.WIFSIGNALED(status):
        assert os.waitstatus_to_exitcode(status) == 0, "a run failed"
    return written


def main(seed: int, ingests: int, rebuilds: int, changes: int) -> None:
    kill_ingests(seed, ingests)
    kill_rebuilds(seed, rebuilds)
    kill_changes(seed, changes)


def kill_changes(seed: int, moments: int) -> None:
    """Kill an operator's changes of documents that have two versions; then run the next step."""
    in_child(ingest, "changed", OLD, False)
    in_child(ingest, "changed", NEW, False)
    steps = in_child(change, "changed").count(b".")
    chosen = random.Random(seed)
    for number in range(moments):
        tenant_id = f"changed-{number}"
        in_child(ingest, tenant_id, OLD, False)
        in_child(ingest, tenant_id, NEW, False)
        moment = chosen.randrange(1, steps + 1)
        promised = in_child(change, tenant_id, kill_after=moment).count(b"+")
        in_child(check_changes, tenant_id, promised)
        print(f"killed after step {moment} of {steps} of changes, {promised} acknowledged", flush=True)


def kill_rebuilds(seed: int, moments: int) -> None:
    """Kill rebuilds of a tenant that has had one before, and every third time a rollback; then run the next step."""
    in_child(ingest, "whole", OLD, False)
    steps = {work: in_child(work, "whole").count(b".") for work in (rebuild, rollback)}
    chosen = random.Random(seed)
    for number in range(moments):
        tenant_id = f"rebuilt-{number}"
        in_child(ingest, tenant_id, OLD, False)
        in_child(rebuild, tenant_id)
        work = rollback if number % 3 == 2 else rebuild
        moment = chosen.randrange(1, steps[work] + 1)
        in_child(work, tenant_id, kill_after=moment)
        in_child(check_answers, tenant_id, OLD)
        if number % 2:
            in_child(rebuild, tenant_id)
        else:
            in_child(ingest, tenant_id, NEW, True)
        in_child(check_tidy, tenant_id)
        print(f"killed after step {moment} of {steps[work]} of a {work.__name__}", flush=True)


def kill_ingests(seed: int, moments: int) -> None:
    """Kill first runs and updates."""
    first = in_child(ingest, "undisturbed", OLD, False).count(b".")
    update = in_child(ingest, "undisturbed", NEW, True).count(b".")
    chosen = random.Random(seed)
    for number in range(moments):
        tenant_id = f"tenant-{number}"
        before: list[SourceDocument] = [] if number % 3 == 0 else OLD
        if before:
            in_child(ingest, tenant_id, before, False)
        steps = update if before else first
        moment = chosen.randrange(1, steps + 1)
        written = in_child(ingest, tenant_id, NEW, True, kill_after=moment)
        in_child(check_kept, tenant_id, before, NEW, written.count(b"+"))
        in_child(check_healed, tenant_id, NEW)
        print(f"killed after step {moment} of {steps}, {written.count(b'+')} acknowledged", flush=True)


if __name__ == "__main__":
    os.environ["OPORA_DATA_DIR"] = sys.argv[1]
    get_settings.cache_clear()
    main(*map(int, sys.argv[2:6]))
