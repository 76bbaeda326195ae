"""Where a passage stands: before or after the matter, in another language than the question, in the reply of a tool."""

import re

from components.language.captions import innermost, is_later_step, is_preparation, leads_elsewhere
from components.language.words import stems
from components.turn import Passage, Query
from tenants.tools import ORIGIN

_CYRILLIC = re.compile("[а-яё]", re.IGNORECASE)


def stands_beside(passage: Passage, query: Query) -> bool:
    """Whether a section is one of the later steps of its article, prepares for what that is about, or leads on from it,
    where nobody asked for that.
    """
    heading = innermost(passage.heading)
    if is_later_step(heading):
        return True
    return (is_preparation(heading) or leads_elsewhere(heading)) and query.weights.keys().isdisjoint(stems(heading))


def shares_language(query: Query, passage: Passage) -> bool:
    """Whether a question can have words in common with a passage."""
    return passage.lang == ("ru" if _CYRILLIC.search(query.search) else "en")


def is_looked_up(passage: Passage) -> bool:
    """Whether a tool replied with it, in fields and not in sentences."""
    return passage.doc_id.startswith(ORIGIN)
