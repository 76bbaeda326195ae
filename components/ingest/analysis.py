"""The search features of a chunk, computed from its words in one pass: sparse vector, and terms for the lexicon.

Imports nothing heavy: worker processes load this on each start.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from components.language.encoder import encode_words, passage_words
from components.language.encoder_settings import settings_from
from components.language.words import content_terms
from components.turn import Frozen


@dataclass(frozen=True, slots=True)
class Text(Frozen):
    """Text to encode for a chunk. `heading` is the path below the title."""

    chunk_id: str
    title: str
    heading: str
    text: str


@dataclass(frozen=True, slots=True)
class Analysed(Frozen):
    """Search data of one chunk.

    :param packed: its sparse vector: the bytes of its dimensions and of their weights, a tenth of the
        size of a mapping.
    :param stems: its distinct content stems.
    :param words: its distinct content words, folded.
    """

    packed: tuple[bytes, bytes]
    stems: frozenset[str]
    words: frozenset[str]


def analysed(texts: Sequence[Text], encoder: str) -> list[Analysed]:
    """Analyse these chunks.

    :param encoder: the encoder settings in their stored JSON form.
    """
    settings = settings_from(encoder)
    results = []
    for text in texts:
        words = passage_words(text.title, text.heading, text.text)
        dimensions, weights = encode_words(words, settings)
        results.append(Analysed((dimensions.tobytes(), weights.tobytes()), *content_terms(words.values())))
    return results
