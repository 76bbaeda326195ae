"""Trained linear classifiers of messages: by words, and by meaning on the vectors of the default encoder.

Words tell the intents that are named apart ("cancel my order"), meaning those that are a tone: a plea, an insult, small
talk, a question about anything else.
"""

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

import numpy as np
import numpy.typing as npt

from components.embed.dense import EmbeddingFailed, embed_question
from components.judge.relevance import is_fitted
from components.language.encoder_settings import settings_from
from tenants.core.points import Dense
from tenants.index import open_collection

WORDS_MODEL = Path(__file__).parent / "intent.npz"
MEANING_MODEL = Path(__file__).parent / "meaning.npz"


class LinearModel:
    """A trained linear classifier, read from its file. Pure arithmetic, thread-safe."""

    def __init__(self, path: Path) -> None:
        with np.load(path, allow_pickle=False) as stored:
            self.labels = [str(label) for label in stored["labels"]]
            scales = stored["scales"] if "scales" in stored else np.ones(1, dtype=np.float32)
            self._weights: npt.NDArray[np.float32] = stored["weights"].astype(np.float32) * scales[:, None]
            self._biases: npt.NDArray[np.float32] = stored["biases"]
            self.digest = str(stored["digest"])

    def probabilities(self, vector: Sequence[float] | npt.NDArray[np.float32]) -> dict[str, float]:
        """Return the probability of each label; they add up to 1."""
        given = np.asarray(vector, dtype=np.float32)
        active = np.flatnonzero(given)  # of 32,768 features of a message's words, some 60
        scores = (self._weights[:, active] @ given[active] + self._biases).astype(np.float64)
        odds = np.exp(scores - scores.max())
        return dict(zip(self.labels, (odds / odds.sum()).tolist(), strict=True))


@lru_cache(maxsize=2)
def model(path: Path) -> LinearModel:
    """Return the model of a file, read once."""
    return LinearModel(path)


def vector_of(text: str) -> Dense | None:
    """Return the vector of a message; None if the tenant's index has no vectors of the encoder of the training."""
    dense = settings_from(open_collection().encoder).dense
    if dense is None or not is_fitted(dense.space):
        return None
    try:
        return embed_question(text, dense)
    except EmbeddingFailed:
        return None
