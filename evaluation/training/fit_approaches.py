"""`python -m evaluation.training.fit_approaches`: choose the cosines from which a question or a sentence
brings an approach along.

Needs the encoder (`opora models add e5-small`). The thresholds are chosen on the even entries of
`evaluation/datasets/approaches.yaml` and checked on the odd ones: one for questions, one for sentences that propose an
approach in other words.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import typer
import yaml

from components.embed.protocol import Embedder
from components.retrieve.rejected import MIN_COSINE, MIN_SENTENCE_COSINE
from evaluation.metrics.intervals import Numbers
from evaluation.training.fit_judge import shipped_encoder
from settings import ROOT

FILE = ROOT / "evaluation" / "datasets" / "approaches.yaml"
_LIMIT = 3


def main() -> None:
    """Measure and print."""
    embedder = shipped_encoder()
    entries = yaml.safe_load(FILE.read_text(encoding="utf-8"))
    questions = [[entry["question"]] for entry in entries]
    proposals = [entry["proposals"] for entry in entries]
    for name, texts, threshold in (("questions", questions, MIN_COSINE), ("sentences", proposals, MIN_SENTENCE_COSINE)):
        for step in range(-2, 3):
            cosine = round(threshold + step / 100, 2)
            chosen, checked = (_found(entries, texts, embedder, cosine, part) for part in (0, 1))
            typer.echo(f"{name}, cosine from {cosine}: even {chosen}, odd {checked}")


def _found(
    entries: Sequence[Mapping[str, Any]],
    texts: Sequence[Sequence[str]],
    embedder: Embedder,
    threshold: float,
    part: int,
) -> str:
    """Return how many texts, given for each entry, bring their own approach along, and how many others each."""
    approaches = np.array([_vector(entry["approach"], embedder) for entry in entries])
    own, others = 0, 0
    asked = [(place, text) for place in range(part, len(entries), 2) for text in texts[place]]
    for place, text in asked:
        cosines = approaches @ _vector(text, embedder)
        best = [near for near in np.argsort(-cosines)[:_LIMIT] if cosines[near] >= threshold]
        own += place in best
        others += len(best) - (place in best)
    return f"{own} of {len(asked)} with {others / len(asked):.1f} others"


def _vector(text: str, embedder: Embedder) -> Numbers:
    vector: Numbers = np.array(embedder.question(text))
    return vector / np.linalg.norm(vector)


if __name__ == "__main__":
    typer.run(main)
