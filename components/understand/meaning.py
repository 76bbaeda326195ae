"""Intents by meaning: a trained linear classifier on the vectors of the default encoder.

Words tell the intents that are named apart ("cancel my order"), meaning those that are a tone: a plea, an insult, small
talk, a question about anything else.
"""

from pathlib import Path

import numpy as np
import numpy.typing as npt

from components.embed.dense import EmbeddingFailed, embed_question
from components.judge.relevance import is_fitted
from components.language.encoder_settings import settings_from
from tenants.core.points import Dense
from tenants.index import open_collection

MEANING_MODEL = Path(__file__).parent / "meaning.npz"


class MeaningModel:
    """A trained linear classifier of question vectors, read from its file. Pure arithmetic, thread-safe."""

    def __init__(self, path: Path = MEANING_MODEL) -> None:
        with np.load(path, allow_pickle=False) as stored:
            self.labels = [str(label) for label in stored["labels"]]
            self._weights: npt.NDArray[np.float64] = stored["weights"].astype(np.float64)
            self._biases: npt.NDArray[np.float64] = stored["biases"].astype(np.float64)
            self.digest = str(stored["digest"])

    def probabilities(self, vector: Dense) -> dict[str, float]:
        """Return the probability of each label; they add up to 1."""
        scores = self._weights @ np.asarray(vector, dtype=np.float64) + self._biases
        odds = np.exp(scores - scores.max())
        return dict(zip(self.labels, (odds / odds.sum()).tolist(), strict=True))


def vector_of(text: str) -> Dense | None:
    """Return the vector of a message; None if the tenant's index has no vectors of the encoder of the training."""
    dense = settings_from(open_collection().encoder).dense
    if dense is None or not is_fitted(dense.space):
        return None
    try:
        return embed_question(text, dense)
    except EmbeddingFailed:
        return None
