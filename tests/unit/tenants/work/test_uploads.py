"""Files that arrive: no name leads anywhere but into the upload's own folder."""

import os
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from settings import get_settings
from tenants.core.context import Tenant, acting_as
from tenants.core.errors import Invalid, NotFound, TooLarge, TryAgain
from tenants.storage import disk, files
from tenants.work import jobs, uploads
from tenants.work.uploads import Upload, check_name

BAD = [
    "", "/", "/etc/passwd", "..", "../x.md", "a/../b.md", "a/./b.md", "a//b.md", "a/", ".env", "a/.git/config",
    "\\\\server\\x.md", "..\\x.md", "C:\\x.md", "C:x.md", "a\0b", "a\nb", "a\u202eb", "\ud800.md", " ", "a/ /b",
    "x" * 256, "я" * 128, "/".join("a" * 17), "a/" * 200 + "b",
]  # fmt: skip


@pytest.fixture(autouse=True)
def _acme(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("OPORA_DATA_DIR", str(tmp_path / "data"))
    get_settings.cache_clear()
    with acting_as(Tenant("acme", "tests")):
        yield
    get_settings.cache_clear()


@pytest.mark.parametrize("name", BAD)
def test_a_bad_name_is_refused(name: str) -> None:
    with pytest.raises(Invalid, match="file_name_invalid"):
        check_name(name)


@pytest.mark.parametrize("name", ["a.md", "папка/Прайс-лист 2024 (2).xlsx", "a/b/c.pdf", "x" * 255, "a b..md"])
def test_an_ordinary_name_stays_as_it_is(name: str) -> None:
    assert check_name(name) == name


def test_a_windows_path_has_folders_too() -> None:
    assert check_name("docs\\a.md") == "docs/a.md"


@given(st.text(st.sampled_from("./\\ :aя\0\n~-"), max_size=12))
def test_no_name_leaves_the_folder(name: str) -> None:
    try:
        path = check_name(name)
    except Invalid:
        return
    root = Path("/kept/uploads")
    assert os.path.normpath(root / path) == str(root / path)
    assert root in (root / path).parents


def test_colliding_names_are_refused() -> None:
    upload = Upload("job")
    upload.file("a.md").close()
    for taken in ("a.md", "a.md/b.md"):
        with pytest.raises(Invalid, match="file_name_duplicate"):
            upload.file(taken)
    upload.file("b/c.md").close()
    with pytest.raises(Invalid, match="file_name_duplicate"):
        upload.file("b")
    upload.close(keep=False)
    assert not files.names(files.path("uploads", "job"))


def test_the_number_of_files_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uploads, "MAX_FILES", 1)
    upload = Upload("job")
    upload.file("a.md").close()
    with pytest.raises(TooLarge, match="files_too_many"):
        upload.file("b.md")
    upload.close(keep=False)


def test_a_full_disk_raises_try_again() -> None:
    upload = Upload("job")
    file = upload.file("a.md")
    with Path("/dev/full").open("wb", buffering=0) as full:
        os.dup2(full.fileno(), file._stream.fileno())
    with pytest.raises(TryAgain, match="storage_full"):
        file.write(b"x" * 1_000_000)
    file.abandon()
    upload.close(keep=False)


def test_nothing_is_taken_in_once_the_reserve_is_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    upload = Upload("job")
    file = upload.file("a.md")
    file.write(b"x" * 10)
    monkeypatch.setattr(disk, "free", lambda folder: get_settings().disk_reserve_bytes - 1)
    with pytest.raises(TryAgain, match="storage_full"):
        file.write(b"x" * 1_000_000)
    file.abandon()
    upload.close(keep=False)
    with pytest.raises(TryAgain, match="storage_full"):
        Upload("another")
    monkeypatch.undo()
    assert not uploads._ARRIVING[get_settings().database, "acme"].job_ids


def test_uploads_in_progress_count_against_the_quota(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPORA_QUEUED_BYTES", "1500000")
    monkeypatch.setenv("OPORA_QUEUED_JOBS", "2")
    get_settings.cache_clear()
    first, second = Upload("first"), Upload("second")
    with pytest.raises(jobs.QueueFull):
        Upload("third")
    first_file, second_file = first.file("a.md"), second.file("a.md")
    first_file.write(b"x" * 1_000_000)
    with pytest.raises(jobs.QueueFull):
        second_file.write(b"x" * 1_000_000)
    first_file.abandon()
    second_file.abandon()
    with acting_as(Tenant("globex", "tests")):
        Upload("theirs").close(keep=False)
    first.close(keep=False)
    second.close(keep=False)
    Upload("third").close(keep=False)


def test_files_of_tenants_are_separate() -> None:
    mine = Upload("job")
    mine.file("a.md").close()
    mine.close(keep=True)
    with acting_as(Tenant("globex", "tests")):
        assert uploads.abandoned() == ()
        uploads.remove("job")
        uploads.remove_all()
        with pytest.raises(NotFound, match="upload_missing"):
            uploads.fetched("job")
    assert [path.name for path in uploads.fetched("job").iterdir()] == ["a.md"]
    uploads.remove_all()
    assert uploads.abandoned() == ()


def test_files_in_another_store_are_copied_for_their_job(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPORA_FILES_URL", f"memory://{uuid4().hex}")
    get_settings.cache_clear()
    upload = Upload("job")
    for name in ("a.md", "папка/b.md", "empty.md"):
        file = upload.file(name)
        for data in (b"1", b"2") if name != "empty.md" else ():
            file.write(data)
        file.close()
    with pytest.raises(Invalid, match="file_name_duplicate"):
        upload.file("папка")
    upload.settle()
    upload.close(keep=True)
    for _ in range(2):
        folder = uploads.fetched("job")
        found = {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
        assert found == {"a.md": b"12", "папка/b.md": b"12", "empty.md": b""}
        (folder / "left.md").write_bytes(b"half of it")
    uploads.remove("job")
    assert not folder.exists()
    with pytest.raises(NotFound, match="upload_missing"):
        uploads.fetched("job")
    refused = Upload("refused")
    refused.file("a.md").close()
    refused.close(keep=False)
    assert files.names(files.path("uploads")) == ()
