"""Trains the intent classifier: `python -m components.understand.train_intent`. Needs scikit-learn; running does not.

Multinomial logistic regression on hashed features. The weights are kept as one signed byte each, scaled by class.
"""

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix
from sklearn.linear_model import LogisticRegression

from components.language.words import words
from components.understand.features import DIMENSIONS, indices
from components.understand.intent import MODEL
from components.understand.utterances import Utterance, digest, utterances

_STRENGTH = 100.0
"""Inverse regularisation, chosen by cross-validation over whole templates."""
_TOPIC = 0.1
"""Weight of a single word as a message against a template."""
_ANSWERABLE = 3.0
"""Weight of `answerable` against other labels: a wrong refusal costs more than a wrong search."""


def train(learned: list[Utterance]) -> dict[str, npt.NDArray[np.generic]]:
    """Return the model file: `labels`, `weights` (labels x dimensions, int8), `scales`, `biases`, `digest`."""
    texts, labels, weights = [], [], []
    for utterance in [*learned, *topics(learned)]:
        # People leave the question mark out, so both ways are learnt.
        for text in dict.fromkeys((utterance.text, utterance.text.rstrip("?!."))):
            texts.append(text)
            labels.append(utterance.label)
            weights.append(utterance.weight)
    model = LogisticRegression(C=_STRENGTH, max_iter=500)
    model.fit(_matrix(texts), labels, sample_weight=_balanced(labels, np.array(weights)))
    scales = np.abs(model.coef_).max(axis=1) / 127
    return {
        "labels": np.array(model.classes_, dtype=np.str_),
        "weights": np.round(model.coef_ / scales[:, None]).astype(np.int8),
        "scales": scales.astype(np.float32),
        "biases": model.intercept_.astype(np.float32),
        "digest": np.array(digest()),
    }


def topics(learned: list[Utterance]) -> list[Utterance]:
    """Return each content word of several labels as a separate message: "card" alone is a topic, not an alarm.

    Words that are a whole message of some other label ("operator") keep their label.
    """
    labels: dict[str, set[str]] = {}
    spellings: dict[str, str] = {}
    for utterance in learned:
        for word in words(utterance.text):
            if not word.stop:
                labels.setdefault(word.stem, set()).add(utterance.label)
                spellings.setdefault(word.stem, word.text)
    single_words = {
        word.stem for u in learned if u.label != "answerable" and len(words(u.text)) == 1 for word in words(u.text)
    }
    shared = [
        stem
        for stem, topic_labels in labels.items()
        if "answerable" in topic_labels and len(topic_labels) > 1 and stem not in single_words
    ]
    return [Utterance(spellings[stem], "answerable", f"topic {stem}", _TOPIC) for stem in shared]


def _balanced(labels: list[str], weights: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Weights that give every label the same total, `answerable` more."""
    names = np.array(labels)
    balanced = weights.copy()
    for label in dict.fromkeys(labels):
        members = names == label
        total = 100 * (_ANSWERABLE if label == "answerable" else 1.0)
        balanced[members] *= total / weights[members].sum()
    return balanced


def _matrix(texts: list[str]) -> csr_matrix:
    rows = [indices(text) for text in texts]
    values = np.concatenate([np.full(len(row), len(row) ** -0.5) for row in rows])
    starts = np.cumsum([0, *(len(row) for row in rows)])
    return csr_matrix((values, np.concatenate(rows), starts), shape=(len(rows), DIMENSIONS))


if __name__ == "__main__":
    with MODEL.open("wb") as file:
        np.savez_compressed(file, allow_pickle=False, **train(list(utterances())))
    print(f"{MODEL.name}: {MODEL.stat().st_size} bytes")
