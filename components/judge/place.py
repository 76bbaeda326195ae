"""Where a passage stands: beside or against the matter, in another language than the question, in a tool's reply."""

import re

from components.language.captions import innermost, is_later_step, is_preparation, leads_elsewhere
from components.language.normalise import fold
from components.language.words import stems
from components.turn import Passage, Query
from tenants.tools import ORIGIN

_CYRILLIC = re.compile("[а-яё]", re.IGNORECASE)
_DENIED = re.compile(r"(?:\b(?:не|not|never)|(?<!ca)(?<!could)n['’]t)\s+(\w+)")
"""A word that is denied. Who cannot do a thing asks how it is done, so "can't" denies nothing."""


def stands_beside(passage: Passage, query: Query) -> bool:
    """Whether a section is one of the later steps of its article, prepares for what that is about, or leads on from it,
    where nobody asked for that.
    """
    heading = innermost(passage.heading)
    if is_later_step(heading):
        return True
    return (is_preparation(heading) or leads_elsewhere(heading)) and query.weights.keys().isdisjoint(stems(heading))


def is_contrary(passage: Passage, query: Query) -> bool:
    """Whether the heading says what the question denies, and nothing in the section denies it: "if you remember your
    password" is not for those who do not. A title may say it: an article is for more than one case.
    """
    denied = _denied(query.search)
    # Most questions deny nothing.
    if not denied or denied.isdisjoint(stems(innermost(passage.heading))):
        return False
    return denied.isdisjoint(_denied(f"{passage.title}\n{passage.heading}\n{passage.text}"))


def _denied(text: str) -> frozenset[str]:
    return frozenset(stems(" ".join(_DENIED.findall(fold(text)))))


def shares_language(query: Query, passage: Passage) -> bool:
    """Whether a question can have words in common with a passage."""
    return passage.lang == ("ru" if _CYRILLIC.search(query.search) else "en")


def is_looked_up(passage: Passage) -> bool:
    """Whether a tool replied with it, in fields and not in sentences."""
    return passage.doc_id.startswith(ORIGIN)
