"""Trains the intent classifiers: `python -m evaluation.training.intent`. Needs scikit-learn; running does not.

Multinomial logistic regression on hashed features, and on the vectors of the default encoder, which has to be in the
folder of models. The weights on features are kept as one signed byte each, scaled by class.

They learn from the utterances in `intent_utterances/<language>.yaml`.
"""

import hashlib
import itertools
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix
from sklearn.linear_model import LogisticRegression

from components.language.words import words
from components.language.yaml_files import read_yaml
from components.understand.features import DIMENSIONS, indices
from components.understand.meaning import MEANING_MODEL, WORDS_MODEL
from evaluation.training.fit_judge import shipped_encoder
from tenants.core.points import Dense

Embed: TypeAlias = Callable[[Sequence[str]], Sequence[Dense]]

FOLDER = Path(__file__).parent / "intent_utterances"
_CHOICE = re.compile(r"\{([^{}]*)\}")
_MAX_VARIANTS = 16

_STRENGTH = 100.0
"""Inverse regularisation, chosen by cross-validation over whole templates."""
_TOPIC = 0.1
"""Weight of a single word as a message against a template."""
_STRENGTH_BY_MEANING = 50.0
"""The same for vectors. On templates left out of the training, the mean accuracy over labels is 0.75, and 0.53 by
words."""
_VARIANTS = 8
"""Number of variants of a template whose vectors are learnt: they differ less than its features."""
_ANSWERABLE = 3.0
"""Weight of `answerable` against other labels: a wrong refusal costs more than a wrong search."""


@dataclass(frozen=True, slots=True)
class Utterance:
    """A labelled message for training. Messages of one `template` are variants and weigh 1 together."""

    text: str
    label: str
    template: str
    weight: float


def expand(template: str) -> list[str]:
    """Expand a template with `{a|b|c}` choices: all sentences, or `_MAX_VARIANTS` of them spread evenly."""
    pieces = _CHOICE.split(template)
    choices = [piece.split("|") if i % 2 else [piece] for i, piece in enumerate(pieces)]
    combined = ["".join(parts) for parts in itertools.product(*choices)]
    if len(combined) <= _MAX_VARIANTS:
        return combined
    # A step prime to the choices' sizes visits every part of every choice.
    return [
        combined[(i * len(combined)) // _MAX_VARIANTS + i % (len(combined) // _MAX_VARIANTS)]
        for i in range(_MAX_VARIANTS)
    ]


def utterances(folder: Path = FOLDER) -> Iterator[Utterance]:
    """Yield every utterance of every language, in file order."""
    for path in sorted(folder.glob("*.yaml")):
        for label, templates in read_yaml(path).items():
            for template in templates:
                variants = expand(str(template))
                for text in variants:
                    yield Utterance(text, str(label), str(template), 1 / len(variants))


def digest(folder: Path = FOLDER) -> str:
    """Return a fingerprint of the utterance files, kept in the model so that a stale one is noticed."""
    fingerprint = hashlib.sha256()
    for path in sorted(folder.glob("*.yaml")):
        fingerprint.update(path.read_bytes())
    return fingerprint.hexdigest()


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


def train_by_meaning(learned: list[Utterance], embed: Embed) -> dict[str, npt.NDArray[np.generic]]:
    """Return the model file: `labels`, `weights` (labels x dimensions), `biases`, `digest`.

    :param embed: returns the vectors of questions.
    """
    templates: dict[tuple[str, str], list[Utterance]] = {}
    for utterance in learned:
        templates.setdefault((utterance.label, utterance.template), []).append(utterance)
    few = [[one[i * len(one) // _VARIANTS] for i in range(_VARIANTS)] for one in templates.values()]
    chosen = [replace(one, weight=1 / len(variants)) for variants in map(_distinct, few) for one in variants]
    vectors = np.array(embed([one.text for one in chosen]), dtype=np.float64)
    centre = vectors.mean(axis=0)
    labels = [one.label for one in chosen]
    model = LogisticRegression(C=_STRENGTH_BY_MEANING, max_iter=500)
    model.fit(vectors - centre, labels, sample_weight=_balanced(labels, np.array([one.weight for one in chosen])))
    return {
        "labels": np.array(model.classes_, dtype=np.str_),
        "weights": model.coef_.astype(np.float16),
        "biases": (model.intercept_ - model.coef_ @ centre).astype(np.float32),
        "digest": np.array(digest()),
    }


def _distinct(variants: list[Utterance]) -> list[Utterance]:
    return list({one.text: one for one in variants}.values())


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


def _embed(texts: Sequence[str]) -> Sequence[Dense]:
    embedder = shipped_encoder()
    return [embedder.question(one) for one in texts]


if __name__ == "__main__":
    learnt = list(utterances())
    for path, trained in ((WORDS_MODEL, train(learnt)), (MEANING_MODEL, train_by_meaning(learnt, _embed))):
        with path.open("wb") as file:
            np.savez_compressed(file, allow_pickle=False, **trained)
        print(f"{path.name}: {path.stat().st_size} bytes")
