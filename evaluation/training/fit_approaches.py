"""`python -m evaluation.training.fit_approaches`: choose the cosine from which a question brings an approach along.

Needs the encoder (`opora models add e5-small`). The threshold is chosen on the even entries of
`evaluation/datasets/approaches.yaml` and checked on the odd ones.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import typer
import yaml

from components.embed.protocol import Embedder
from components.retrieve.rejected import MIN_COSINE
from evaluation.metrics.intervals import Numbers
from evaluation.training.fit_judge import shipped_encoder
from settings import ROOT

FILE = ROOT / "evaluation" / "datasets" / "approaches.yaml"
_LIMIT = 3


def main() -> None:
    """Measure and print."""
    embedder = shipped_encoder()
    entries = yaml.safe_load(FILE.read_text(encoding="utf-8"))
    for threshold in (0.80, 0.81, MIN_COSINE, 0.83, 0.84):
        chosen, checked = (_found(entries, embedder, threshold, part) for part in (0, 1))
        typer.echo(f"cosine from {threshold}: even {chosen}, odd {checked}")


def _found(entries: Sequence[Mapping[str, Any]], embedder: Embedder, threshold: float, part: int) -> str:
    """Return how many questions bring their own approach along, and how many others each."""
    approaches = np.array([_vector(entry["approach"], embedder) for entry in entries])
    own, others, questions = 0, 0, range(part, len(entries), 2)
    for place in questions:
        cosines = approaches @ _vector(entries[place]["question"], embedder)
        best = [near for near in np.argsort(-cosines)[:_LIMIT] if cosines[near] >= threshold]
        own += place in best
        others += len(best) - (place in best)
    return f"{own} of {len(questions)} with {others / len(questions):.1f} others"


def _vector(text: str, embedder: Embedder) -> Numbers:
    vector: Numbers = np.array(embedder.question(text))
    return vector / np.linalg.norm(vector)


if __name__ == "__main__":
    typer.run(main)
