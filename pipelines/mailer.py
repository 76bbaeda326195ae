"""Sends e-mail by the installation's mail server.

Threats: a header injected by a name or a subject (`EmailMessage` refuses line breaks, but not those of an encoded word:
CVE-2024-6923), a name that reads as the address of another sender, a server that hangs or sends without end (limits for
each answer and for the session), and credentials over an open connection (TLS with a checked certificate, unless
switched off).
"""

import io
import re
import smtplib
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.headerregistry import Address, HeaderRegistry, MessageIDHeader
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import format_datetime, make_msgid, parseaddr
from time import monotonic
from typing import ClassVar

from components.ingest.fetch import BoundedSource
from settings import Settings, get_settings

SECONDS = 15.0
"""Time limit of each answer of the server."""
SESSION_SECONDS = 60.0
"""Time limit for everything that a server answers, plus that of one answer."""
_LONGEST_NAME, _LONGEST_SUBJECT = 50, 200
_SPECIAL = re.compile(r'[<>()\[\]:;@\\,"]+')
"""Characters with a meaning in lists of addresses (RFC 5322, 3.2.3). Quoting them is not enough: CPython up to 3.13.1
folds a long name without its quotation marks (https://github.com/python/cpython/issues/80222)."""
_ENCODED = "=?"
"""Opens an encoded word (RFC 2047), which is decoded, line breaks included, when a header is set."""
_HEADERS = HeaderRegistry()
for _name in ("in-reply-to", "references"):
    # As free text, they would be encoded like words of a subject (CPython 3.11), and no mail program would know them.
    _HEADERS.map_to_type(_name, MessageIDHeader)  # type: ignore[arg-type] # becomes a mixin of `BaseHeader`
_POLICY = SMTP.clone(header_factory=_HEADERS)
_LASTING = range(500, 600)
_SIGN_IN = frozenset({530, 534, 535, 538})


class BoundedSession:
    """Bounds what a client of the standard library reads from a mail server. A mixin for `smtplib` and `imaplib`.

    Both read from the connection's `file`, which they open after connecting and again after STARTTLS.
    """

    most_bytes: ClassVar[int] = 100_000
    _until: float = 0.0
    _reader: io.BufferedReader | None = None

    @property
    def file(self) -> io.BufferedReader | None:
        return self._reader

    @file.setter
    def file(self, opened: io.BufferedReader | None) -> None:
        self._until = self._until or monotonic() + SESSION_SECONDS
        source = None if opened is None else BoundedSource(opened.detach(), self.most_bytes, self._until)
        self._reader = None if source is None else io.BufferedReader(source)

    _file = file  # the name in `imaplib` of CPython 3.14


class _Smtp(BoundedSession, smtplib.SMTP):
    pass


class _SmtpTls(BoundedSession, smtplib.SMTP_SSL):
    pass


class MailFailed(Exception):
    """The server did not take an e-mail. `final`: another attempt would end alike."""

    def __init__(self, fault: str, *, final: bool = False) -> None:
        super().__init__(fault)
        self.fault = fault
        self.final = final


@dataclass(frozen=True, slots=True)
class Mail:
    """An e-mail with its plain text and the same as HTML.

    :param sender: display name of the sender; the address is the installation's.
    """

    to: str
    sender: str
    subject: str
    text: str
    html: str
    headers: Mapping[str, str] = field(default_factory=dict)


def send(mail: Mail) -> None:
    settings = get_settings()
    try:
        message = _message(mail, settings)
    except ValueError as refused:
        raise MailFailed("invalid", final=True) from refused
    try:
        with _connected(settings) as server:
            server.send_message(message, settings.mail_from, [mail.to])
    except smtplib.SMTPRecipientsRefused as refused:
        code = max((code for code, _ in refused.recipients.values()), default=550)
        raise MailFailed(f"smtp {code}", final=code in _LASTING) from refused
    except smtplib.SMTPResponseException as refused:
        code = refused.smtp_code
        raise MailFailed(f"smtp {code}", final=code in _LASTING and code not in _SIGN_IN) from refused
    except (OSError, smtplib.SMTPException, ValueError) as fault:
        raise MailFailed("unreachable") from fault


def display_name(name: str) -> str:
    """Return a name of at most 50 characters that cannot be read as an address."""
    return _on_one_line(_SPECIAL.sub(" ", name))[:_LONGEST_NAME]


def _on_one_line(words: str) -> str:
    return " ".join(words.replace(_ENCODED, " ").split())


def domain() -> str:
    return get_settings().mail_from.rpartition("@")[2] or "localhost"


def _message(mail: Mail, settings: Settings) -> EmailMessage:
    message = EmailMessage(_POLICY)
    message["From"] = Address(display_name(mail.sender), addr_spec=parseaddr(settings.mail_from)[1])
    message["To"] = Address(addr_spec=mail.to)
    message["Subject"] = _on_one_line(mail.subject)[:_LONGEST_SUBJECT]
    message["Date"] = format_datetime(datetime.now(UTC))
    for header, value in {"Message-ID": make_msgid(domain=domain()), **mail.headers}.items():
        message[header] = value
    message.set_content(mail.text)
    message.add_alternative(mail.html, subtype="html")
    return message


def _connected(settings: Settings) -> smtplib.SMTP:
    address, checked = (settings.smtp_host, settings.smtp_port), ssl.create_default_context()
    if settings.smtp_tls == "tls":
        server: smtplib.SMTP = _SmtpTls(*address, timeout=SECONDS, context=checked)
    else:
        server = _Smtp(*address, timeout=SECONDS)
    try:
        if settings.smtp_tls == "starttls":
            server.starttls(context=checked)
        if settings.smtp_user:
            server.login(settings.smtp_user, settings.smtp_password.get_secret_value())
    except BaseException:
        server.close()
        raise
    return server
