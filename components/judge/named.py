"""Is what a question names what the text is about? A guide for Kubernetes is none for Terraform.

Names are taken from Latin words in a short Russian question: products, protocols, options. Of 124 graded passages that
answer a question with such names 97% hold every one, of 1,965 that do not 61% (Yandex Cloud, Microsoft). A rare name in
a title that the question lacks tells nothing. English questions say names in no such way, and long ones name much in
passing, so neither is held to this.
"""

import re
from collections.abc import Iterable, Sequence, Set

from components.language.relatives import families, relatives
from components.language.words import stems, words
from components.turn import Passage, Query

_RARE = 3.0
"""Inverse document frequency from which on a name tells: it stands in fewer than one chunk of twenty."""

_LONG = 6
"""Letters from which on a name with a letter too many or too few is the same name."""

_SHORT = 30
"""Words of a question that says nothing in passing."""

_CYRILLIC = re.compile("[а-яёА-ЯЁ]")
_LATIN = re.compile("[a-zA-Z]{2}")
_ASIDE = re.compile(r"\([^)]*\)|\S+@\S+")


def rare_names(query: Query) -> tuple[str, ...]:
    """The stems of the rare names in the question, in order.

    What stands in brackets only says something again, and an email address is whose question it is.
    """
    if not _CYRILLIC.search(query.search):
        return ()
    said = words(_ASIDE.sub(" ", query.search))
    if len(said) > _SHORT:
        return ()
    found = (word.stem for word in said if not word.stop and _LATIN.search(word.text))
    rare = (stem for stem in found if query.weights.get(stem, 0.0) > _RARE and stem not in query.doubtful)
    return tuple(dict.fromkeys(rare))


def names_in(wanted: Iterable[str], passages: Sequence[Passage], text: str = "") -> frozenset[str]:
    """Those of the names that stand in the passages, their titles and headings, or in `text`."""
    parts = (part for passage in passages for part in (passage.title, passage.heading, passage.text))
    said = frozenset(stems("\n".join((*parts, text))))
    kin = families(said)
    return frozenset(stem for stem in wanted if stem in said or relatives(stem, kin) or _misspelt(stem, said))


def _misspelt(name: str, said: Set[str]) -> bool:
    """Whether a long name lacks one letter of what is said, or has one too many: ARPNET is ARPANET.

    One letter for another may be another name, and so may be a figure.
    """
    if len(name) < _LONG or not name.isalpha():
        return False
    shorter = {name[:at] + name[at + 1 :] for at in range(len(name))}
    return any(
        stem in shorter
        or (len(stem) == len(name) + 1 and any(stem[:at] + stem[at + 1 :] == name for at in range(len(stem))))
        for stem in said
        if abs(len(stem) - len(name)) == 1 and stem.isalpha()
    )
