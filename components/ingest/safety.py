"""Keeps documents from instructing the assistant, hiding text from readers, and bringing markup into answers.

The threat: whoever can put a page into the knowledge base, or a line into a page, speaks through the assistant to every
customer, in words that no operator has seen. Nothing is thrown away for it: a suspicious document is found, read and
shown to operators like any other, with a flag. What is flagged is never quoted, and no markup leaves here alive.
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
"""One of the characters that all of these are about."""
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
    """The flags of a short text as received, such as a title or a file's name."""
    raised: list[Flag] = []
    if any(map(gives_orders, {text, re.sub(r"[_\-./]+", " ", text)})):
        raised.append("injection")
    if hides_characters(text):
        raised.append("hidden_characters")
    return tuple(raised)


def hides_characters(text: str) -> bool:
    """Whether a text as it was given holds a message, or breaks words up, by characters that nobody sees.

    A few of them are usual: they say where a long word may be broken, and programs leave them behind.
    """
    if text.isascii() or not _SUSPECT.search(text):
        return False
    if _SMUGGLED.search(text) or _LONG_UNSEEN.search(text):
        return True
    return len(_SPLIT_WORD.findall(text)) > _MAX_SPLIT_WORDS


def quotable(text: str, sentences: Sequence[Span]) -> tuple[Span, ...]:
    """The sentences of a chunk that may be quoted: all but those that tell the assistant what to do."""
    unsafe = orders(text, sentences)
    return tuple(span for place, span in enumerate(sentences) if place not in unsafe)


def inert(text: str) -> str:
    """`text`, outside of code, so that no reader of HTML or Markdown takes any of it for an element or a link.

    A space after the bracket is enough, and a customer can still read what stood there. Placeholders such as `<name>`
    stay as they are: they do nothing.
    """
    if "<" in text:
        text = _TAG.sub("< ", text)
    if "]" in text:
        text = _DEFINITION.sub(r"\1 :", _LINK.sub("] ", text))
    return text
