"""A backup taken during writes is restored elsewhere, on either database, with every acknowledged write."""

import json
import os
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from threading import Event, Thread
from uuid import uuid4
from zipfile import ZipFile

import pytest
from pyrage import x25519

from pipelines.ingest.library import Library
from pipelines.ingest.usecase import Ingest
from settings import Settings, get_settings
from tenants import backup, index
from tenants.access import keys
from tenants.accounts.registry import Registry
from tenants.audit import search, store
from tenants.audit.recorder import Recorder
from tenants.backup import envelope, restoring, rows
from tenants.chats import conversation_memory, files, sites
from tenants.chats import store as chats
from tenants.core.context import Tenant, acting_as
from tenants.core.errors import CallerError
from tenants.desk import feedback
from tenants.knowledge import documents
from tenants.privacy import persons, removal
from tenants.privacy.persons import Person
from tenants.storage import database, sealed
from tenants.storage.tenant_session import tell_server
from tenants.work import jobs, locks, uploads
from tests.audits import entry
from tests.chats import all_tickets, handed_over, webhook
from tests.servers import own_database

ANNA = Tenant("acme", "anna")
KEY = str(x25519.Identity.generate())
"""A passphrase is made slow to guess, so each use of one takes seconds."""
ARTICLE = "# Возврат\n\nТовар можно вернуть в течение 14 дней.\n"


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPORA_BACKUP_KEY", KEY)


@pytest.fixture
def filled(records: Settings, tmp_path: Path) -> Settings:
    """An installation with data of every kind."""
    get_settings.cache_clear()
    settings = get_settings()
    Registry().add("acme")
    Registry().add("Другая")
    keys.signing_key(settings)
    with acting_as(ANNA):
        (tmp_path / "articles").mkdir()
        (tmp_path / "articles" / "a.md").write_text(ARTICLE)
        Ingest().run_path(tmp_path / "articles")
        handed_over("t", "user_request", "Позовите человека")
        conversation_memory.remember("s1", conversation_memory.PastTurn("Где?", "answered", ("a", "b")))
        mine = persons.digest("acme", "anna")
        store.append([entry(f"turn-{number}", person=mine, at=datetime.now(UTC)) for number in range(450)], settings)
        feedback.give("turn-1", mine, "down", None, "нет")
        site = sites.add("Магазин", ["https://shop.example"])
        webhook("chat.message")
        chat = chats.start()
        chats.post(chat.chat_id, "Где мой заказ?")
        files.add(chat.chat_id, "чек.pdf", "application/pdf", bytes(range(256)))
        assert site.secrets
        job_id = jobs.new_id()
        upload = uploads.Upload(job_id)
        file = upload.file("папка/b.md")
        file.write(ARTICLE.encode())
        file.close()
        jobs.add(job_id, "upload", ["папка/b.md"], size=file.size)
        upload.close(keep=True)
    # One turn is still in the spool of a running process.
    spool = Recorder(settings).spool
    spool.append(entry("turn-spooled", person=mine, at=datetime.now(UTC)))
    return settings


def contents(settings: Settings) -> dict[str, tuple[int, str]]:
    """Return the number of rows and a digest for each table."""
    with database.engine(settings).connect() as connection:
        tell_server(connection, None)
        counts = Counter[str]()
        told = {}
        for name, pieces in rows.parts(connection, counts):
            lines = sorted(b"".join(pieces).splitlines())
            table = name.removeprefix(rows.FOLDER).removesuffix(".jsonl")
            told[table] = (counts[table], sha256(b"\n".join(lines)).hexdigest())
    return told


@contextmanager
def elsewhere(
    monkeypatch: pytest.MonkeyPatch, folder: Path, request: pytest.FixtureRequest, kind: str = ""
) -> Iterator[Settings]:
    """Simulate another machine: empty, with the same kind of database, or with `kind`."""
    index.close_all()
    locks.close_all()
    kind = kind or ("postgresql" if get_settings().database_url else "sqlite")
    database.close_all()
    with ExitStack() as stack:
        url = ""
        if kind == "postgresql":
            own = stack.enter_context(own_database(request.getfixturevalue("postgres_url")))
            url = own.render_as_string(hide_password=False)
        monkeypatch.setenv("OPORA_DATABASE_URL", url)
        monkeypatch.setenv("OPORA_DATA_DIR", str(folder))
        get_settings.cache_clear()
        sealed.forget_keys()
        try:
            yield get_settings()
        finally:
            index.close_all()
            locks.close_all()
            database.close_all()


def build_index() -> None:
    for tenant in Registry().list():
        with acting_as(Tenant(tenant.tenant_id, "restore")):
            Library(Ingest().rewrite).check(mend=True)


def test_everything_is_there_elsewhere(
    filled: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    before, own_keys = contents(filled), (filled.data_dir / "keys" / "tokens.json").read_bytes()
    manifest = backup.take(tmp_path / "opora.backup", filled)
    assert manifest.rows == {name: count for name, (count, _) in before.items()}
    assert not list(filled.data_dir.glob("backup-*"))
    with elsewhere(monkeypatch, tmp_path / "other", request) as there:
        restored = backup.restore(tmp_path / "opora.backup", there)
        assert restored.manifest == manifest
        after = contents(there)
        assert {name for name in before if before[name] != after[name]} <= {"audit", "audit_chains", "audit_contents"}
        assert (there.data_dir / "keys" / "tokens.json").read_bytes() == own_keys
        with acting_as(ANNA):
            assert [ticket.question for ticket in all_tickets()] == ["Позовите человека"]
            verification = search.verify()
            assert (verification.links, verification.faults) == (451, ())
            assert search.get("turn-spooled").turn_id == "turn-spooled"
            (job,) = jobs.open_jobs()
            assert (uploads.fetched(job.job_id) / job.files[0]).read_text() == ARTICLE
            (chat,) = chats.of_caller()
            assert [content for _, content in files.of_chat(chat.chat_id)] == [bytes(range(256))]
            assert index.damage() == "missing"
        build_index()
        with acting_as(ANNA):
            assert Library(Ingest().rewrite).check().clean
            (record,) = documents.all()
            assert index.open_collection().count() == len(record.chunk_ids) > 0


@pytest.mark.parametrize("records", ["sqlite"], indirect=True)
def test_a_backup_of_sqlite_is_restored_into_postgresql_and_back(
    filled: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    before = contents(filled)
    backup.take(tmp_path / "first", filled)
    with elsewhere(monkeypatch, tmp_path / "server", request, "postgresql") as server:
        backup.restore(tmp_path / "first", server)
        backup.take(tmp_path / "second", server)
        with elsewhere(monkeypatch, tmp_path / "embedded", request, "sqlite") as there:
            backup.restore(tmp_path / "second", there)
            after = contents(there)
            spooled = {"audit", "audit_contents"}
            assert {name: count for name, (count, _) in after.items()} == {
                name: count + (name in spooled) for name, (count, _) in before.items()
            }
            with acting_as(ANNA):
                assert search.verify().faults == ()
                assert [ticket.question for ticket in all_tickets()] == ["Позовите человека"]


def test_a_backup_under_writes_holds_everything_acknowledged_before(
    records: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    get_settings.cache_clear()
    settings = get_settings()
    Registry().add("acme")
    stop, recorder, recorded = Event(), Recorder(settings), list[str]()
    recorder.start()

    def ask() -> None:
        while not stop.is_set():
            turn = entry(f"turn-{len(recorded)}", at=datetime.now(UTC))
            recorder.record(turn)
            recorded.append(turn.turn_id)
            stop.wait(0.002)

    asking = Thread(target=ask)
    asking.start()
    acknowledged = list[int]()
    for number in range(2):
        while len(recorded) < 40 * (number + 1):
            stop.wait(0.01)
        acknowledged.append(len(recorded))
        backup.take(tmp_path / f"backup-{number}", settings)
    stop.set()
    asking.join()
    recorder.close()
    for number, count in enumerate(acknowledged):
        with elsewhere(monkeypatch, tmp_path / f"other-{number}", request) as there:
            backup.restore(tmp_path / f"backup-{number}", there)
            with acting_as(ANNA):
                verification = search.verify()
                known = {turn.turn_id for turn in search.find(search.TurnQuery(), limit=100_000)}
            assert not verification.faults
            assert set(recorded[:count]) <= known
            assert len(known) == verification.links


@pytest.mark.parametrize("records", ["sqlite"], indirect=True)
def test_whoever_was_erased_after_the_backup_stays_erased(
    filled: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    with acting_as(Tenant("acme", "bob")):
        conversation_memory.remember("s2", conversation_memory.PastTurn("Когда?", "answered"))
    backup.take(tmp_path / "opora.backup", filled)
    with acting_as(ANNA):
        persons.erase(Person(subject="anna"))
    removal.remove("Другая")
    journal = tmp_path / "journal.jsonl"
    journal.write_bytes((filled.data_dir / "erasures.jsonl").read_bytes())
    assert "anna" not in journal.read_text()
    with elsewhere(monkeypatch, tmp_path / "other", request) as there:
        assert backup.restore(tmp_path / "opora.backup", there, [journal]).erasures == 2
        assert [tenant.tenant_id for tenant in Registry().list()] == ["acme"]
        with acting_as(ANNA):
            kept = persons.export(Person(subject="anna"))
            assert {kind: len(what) for kind, what in kept.items() if what} == {}
            assert search.verify().faults == ()
            assert search.verify().erased == 451
            assert len(persons.export(Person("bob"))["conversations"]) == 1
    with elsewhere(monkeypatch, tmp_path / "third", request) as third:
        # Data erased before a backup is not in it, so a person who has returned since is kept.
        backup.restore(tmp_path / "opora.backup", third)
        with acting_as(ANNA):
            assert len(all_tickets()) == 1


def _flipped(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-200])


@pytest.mark.parametrize("records", ["sqlite"], indirect=True)
class TestRefusals:
    """An impossible restore or backup is refused with an instruction, and leaves no files."""

    @pytest.mark.parametrize(
        ("harm", "code"),
        [
            (_flipped, "backup_damaged"),
            (_cut, "backup_damaged"),
            (lambda path: path.write_bytes(b"PK"), "backup_damaged"),
            (lambda path: path.unlink(), "path_missing"),
        ],
        ids=["a bit", "cut off", "no zip", "no file"],
    )
    def test_a_damaged_file(
        self,
        harm: Callable[[Path], object],
        code: str,
        records: Settings,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
        request: pytest.FixtureRequest,
    ) -> None:
        Registry().add("acme")
        path = tmp_path / "opora.backup"
        get_settings.cache_clear()
        backup.take(path, get_settings())
        harm(path)
        with elsewhere(monkeypatch, tmp_path / "other", request) as there:
            with pytest.raises(CallerError, match=code):
                backup.restore(path, there)
            assert not there.data_dir.exists() or not list(there.data_dir.iterdir())

    def test_what_is_inside_is_checked_too(self, records: Settings, tmp_path: Path) -> None:
        get_settings.cache_clear()
        settings = get_settings()
        manifest = {
            "revision": database.HEAD,
            "started_at": "2026-01-01T00:00:00Z",
            "rows": {},
            "sealed": sealed.seal("x"),
        }
        for name, content, checksums, code in (
            ("keys/a", b"x", {"keys/a": sha256(b"y").hexdigest()}, "backup_damaged"),
            ("keys/../../a", b"x", {"keys/../../a": sha256(b"x").hexdigest()}, "backup_damaged"),
            *(
                (name, b"x", {name: sha256(b"x").hexdigest()}, "backup_damaged")
                for name in ("opora.db", ".", "keys", "chat-files")
            ),
            ("keys/a", b"x", {}, "backup_damaged"),
        ):
            path = tmp_path / uuid4().hex
            body = json.dumps({**manifest, "checksums": checksums}).encode()
            envelope.write(path, KEY, [(name, [content])], lambda _, body=body: ("manifest.json", [body]))  # type: ignore[misc]
            other = settings.model_copy(update={"data_dir": tmp_path / f"{path.name}-there"})
            with pytest.raises(CallerError, match=code):
                backup.restore(path, other)
            assert not list(other.data_dir.rglob("*"))
            assert not (tmp_path / "a").exists()

    @pytest.mark.parametrize("newer", [{"format": 2}, {"revision": "9999"}])
    def test_a_newer_version(self, newer: dict[str, object], records: Settings, tmp_path: Path) -> None:
        get_settings.cache_clear()
        settings = get_settings()
        body = backup.Manifest(
            revision=database.HEAD, started_at=datetime.now(UTC), rows={}, checksums={}, sealed=sealed.seal("x")
        ).model_copy(update={"opora": "9.9.9", **newer})
        encoded = body.model_dump_json().encode()
        envelope.write(tmp_path / "b", KEY, [], lambda _: ("manifest.json", [encoded]))
        there = settings.model_copy(update={"data_dir": tmp_path / "other"})
        with pytest.raises(CallerError, match="backup_newer") as refused:
            backup.restore(tmp_path / "b", there)
        assert refused.value.params == {"version": "9.9.9"}

    def test_a_wrong_key_and_none(
        self,
        records: Settings,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
        request: pytest.FixtureRequest,
    ) -> None:
        get_settings.cache_clear()
        backup.take(tmp_path / "b", get_settings())
        with pytest.raises(CallerError, match="backup_exists"):
            backup.take(tmp_path / "b", get_settings())
        with pytest.raises(CallerError, match="backup_unwritable"):
            backup.take(tmp_path / "nowhere" / "b", get_settings())
        with elsewhere(monkeypatch, tmp_path / "other", request):
            others = str(x25519.Identity.generate()), KEY[:-1], "a passphrase"
            for key, code in (*((other, "backup_key_wrong") for other in others), ("", "backup_key_missing")):
                monkeypatch.setenv("OPORA_BACKUP_KEY", key)
                get_settings.cache_clear()
                with pytest.raises(CallerError, match=code):
                    backup.restore(tmp_path / "b", get_settings())
                if not key:
                    with pytest.raises(CallerError, match=code):
                        backup.take(tmp_path / "c", get_settings())

    def test_an_installation_that_is_not_empty(self, filled: Settings, tmp_path: Path) -> None:
        backup.take(tmp_path / "b", filled)
        before = contents(filled)
        with pytest.raises(CallerError, match="restore_not_empty"):
            backup.restore(tmp_path / "b", filled)
        assert contents(filled) == before

    def test_other_secrets_for_what_is_encrypted(
        self, records: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
    ) -> None:
        monkeypatch.setenv("OPORA_DATA_KEYS", "one")
        get_settings.cache_clear()
        backup.take(tmp_path / "b", get_settings())
        with elsewhere(monkeypatch, tmp_path / "other", request):
            monkeypatch.setenv("OPORA_DATA_KEYS", "two")
            get_settings.cache_clear()
            there = get_settings()
            with pytest.raises(CallerError, match="data_key_wrong"):
                backup.restore(tmp_path / "b", there)
            assert not list(there.data_dir.iterdir())
            monkeypatch.setenv("OPORA_DATA_KEYS", "two,one")
            get_settings.cache_clear()
            backup.restore(tmp_path / "b", get_settings())

    def test_a_restore_that_was_cut_off_is_not_served(
        self, filled: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
    ) -> None:
        backup.take(tmp_path / "b", filled)

        class Killed(BaseException):
            pass

        def end(*_: object) -> int:
            raise Killed

        monkeypatch.setattr(restoring, "_erase_again", end)
        with elsewhere(monkeypatch, tmp_path / "other", request) as there:
            with pytest.raises(Killed):
                backup.restore(tmp_path / "b", there)
            with pytest.raises(CallerError, match="restore_unfinished"):
                restoring.check_finished(there)

    def test_a_fault_while_writing_leaves_no_file(
        self, filled: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def broken(*_: object) -> Iterator[bytes]:
            yield b"[]\n"
            raise RuntimeError("half way")

        monkeypatch.setattr(rows, "_lines", broken)
        with pytest.raises(RuntimeError, match="half way"):
            backup.take(tmp_path / "b", filled)
        assert not [path for path in tmp_path.iterdir() if path.name.endswith("b") or path.name.startswith(".b")]
        assert not list(filled.data_dir.glob("backup-*"))


@pytest.mark.parametrize("records", ["sqlite"], indirect=True)
def test_a_backup_opens_by_passphrase_and_not_by_public_key(
    records: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    pair = x25519.Identity.generate()
    for name, key in (("phrase", "an old key of brass"), ("public", str(pair.to_public()))):
        monkeypatch.setenv("OPORA_BACKUP_KEY", key)
        get_settings.cache_clear()
        backup.take(tmp_path / name, get_settings())
    with elsewhere(monkeypatch, tmp_path / "other", request) as there:
        with pytest.raises(CallerError, match="backup_key_wrong"):
            backup.restore(tmp_path / "public", there)
        monkeypatch.setenv("OPORA_BACKUP_KEY", str(pair))
        get_settings.cache_clear()
        backup.restore(tmp_path / "public", get_settings())
    monkeypatch.setenv("OPORA_BACKUP_KEY", "an old key of brass")
    with elsewhere(monkeypatch, tmp_path / "third", request) as there:
        backup.restore(tmp_path / "phrase", there)


@pytest.mark.parametrize("records", ["sqlite"], indirect=True)
def test_nothing_of_a_backup_can_be_read_without_its_passphrase(filled: Settings, tmp_path: Path) -> None:
    path = tmp_path / "opora.backup"
    backup.take(path, filled)
    assert path.stat().st_mode & 0o077 == 0
    content = path.read_bytes()
    for word in ("acme", "Возврат", "anna", "tokens.json", "audit"):
        assert word.encode() not in content
    with ZipFile(path) as outer:
        assert outer.namelist() == ["key.age", "content.age"]
        assert all(outer.read(name).startswith(b"age-encryption.org/v1\n") for name in outer.namelist())


@pytest.mark.parametrize("records", ["sqlite"], indirect=True)
def test_files_of_a_job_that_ends_meanwhile_are_looked_for_again(
    filled: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    link, ended = os.link, list[str]()

    def end_first(source: Path, target: Path) -> None:
        if not ended:
            with acting_as(ANNA):
                (job,) = jobs.open_jobs()
                jobs.end(job.job_id, "done")
                uploads.remove(job.job_id)
                ended.append(job.job_id)
        link(source, target)

    monkeypatch.setattr(os, "link", end_first)
    backup.take(tmp_path / "b", filled)
    with elsewhere(monkeypatch, tmp_path / "other", request) as there:
        backup.restore(tmp_path / "b", there)
        with acting_as(ANNA):
            assert jobs.get(ended[0]).state == "done"
            assert not jobs.open_jobs()
