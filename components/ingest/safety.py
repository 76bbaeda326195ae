"""Keeps documents from instructing the assistant, hiding text from readers, and bringing markup into answers.

The threat: an author of a page in the knowledge base, or of one line, speaks through the assistant to every customer,
in words that no operator has seen. Suspicious documents are not discarded: they are indexed, searched and shown to
operators like any other, with a flag. Flagged text is never quoted, and all markup is made inert.
"""

import re
from collections.abc import Sequence
from typing import Literal

from components.language.injection import gives_orders, orders

Flag = Literal["injection", "hidden_characters", "hidden_text"]
Span = tuple[int, int]

# Tags and variation selectors that spell ASCII, and directions turned by force, have no place in any help article.
_SMUGGLED = re.compile("[\U000e0020-\U000e007f]{3}|[\U000e0100-\U000e01ef]{3}|[\u202d\u202e]")
_UNSEEN = "[\u200b-\u200f\u2060-\u2064\ufeff]"
_SUSPECT = re.compile(_UNSEEN[:-1] + "\U000e0020-\U000e007f\U000e0100-\U000e01ef\u202d\u202e]")
"""Any character that the patterns above look for."""
_LONG_UNSEEN = re.compile(f"{_UNSEEN}{{8}}")
_SPLIT_WORD = re.compile(rf"[^\W\d_]{_UNSEEN}+[^\W\d_]")
_MAX_SPLIT_WORDS = 5

_ACTIVE = (
    "a applet audio base body button details embed form frame frameset head html iframe img input link math meta "
    "noscript object plaintext script select style svg template textarea title video xmp"
).replace(" ", "|")
_CLOSED = f"{_ACTIVE}|br|div|h[1-6]|li|ol|p|pre|span|table|tbody|td|tfoot|th|thead|tr|ul"
# A declaration, an element that does something, one with attributes, an address other than a page's, a closing tag of
# HTML. A closing tag of anything else, `</message>`, does nothing; it is part of a sample that has to stay readable.
_TAG = re.compile(
    rf"<(?=[!?]|(?:{_ACTIVE})(?![\w-])|[a-z][^<>=]*=|(?!https?://|mailto:)[a-z][a-z0-9+.-]*:"
    rf"|/(?:{_CLOSED})(?![\w-])|/(?![a-z]))",
    re.IGNORECASE,
)
_LINK = re.compile(r"\](?=[(\[])")
_DEFINITION = re.compile(r"^( {0,3}\[[^\]\n]*\]):", re.MULTILINE)


def flags(text: str) -> tuple[Flag, ...]:
    """Return the flags of a short text as received, such as a title or a file's name."""
    raised: list[Flag] = []
    if any(map(gives_orders, {text, re.sub(r"[_\-./]+", " ", text)})):
        raised.append("injection")
    if hides_characters(text):
        raised.append("hidden_characters")
    return tuple(raised)


def hides_characters(text: str) -> bool:
    """Return whether the original text carries a hidden message or splits words with invisible characters.

    A few invisible characters are normal: they mark line-break opportunities, and programs leave them behind.
    """
    if text.isascii() or not _SUSPECT.search(text):
        return False
    if _SMUGGLED.search(text) or _LONG_UNSEEN.search(text):
        return True
    return len(_SPLIT_WORD.findall(text)) > _MAX_SPLIT_WORDS


def quotable(text: str, sentences: Sequence[Span]) -> tuple[Span, ...]:
    """Return the sentences of a chunk that may be quoted: all but those that tell the assistant what to do."""
    unsafe = orders(text, sentences)
    return tuple(span for place, span in enumerate(sentences) if place not in unsafe)


def inert(text: str) -> str:
    """Defuse HTML elements and Markdown links in `text`, a part of a document outside of code.

    A space after the bracket is enough and leaves the text readable. Placeholders such as `<name>` are harmless and
    stay unchanged.
    """
    if "<" in text:
        text = _TAG.sub("< ", text)
    if "]" in text:
        text = _DEFINITION.sub(r"\1 :", _LINK.sub("] ", text))
    return text
