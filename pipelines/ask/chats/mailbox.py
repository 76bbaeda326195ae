"""Brings customers' answers by e-mail into their chats: a mailbox is read by IMAP while the service runs.

E-mails that belong to no chat are not changed, because people may read the mailbox too. Several processes may
look at once: an e-mail is stored in its chat once.
"""

import imaplib
import logging
import re
import ssl
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from threading import Event

from components.language.texts import text
from pipelines.ask.chats import incoming
from pipelines.ask.chats.customer_chats import queued_notice
from pipelines.ask.chats.incoming import MAX_BYTES, Incoming
from pipelines.mailer import BoundedSession
from settings import Settings, get_settings
from tenants.accounts import policy, registry
from tenants.chats import mail_changes, store
from tenants.chats.mail import Reference
from tenants.chats.records import Body, Chat
from tenants.core.context import Tenant, acting_as
from tenants.core.errors import Forbidden, NotFound, trail

log = logging.getLogger("opora.mail")

SECONDS = 30.0
ATTEMPTS = 5
AT_ONCE = 50
_HEADERS_AT_ONCE, _HEADER_BYTES = 200, 20_000
_REPORT_BYTES = 50_000
"""Bytes of a delivery report that are read. The headers of the e-mail that came back follow a few notes."""
_HEADERS = "REFERENCES IN-REPLY-TO CONTENT-TYPE"
_UID = re.compile(rb"\bUID (\d+)")
_MAY_REFER = re.compile(rb"opora\.|=\?|multipart/report", re.IGNORECASE)
"""Some programs encode references: `=?utf-8?q?=3Copora=2E`."""


class _Imap(BoundedSession, imaplib.IMAP4):  # type: ignore[misc] # an attribute is a property here
    most_bytes = 2 * AT_ONCE * MAX_BYTES


class _ImapTls(BoundedSession, imaplib.IMAP4_SSL):  # type: ignore[misc] # an attribute is a property here
    most_bytes = _Imap.most_bytes


class Mailbox:
    def __init__(self, settings: Settings | None = None) -> None:
        self._settings = settings or get_settings()
        # The last e-mail looked at, of the mailbox in this state; UIDs start anew in another one.
        self._validity, self._last = b"", 0
        self._attempts = 0
        self.has_more = False

    def look(self, closing: Event | None = None) -> int:
        """Take the new e-mails of customers, and mark them as read. Returns how many belonged to a chat.

        Threat: thousands of e-mails from strangers delay customers' replies. So e-mails whose headers name no chat are
        skipped without fetching their bodies. `has_more` says whether the caller should look again at once.
        """
        taken, fetched, self.has_more = 0, 0, False
        with _opened(self._settings) as box:
            self._begin(box)
            unread = self._unread(box)
            for start in range(0, len(unread), _HEADERS_AT_ONCE):
                uids = unread[start : start + _HEADERS_AT_ONCE]
                if closing is not None and closing.is_set():
                    return taken
                sizes = _sizes(box, uids)
                for uid in uids:
                    if size := sizes.get(uid, MAX_BYTES):
                        self.has_more = fetched == AT_ONCE
                        if self.has_more or (closing is not None and closing.is_set()):
                            return taken
                        fetched += 1
                        taken += self._take(box, uid, size)
                    self._last, self._attempts = uid, 0
        return taken

    def _take(self, box: imaplib.IMAP4, uid: int, size: int) -> bool:
        """Take an e-mail. After `ATTEMPTS` failures it is skipped, so that it does not block the rest."""
        try:
            if _take(incoming.read(_fetched(box, uid, size), self._settings.mail_from)):
                box.uid("STORE", str(uid), "+FLAGS", r"(\Seen)")
                return True
        except Exception as error:
            self._attempts += 1
            if self._attempts < ATTEMPTS:
                raise
            log.error("an e-mail is left in the mailbox: %s", trail(error))
        return False

    def _begin(self, box: imaplib.IMAP4) -> None:
        status, _ = box.select(f'"{self._settings.imap_folder}"')
        if status != "OK":
            raise imaplib.IMAP4.error("there is no such folder")
        validity = (box.response("UIDVALIDITY")[1] or [b""])[0] or b""
        if validity != self._validity:
            self._validity, self._last = validity, 0

    def _unread(self, box: imaplib.IMAP4) -> list[int]:
        """Return the UIDs of the unread e-mails that were not looked at, the oldest first."""
        _, found = box.uid("SEARCH", f"UID {self._last + 1}:* UNSEEN")
        uids = [int(uid) for uid in (found[0] or b"").split()] if found else []
        # `*` is the last e-mail, even if it was looked at.
        return sorted(uid for uid in uids if uid > self._last)


@contextmanager
def _opened(settings: Settings) -> Iterator[imaplib.IMAP4]:
    address, checked = (settings.imap_host, settings.imap_port), ssl.create_default_context()
    if settings.imap_tls == "tls":
        box: imaplib.IMAP4 = _ImapTls(*address, ssl_context=checked, timeout=SECONDS)
    else:
        box = _Imap(*address, timeout=SECONDS)
    try:
        if settings.imap_tls == "starttls":
            box.starttls(checked)
        box.login(settings.imap_user, settings.imap_password.get_secret_value())
        yield box
    finally:
        with suppress(OSError, imaplib.IMAP4.error):
            box.logout()


def _sizes(box: imaplib.IMAP4, uids: Sequence[int]) -> dict[int, int]:
    """Return how many bytes of each e-mail to fetch, by its headers; 0 for an e-mail of a stranger."""
    wanted = f"(UID BODY.PEEK[HEADER.FIELDS ({_HEADERS})]<0.{_HEADER_BYTES}>)"
    _, parts = box.uid("FETCH", ",".join(map(str, uids)), wanted)
    found = dict[int, int]()
    for part, after in zip(parts, [*parts[1:], b""], strict=True):
        if isinstance(part, tuple):
            # Servers may send the UID before the headers or after them.
            named = _UID.search(part[0] + (after if isinstance(after, bytes) else b""))
            if named:
                found[int(named[1])] = _size(part[1])
    return found


def _size(header: bytes) -> int:
    if not _MAY_REFER.search(header):
        return 0
    try:
        read = incoming.read(header, "")
        if read.kind == "bounce":
            return _REPORT_BYTES
        return MAX_BYTES if _chat(read.references) else 0
    except Exception as error:
        # `_take` counts the failures of an e-mail and skips it in the end. Here, it would hold up all others.
        log.warning("the headers of an e-mail cannot be read: %s", trail(error))
        return MAX_BYTES


def _fetched(box: imaplib.IMAP4, uid: int, size: int) -> bytes:
    _, parts = box.uid("FETCH", str(uid), f"(UID BODY.PEEK[]<0.{size}>)")
    return next((part[1] for part in parts if isinstance(part, tuple)), b"")


def _take(read: Incoming) -> bool:
    if (found := _chat(read.references)) is None:
        return False
    with acting_as(found[0]):
        _store(found[1], read)
    return True


def _chat(references: Sequence[Reference]) -> tuple[Tenant, Chat] | None:
    for reference in references:
        with acting_as(Tenant(reference.tenant_id, "mail")) as tenant:
            if (chat := _named(reference)) is not None:
                return tenant, chat
    return None


def _named(reference: Reference) -> Chat | None:
    """Return the chat that a reference proves to know; None for any other, and where e-mail is switched off."""
    try:
        if registry.current().suspended_at is not None or not policy.current().email_replies:
            return None
        chat = store.get(reference.chat_id)
    except (NotFound, Forbidden):
        return None
    return chat if reference.names(chat.mail_token) else None


def _store(chat: Chat, read: Incoming) -> None:
    if read.kind == "bounce":
        mail_changes.note_undelivered(chat.chat_id, "returned")
        return
    if read.kind != "answer":
        log.info("an e-mail for chat %s is not taken: %s", chat.chat_id, read.kind)
        return
    notice = queued_notice(chat)
    words = read.text or text("mail.attachments_only", chat.locale)
    body: Body = {"email": {"from": read.sender, "attachments": read.attachments}}
    if not mail_changes.receive(
        chat.chat_id, words, client_id=mail_changes.PREFIX + read.digest, body=body, notice=notice
    ):
        log.warning("chat %s gets too many e-mails", chat.chat_id)
