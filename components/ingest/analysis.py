"""What a chunk is found by, worked out of its words in one go: sparse vectors, and terms for the lexicon.

Imports nothing heavy: worker processes load this on each start.
"""

from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from components.language.encoder import encode_words, passage_words
from components.language.encoder_settings import settings_from
from components.language.terms import content_terms
from components.turn import Frozen


@dataclass(frozen=True, slots=True)
class Text(Frozen):
    """What a chunk is encoded from. `heading` is the path below the title."""

    chunk_id: str
    title: str
    heading: str
    text: str


@dataclass(frozen=True, slots=True)
class Analysed(Frozen):
    """What one chunk is found by.

    :param packed: its sparse vectors by name, as dimensions and weights: an eighth of what a mapping takes to send.
    :param stems: its distinct content stems.
    :param words: its distinct content words, folded.
    """

    packed: Mapping[str, tuple["array[int]", "array[float]"]]
    stems: frozenset[str]
    words: frozenset[str]

    @property
    def vectors(self) -> dict[str, dict[int, float]]:
        """The sparse vectors by name."""
        return {
            name: dict(zip(dimensions, weights, strict=True)) for name, (dimensions, weights) in self.packed.items()
        }


def analysed(texts: Sequence[Text], encoder: str) -> list[Analysed]:
    """Each of these chunks analysed.

    :param encoder: the settings, as they are stored with an index.
    """
    settings = settings_from(encoder)
    found = []
    for one in texts:
        words = passage_words(one.title, one.heading, one.text)
        vectors = encode_words(words, settings)
        packed = {name: (array("I", vector), array("d", vector.values())) for name, vector in vectors.items()}
        found.append(Analysed(packed, *content_terms(words)))
    return found
