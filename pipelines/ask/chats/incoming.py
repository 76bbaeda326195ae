"""Reads an e-mail that came to the mailbox: is it a customer's answer, to which chat, and what does it say?

Threats: two programs that answer each other for ever (automatic e-mails are refused: RFC 3834, `Precedence`, lists), a
stranger (only a reference of our own e-mails opens a chat), and a mail made to exhaust the parser (size, and every
failure to read it is a refusal).
"""

import re
from codecs import lookup
from collections.abc import Iterator
from dataclasses import dataclass
from email import message_from_bytes
from email.message import EmailMessage
from email.parser import BytesHeaderParser
from email.policy import EmailPolicy
from email.utils import parseaddr
from hashlib import sha256
from typing import Literal, TypeAlias, cast

from lxml import etree
from lxml.etree import LxmlError
from lxml.html import document_fromstring

from components.language.texts import LOCALES, text
from tenants.chats import mail
from tenants.chats.mail import Reference

MAX_BYTES = 500_000
"""Bytes of an e-mail that are read: its text comes first, attachments after it."""
LONGEST = 2_000
"""Characters of an answer that are kept, as of a message in the chat."""

Kind: TypeAlias = Literal["answer", "bounce", "automatic", "foreign", "empty", "unreadable"]

_LONGEST_READ = 50_000
"""Characters of a text that are read for its answer: what follows is quoted."""
_LONGEST_MARKUP = 100_000
"""Characters of HTML that are parsed. libxml2 compares the attributes of an element in quadratic time."""
_LONGEST_HEADER, _LONGEST_THREAD = 500, 20_000
"""Characters of a header that are read. The standard library parses addresses and parameters in quadratic time."""
_MOST_PARAMETERS, _MOST_COMMENTS = 8, 4
"""Parameters and brackets of a header that are read. The standard library parses those of a part at each look at it."""
_MOST_BORDERS, _MOST_PARTS = 20, 100
"""Nested multiparts, and lines that may begin a part. The standard library compares each line to all borders."""
_BORDER = re.compile(rb"boundary\s*=", re.IGNORECASE)
_THREAD = frozenset({"references", "in-reply-to"})
"""Headers with a chain of references, which may be long."""

_QUADRATIC = "punycode"
"""A character set whose decoder takes quadratic time; no e-mail is written in it."""
_BULK = frozenset({"bulk", "junk", "list", "auto_reply"})
_ROBOTS = re.compile(r"(?:mailer-daemon|postmaster|no-?reply|do-?not-?reply)@", re.IGNORECASE)
_SENT_BY_PROGRAMS = ("List-Id", "List-Unsubscribe", "X-Autoreply", "X-Autorespond", "X-Loop")
_VERBS = r"(?:wrote|writes|пишет|написал|написала|написал\(а\))"
_ATTRIBUTION = re.compile(
    r"\s*(?:-{2,}\s*(?:original message|исходное сообщение|пересылаемое сообщение|forwarded message)\s*-{2,}"
    rf"|_{{8,}}|(?:from|от|von|de):\s.+@.+|\S.{{4,300}}\s{_VERBS}:)\s*\Z",
    re.IGNORECASE,
)
_WITHOUT_VERB = re.compile(r"<[^<>@\s]+@[^<>@\s]+>:\s*\Z")
"""`Tue, 24 Nov, Shop <help@shop.example>:`"""
_LONGEST_LINE = 400
_UNSAID = ("blockquote", "script", "style", "head")
_BLOCKS = ("p", "div", "br", "tr", "li", "h1", "h2", "h3", "pre")


@dataclass(frozen=True, slots=True)
class Incoming:
    """An e-mail: what it is, the chats that it refers to, the latest first, and what a customer wrote in it.

    `digest` identifies it, so that it is stored once.
    """

    kind: Kind
    references: tuple[Reference, ...] = ()
    sender: str = ""
    text: str = ""
    attachments: int = 0
    digest: str = ""


class _Policy(EmailPolicy):
    """Reads only the beginning of each header, also of the parts of an e-mail."""

    def header_source_parse(self, sourcelines: list[str]) -> tuple[str, str]:
        name, value = super().header_source_parse(sourcelines)
        if name.lower().startswith("content-"):
            for mark, most in ((";", _MOST_PARAMETERS), ("(", _MOST_COMMENTS)):
                value = mark.join(value.split(mark, most + 1)[: most + 1])
        return name, value[: _LONGEST_THREAD if name.lower() in _THREAD else _LONGEST_HEADER]


_POLICY = _Policy()


def read(raw: bytes, own_address: str) -> Incoming:
    """Read an e-mail; never raises for what is in it.

    :param raw: the e-mail, at most its first `MAX_BYTES` bytes.
    :param own_address: an e-mail from it is our own.
    """
    try:
        return _read(raw[:MAX_BYTES], own_address)
    except (ValueError, LookupError, AttributeError, TypeError, RecursionError, LxmlError):
        return Incoming("unreadable")


def _read(raw: bytes, own_address: str) -> Incoming:
    # The header alone: the e-mail of a stranger is not worth more.
    message = cast("EmailMessage", BytesHeaderParser(policy=_POLICY).parsebytes(raw))
    references = mail.references(f"{message.get('References', '')} {message.get('In-Reply-To', '')}")
    if message.get_content_type() == "multipart/report":
        # The e-mail that came back is part of the report.
        return Incoming("bounce", references or mail.references(raw.decode("ascii", "replace")))
    sender = parseaddr(str(message.get("From", "")))[1].lower()
    if not references:
        return Incoming("foreign")
    if _is_automatic(message, sender) or sender == own_address.lower():
        return Incoming("automatic", references)
    if len(_BORDER.findall(raw)) > _MOST_BORDERS or raw.count(b"\n--") > _MOST_PARTS:
        return Incoming("unreadable", references)
    message = cast("EmailMessage", message_from_bytes(raw, policy=_POLICY))
    words = without_quotes(_text(message))[:LONGEST]
    named = str(message.get("Message-ID", "")).encode("utf-8", "replace") or raw
    attachments = sum(1 for _ in message.iter_attachments()) if message.is_multipart() else 0
    kind: Kind = "answer" if words or attachments else "empty"
    return Incoming(kind, references, sender, words, attachments, sha256(named).hexdigest()[:32])


def _is_automatic(message: EmailMessage, sender: str) -> bool:
    submitted = str(message.get("Auto-Submitted", "no")).partition(";")[0].strip().lower()
    return (
        submitted != "no"
        or str(message.get("Precedence", "")).strip().lower() in _BULK
        or str(message.get("Return-Path", "")).strip() == "<>"
        or any(message.get(header) for header in _SENT_BY_PROGRAMS)
        or not sender
        or bool(_ROBOTS.match(sender))
    )


def without_quotes(words: str) -> str:
    """Return an answer without the e-mail that it quotes, and without NUL.

    The quotation begins with our own line above it, a line that names its author, or a mark `>`.
    """
    lines: list[str] = []
    for line in words.replace("\x00", "").replace("\r\n", "\n").split("\n"):
        attributed = _ATTRIBUTION.match(line[:_LONGEST_LINE])
        if attributed and lines and lines[-1] and line.lstrip().startswith("<"):
            # The sender's program has wrapped the line: the one before begins with the date.
            lines.pop()
        if attributed or any(above in line for above in _above()):
            break
        lines.append(line.rstrip())
    while lines and (not lines[-1] or lines[-1].lstrip().startswith(">") or _WITHOUT_VERB.search(lines[-1])):
        lines.pop()
    return "\n".join(line for line in lines if not line.lstrip().startswith(">")).strip()


def _above() -> Iterator[str]:
    return (text("mail.above", locale).strip("— ") for locale in LOCALES)


def _text(message: EmailMessage) -> str:
    body = message.get_body(("plain", "html"))
    if body is None:
        return ""
    if lookup(body.get_content_charset("utf-8")).name == _QUADRATIC:
        raise ValueError(_QUADRATIC)
    content = body.get_content()
    if not isinstance(content, str):
        return ""
    return (_plain(content) if body.get_content_subtype() == "html" else content)[:_LONGEST_READ]


def _plain(markup: str) -> str:
    if not markup.strip():
        return ""
    tree = document_fromstring(markup[:_LONGEST_MARKUP])
    for element in list(tree.iter(*_BLOCKS, *_UNSAID)):
        element.tail = f"\n{element.tail or ''}"
    etree.strip_elements(tree, *_UNSAID, with_tail=False)
    return str(etree.tostring(tree, encoding="unicode", method="text"))
