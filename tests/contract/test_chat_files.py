"""Chat files on every database and store: limits, single use, access, export, erasure, pruning and moving."""

from base64 import b64encode
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest

from settings import Settings, get_settings
from tenants.accounts import policy
from tenants.accounts.registry import Registry
from tenants.chats import files, outbox, store
from tenants.chats.records import Chat, HandoffRequest
from tenants.chats.tables import ChatFileRow
from tenants.core.context import Tenant, acting_as
from tenants.core.errors import NotFound, TooLarge
from tenants.privacy import chat_people
from tenants.storage import database
from tenants.storage import files as stored_files
from tests.chats import webhook

VISITOR = Tenant("acme", "visitor-1")
PDF = "application/pdf"


@pytest.fixture(params=["folder", "memory"])
def files_store(request: pytest.FixtureRequest, records: Settings, monkeypatch: pytest.MonkeyPatch) -> str:
    """Set up the installation's store of files, in its data folder or elsewhere."""
    if request.param == "memory":
        monkeypatch.setenv("OPORA_FILES_URL", f"memory://{uuid4().hex}")
        get_settings.cache_clear()
    return str(request.param)


@pytest.fixture
def chat(records: Settings, files_store: str) -> Iterator[Chat]:
    """A visitor's chat with the assistant; the visitor is in context."""
    assert files_store
    for tenant_id in ("acme", "other"):
        Registry(records).add(tenant_id)
    with acting_as(VISITOR):
        yield store.start()


def test_a_file_is_sent_with_one_message(chat: Chat) -> None:
    webhook("chat.message")
    file = files.add(chat.chat_id, "чек.pdf", PDF, b"%PDF-")
    assert files.get(chat.chat_id, file.file_id) == (file, b"%PDF-")
    for _ in range(2):
        posted = store.post(chat.chat_id, "Вот чек", client_id="c1", file_id=file.file_id)
    described = {"file_id": file.file_id, "name": "чек.pdf", "media_type": PDF, "size": 5}
    assert (posted.message.kind, posted.message.body["file"]) == ("file", described)
    assert files.get(chat.chat_id, file.file_id)[0].message_id == posted.message.message_id
    (delivery,) = outbox.latest()
    assert file.file_id in delivery.body
    with pytest.raises(NotFound, match="file_unknown"):
        store.post(chat.chat_id, "Ещё раз", file_id=file.file_id)
    assert len(store.messages(chat.chat_id)) == 1


def test_the_assistant_answers_a_file_without_text_at_once(chat: Chat) -> None:
    for name in ("a.pdf", "b.pdf"):
        file = files.add(chat.chat_id, name, PDF, b"%PDF-")
        store.post(chat.chat_id, name, file_id=file.file_id, unread_reply="Файл принят.")
        store.hand_over(chat.chat_id, HandoffRequest("user_request"))
    thread = [(one.author, one.kind, one.text) for one in store.messages(chat.chat_id) if one.kind != "event"]
    assert thread == [("customer", "file", ""), ("bot", "text", "Файл принят."), ("customer", "file", "")]


def test_files_of_another_chat_or_tenant_are_missing(chat: Chat) -> None:
    file = files.add(chat.chat_id, "a.pdf", PDF, b"%PDF-")
    other = store.start()
    for act in (
        lambda: files.get(other.chat_id, file.file_id),
        lambda: store.post(other.chat_id, "", file_id=file.file_id),
    ):
        with pytest.raises(NotFound, match="file_unknown"):
            act()
    with acting_as(Tenant("other", VISITOR.subject)):
        with pytest.raises(NotFound):
            files.get(chat.chat_id, file.file_id)
        with pytest.raises(NotFound):
            files.add(chat.chat_id, "a.pdf", PDF, b"%PDF-")
        assert files.of_chat(chat.chat_id) == ()
    assert store.messages(other.chat_id) == ()


def test_size_number_and_storage_are_bounded_by_the_policy(chat: Chat) -> None:
    policy.change(chat_file_bytes=10, chat_files=2, chat_storage_bytes=25)
    with pytest.raises(TooLarge, match="chat_file_too_large"):
        files.add(chat.chat_id, "a.pdf", PDF, b"x" * 11)
    for _ in range(2):
        files.add(chat.chat_id, "a.pdf", PDF, b"x" * 10)
    with pytest.raises(TooLarge, match="chat_files_too_many"):
        files.add(chat.chat_id, "a.pdf", PDF, b"x")
    with pytest.raises(TooLarge, match="chat_storage_full"):
        files.add(store.start().chat_id, "a.pdf", PDF, b"x" * 6)


def test_what_is_never_sent_goes_after_a_day_and_the_rest_by_the_policy(chat: Chat) -> None:
    policy.change(chat_file_days=30)
    unsent, sent = (files.add(chat.chat_id, name, PDF, b"%PDF-") for name in ("a.pdf", "b.pdf"))
    message = store.post(chat.chat_id, "Вот", file_id=sent.file_id).message
    now = datetime.now(UTC)
    assert files.prune(now + timedelta(hours=23)) == 0
    with acting_as(Tenant("other", "x")):
        assert files.prune(now + timedelta(days=1_000)) == 0
    assert files.prune(now + timedelta(hours=25)) == 1
    assert [file.file_id for file, _ in files.of_chat(chat.chat_id)] == [sent.file_id]
    assert files.prune(now + timedelta(days=31)) == 1
    assert [one.message_id for one in store.messages(chat.chat_id)] == [message.message_id]
    assert unsent != sent


def test_a_person_is_exported_and_erased_with_their_files(chat: Chat) -> None:
    file = files.add(chat.chat_id, "чек.pdf", PDF, b"%PDF-")
    with acting_as(Tenant("acme", "visitor-2")):
        theirs = files.add(store.start().chat_id, "b.pdf", PDF, b"other")
    (exported,) = chat_people.export(VISITOR.subject, None)
    assert isinstance(exported, dict)
    (shown,) = exported["files"]
    assert (shown["name"], shown["content_base64"]) == ("чек.pdf", b64encode(b"%PDF-").decode())
    chat_people.erase(VISITOR.subject, None)
    with pytest.raises(NotFound):
        files.get(chat.chat_id, file.file_id)
    assert files.get(theirs.chat_id, theirs.file_id)[1] == b"other"


def test_a_content_is_encrypted_in_the_store_and_gone_with_its_row(chat: Chat, monkeypatch: pytest.MonkeyPatch) -> None:
    file = files.add(chat.chat_id, "a.pdf", PDF, b"%PDF-secret")
    kept = files.add(store.start().chat_id, "b.pdf", PDF, b"%PDF-")
    path = stored_files.path("chat-files", file.file_id)
    assert b"secret" not in stored_files.read(path, 1_000_000)
    with database.reading() as session:
        assert session.get_one(ChatFileRow, ("acme", file.file_id)).content == b""
    with database.writing() as session:
        session.delete(session.get_one(ChatFileRow, ("acme", file.file_id)))
    files.tidy()
    assert stored_files.changed_at(path) is not None  # its row could still come
    monkeypatch.setattr(files, "_ARRIVING_FOR", timedelta(0))
    files.tidy()
    assert stored_files.names(stored_files.path("chat-files")) == (kept.file_id,)
    with acting_as(Tenant("other", "x")):
        assert stored_files.names(stored_files.path("chat-files")) == ()
        files.remove_all()
    assert files.get(kept.chat_id, kept.file_id)[1] == b"%PDF-"


def test_a_refused_file_leaves_nothing_in_the_store(chat: Chat) -> None:
    policy.change(chat_files=0)
    with pytest.raises(TooLarge):
        files.add(chat.chat_id, "a.pdf", PDF, b"%PDF-")
    assert stored_files.names(stored_files.path("chat-files")) == ()


def test_contents_in_the_database_are_read_until_they_are_moved(chat: Chat, monkeypatch: pytest.MonkeyPatch) -> None:
    old = [files.add(chat.chat_id, name, PDF, b"") for name in ("a.pdf", "b.pdf")]
    for file in old:
        stored_files.remove(stored_files.path("chat-files", file.file_id))
        with database.writing() as session:
            row = session.get_one(ChatFileRow, ("acme", file.file_id))
            row.secret, row.content = None, b"%PDF-" + file.name.encode()
    expected = [b"%PDF-a.pdf", b"%PDF-b.pdf"]
    assert [content for _, content in files.of_chat(chat.chat_id)] == expected
    with monkeypatch.context() as interrupted:
        interrupted.setattr(files, "update", _interrupt)
        with pytest.raises(KeyboardInterrupt):
            files.move()
    assert [files.get(chat.chat_id, file.file_id)[1] for file in old] == expected
    assert (files.move(), files.move()) == (2, 0)
    assert [content for _, content in files.of_chat(chat.chat_id)] == expected
    with database.reading() as session:
        assert [session.get_one(ChatFileRow, ("acme", file.file_id)).content for file in old] == [b"", b""]


def _interrupt(_: object) -> None:
    raise KeyboardInterrupt
