"""Watched folders: documents follow their files, and a file that is being written is left alone."""

import os
from pathlib import Path

import pytest

from pipelines.ingest.folder import Changes, FolderChange, FolderScanner, Watcher
from pipelines.ingest.tenant_jobs import TenantJobs
from pipelines.ingest.usecase import Ingest
from settings import Settings
from tenants.accounts.registry import Registry
from tenants.core.context import Tenant
from tenants.knowledge import documents, watched
from tenants.knowledge.watched import WatchedFile
from tenants.work import jobs
from tests.unit.pipelines.ingest.stored import check_consistent


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The watched folder of `acme`."""
    home = tmp_path / "watched" / "acme"
    home.mkdir(parents=True)
    return home


def write(file: Path, text: str, at: int = 1) -> None:
    """Write a file with an explicit time, so that tests do not depend on the resolution of the file system's clock."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    os.utime(file, (at, at))


def ingested_files(**doc_ids: str) -> dict[str, WatchedFile]:
    return {f"{name}.md": WatchedFile(1, 1_000_000_000, (doc_id,)) for name, doc_id in doc_ids.items()}


def test_a_file_is_ignored_until_it_stops_changing(folder: Path) -> None:
    scanner = FolderScanner(folder)
    write(folder / "a.md", "x", 1)
    assert not scanner.scan({})
    write(folder / "a.md", "xy", 1)
    assert not scanner.scan({})
    write(folder / "a.md", "yx", 2)
    assert not scanner.scan({})
    assert scanner.scan({}) == Changes(("a.md",))
    assert scanner.scan({}) == Changes(("a.md",))


def test_only_differences_count(folder: Path) -> None:
    for name in ("same", "changed", "new"):
        write(folder / f"{name}.md", "x")
    write(folder / ".hidden.md", "x")
    write(folder / "changed.md", "xx")
    scanner = FolderScanner(folder)
    before = ingested_files(same="1", changed="2", gone="3")
    assert not scanner.scan(before)
    assert scanner.scan(before) == Changes(("changed.md", "new.md"), ("gone.md",))


def test_a_file_counts_as_removed_after_two_scans(folder: Path) -> None:
    write(folder / "a.md", "x")
    write(folder / "b.md", "x")
    scanner = FolderScanner(folder)
    before = ingested_files(a="1", b="2")
    assert not scanner.scan(before)
    (folder / "b.md").unlink()
    assert not scanner.scan(before)
    assert scanner.scan(before) == Changes((), ("b.md",))


def test_an_empty_folder_removes_nothing(folder: Path) -> None:
    scanners = FolderScanner(folder), FolderScanner(folder / "missing")
    for scanner in scanners:
        for _ in range(3):
            assert not scanner.scan(ingested_files(a="1"))


def ids() -> list[str]:
    return [record.doc_id for record in documents.all()]


def work_off(ingest: Ingest, folder: Path) -> jobs.Job:
    """Scan until there is a job, and run it."""
    watcher = Watcher(folder.parent)
    watcher.look()
    watcher.look()
    (job,) = jobs.open_jobs()
    shift = TenantJobs("acme", ingest, folder.parent)
    while shift.step() is None:
        pass
    return jobs.get(job.job_id)


def test_documents_follow_their_files(tenant: Tenant, ingest: Ingest, folder: Path) -> None:
    write(folder / "a.md", "# A\n\nПервая статья.")
    write(folder / "b" / "c.md", "# C\n\nВторая статья.")
    write(folder / "l.jsonl", '{"doc_id": "l1", "text": "один"}\n{"doc_id": "l2", "text": "два"}\n')
    assert work_off(ingest, folder).state == "done"
    assert ids() == ["a.md", "b/c.md", "l1", "l2"]
    assert watched.all()["l.jsonl"].doc_ids == ("l1", "l2")

    write(folder / "l.jsonl", '{"doc_id": "l2", "text": "два"}\n', 2)
    write(folder / "b" / "c.md", "# C\n\nВторая статья, новая.", 2)
    (folder / "a.md").unlink()
    job = work_off(ingest, folder)
    assert (set(job.files), job.gone) == ({"b/c.md", "l.jsonl"}, ("a.md",))
    assert job.report is not None
    assert (job.report["updated"], job.report["unchanged"], job.report["removed"]) == (1, 1, 2)
    assert ids() == ["b/c.md", "l2"]
    check_consistent()

    watcher = Watcher(folder.parent)
    for _ in range(3):
        watcher.look()
    assert not jobs.open_jobs()


def test_a_document_moved_to_another_file_is_kept(tenant: Tenant, ingest: Ingest, folder: Path) -> None:
    write(folder / "a.jsonl", '{"doc_id": "x", "text": "один"}\n')
    write(folder / "b.jsonl", '{"doc_id": "y", "text": "два"}\n')
    work_off(ingest, folder)
    write(folder / "a.jsonl", '{"doc_id": "z", "text": "три"}\n', 2)
    write(folder / "b.jsonl", '{"doc_id": "x", "text": "один"}\n{"doc_id": "y", "text": "два"}\n', 2)
    work_off(ingest, folder)
    assert ids() == ["x", "y", "z"]


def test_a_file_that_cannot_be_read_keeps_its_documents(tenant: Tenant, ingest: Ingest, folder: Path) -> None:
    write(folder / "l.jsonl", '{"doc_id": "l1", "text": "один"}\n{"doc_id": "l2", "text": "два"}\n')
    work_off(ingest, folder)
    write(folder / "l.jsonl", '{"doc_id": "l1", "text": "один"}\n{"doc_id": "l2", "te\n', 2)
    report = work_off(ingest, folder).report
    assert report is not None
    assert (report["refused"], report["removed"]) == (1, 0)
    assert ids() == ["l1", "l2"]
    write(folder / "l.jsonl", '{"doc_id": "l1", "text": "один"}\n', 3)
    work_off(ingest, folder)
    assert ids() == ["l1"]


def test_a_file_that_had_no_room_is_tried_again(tenant: Tenant, ingest: Ingest, folder: Path) -> None:
    write(folder / "a.md", "# A\n\nПервая статья.")
    write(folder / "b.md", "# B\n\nВторая статья.")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("components.ingest.write.get_settings", lambda: Settings(max_chunks=1))
        work_off(ingest, folder)
    assert ids() == ["a.md"]
    scanner = FolderScanner(folder)
    assert [scanner.scan(watched.all()) for _ in range(2)] == [Changes(("b.md",)), Changes()]
    work_off(ingest, folder)
    assert ids() == ["a.md", "b.md"]
    assert [file.modified_ns for file in watched.all().values()] == [1_000_000_000] * 2


def test_an_interrupted_run_keeps_its_documents(tenant: Tenant, ingest: Ingest, folder: Path) -> None:
    write(folder / "a.md", "# A\n\nСтатья.")
    change = FolderChange(folder, Changes(("a.md",)), {"a.md": WatchedFile(0, 0, ("old",))})
    never_begun = change.run(ingest)
    assert change.updated_files(never_begun, completed=False)["a.md"].doc_ids == ("old",)


def test_folders_of_unknown_tenants_and_escaping_names_are_ignored(tenant: Tenant, folder: Path) -> None:
    write(folder.parent / "stranger" / "a.md", "x")
    write(folder.parent.parent / "outside.md", "x")
    Registry().add("..")
    watcher = Watcher(folder.parent)
    for _ in range(3):
        watcher.look()
    assert jobs.tenants_waiting() == ()


def test_changes_wait_for_the_job_before(tenant: Tenant, folder: Path) -> None:
    write(folder / "a.md", "x")
    watcher = Watcher(folder.parent)
    watcher.look()
    watcher.look()
    write(folder / "b.md", "x")
    for _ in range(3):
        watcher.look()
    (job,) = jobs.open_jobs()
    assert (job.kind, job.files) == ("watch", ("a.md",))
