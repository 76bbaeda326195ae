"""Points of an index: chunks with their vectors, as stored and as found."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from tenants.core.json import Json

Weights: TypeAlias = Mapping[int, float]
"""A sparse vector: dimension (unsigned 32 bit) to weight. A mapping cannot name a dimension twice."""

Dense: TypeAlias = Sequence[float]
"""A dense vector, one number for each dimension. Compared by cosine, so its length does not matter."""

Vector: TypeAlias = Weights | Dense


@dataclass(frozen=True, slots=True, eq=False)
class Sparse:
    """A sparse vector to be stored, in a third of the time that a mapping takes. `dimensions` ascend."""

    dimensions: npt.NDArray[np.uint32]
    weights: npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Point:
    """A chunk to store. `id` is a UUID; `vectors` maps names to vectors; `payload` is `{content, meta}`."""

    id: str
    vectors: Mapping[str, Vector | Sparse]
    payload: Mapping[str, Json]


@dataclass(frozen=True, slots=True)
class Hit:
    """A chunk found by a search. `score` is the raw score of the vector that found it (0 when fetched by id).

    `dense` is its normalised dense vector, if requested and present.
    """

    id: str
    score: float
    payload: Mapping[str, Json]
    dense: Dense | None = None


@dataclass(frozen=True, slots=True)
class Conditions:
    """Payload conditions, all of which must hold.

    `any_of` maps a payload path (`meta.tags`) to accepted values, an empty tuple accepting nothing;
    `between` maps a payload path of ISO dates to (from, to), either end None for open.
    """

    any_of: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    between: Mapping[str, tuple[str | None, str | None]] = field(default_factory=dict)
