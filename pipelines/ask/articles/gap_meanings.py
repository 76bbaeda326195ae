"""Questions without an answer, grouped by meaning: with the index's encoder, or else by words."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from hashlib import sha256

import numpy as np

from components.embed.dense import EmbeddingFailed, embed_question
from components.language.encoder_settings import DenseSettings, settings_from
from components.language.identifiers import codes
from components.language.words import stems
from tenants.audit.entry import searchable
from tenants.core.errors import OporaError
from tenants.index import open_collection
from tenants.knowledge import gap_groups, gaps
from tenants.knowledge.gap_groups import Group
from tenants.knowledge.gaps import Gap, Status

ALIKE = 0.9
"""Cosine from which two questions mean the same. By e5-small on 360 utterances of 60 intents (clinc150, dev), 0.90 of
the pairs from here on are of one intent, and 0.53 of an intent's pairs are; from 0.88 on 0.72 and 0.66."""

_DIGITS = re.compile(r"\d+")
_CODE_DIGITS = 4
"""Digits in a row that a code of a fault or model has, at most."""

AT_ONCE = 100
"""Questions embedded per request; until the next one, the others are grouped by their words."""


def groups(status: Status | None = "open", words: str = "") -> tuple[Group, ...]:
    """Return the gaps, those that mean the same together, the group asked most first.

    :param words: only groups in which some question has all of these words.
    """
    wanted = searchable(words).split()
    grouped = _grouped(gaps.all(status))
    return tuple(group for group in grouped if not wanted or any(_has(gap, wanted) for gap in group.gaps))


def group_of(gap: Gap) -> Group:
    listed = gaps.all(gap.status)
    if all(one.gap_id != gap.gap_id for one in listed):  # asked too rarely to be listed
        listed = (*listed, gap)
    return next(group for group in _grouped(listed) if any(one.gap_id == gap.gap_id for one in group.gaps))


def _grouped(listed: Sequence[Gap]) -> tuple[Group, ...]:
    try:
        dense = settings_from(open_collection().encoder).dense
    except OporaError:
        # An index that cannot be read is no reason to hide what was asked.
        dense = None
    if dense is None:
        return gap_groups.grouped((replace(gap, vector=None) for gap in listed), codes_of=subjects)
    return gap_groups.grouped(_embedded(listed, dense), ALIKE, codes_of=subjects)


def subjects(question: str) -> tuple[str, ...]:
    """Return the codes that name what a question is about: E20, AMQ8075.

    Order and parcel numbers have longer numbers: 20 questions like "Where is my order ORD-4471820?" are one gap.
    """
    return tuple(code for code in codes(question) if max(map(len, _DIGITS.findall(code))) <= _CODE_DIGITS)


def _embedded(listed: Sequence[Gap], dense: DenseSettings) -> Iterable[Gap]:
    """Return the gaps with the vectors of this model; missing ones are computed and stored."""
    names = {gap.gap_id: _vector_of(gap, dense) for gap in listed}
    missing = [gap for gap in listed if gap.vector_of != names[gap.gap_id] and _is_standalone(gap)][:AT_ONCE]
    made: dict[str, tuple[bytes, str]] = {}
    for gap in missing:
        try:
            vector = np.asarray(embed_question(gap.question, dense), np.float32)
        except EmbeddingFailed:
            break
        made[gap.gap_id] = (vector / (np.linalg.norm(vector) or 1.0)).tobytes(), names[gap.gap_id]
    if made:
        gaps.put_vectors(made)
    for gap in listed:
        vector_of = names[gap.gap_id]
        if gap.gap_id in made:
            yield replace(gap, vector=made[gap.gap_id][0], vector_of=vector_of)
        else:
            yield gap if gap.vector_of == vector_of else replace(gap, vector=None)


def _is_standalone(gap: Gap) -> bool:
    """Return whether the question is self-contained; a follow-up is not, and is grouped by its stems only."""
    return set(gap.stems) <= set(stems(gap.question))


def _vector_of(gap: Gap, dense: DenseSettings) -> str:
    return sha256(f"{dense.json_form}\n{gap.question}".encode()).hexdigest()[:32]


def _has(gap: Gap, words: Sequence[str]) -> bool:
    text = searchable(gap.question)
    return all(word in text for word in words)
