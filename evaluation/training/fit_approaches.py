"""`python -m evaluation.training.fit_approaches`: measure what finds a rejected approach in other words.

Needs the encoder (`opora models add e5-small`). The threshold for questions is chosen on the even entries of
`evaluation/datasets/approaches.yaml` and checked on the odd ones. Sentences are measured by words and by cosine:
neither tells a paraphrase of an approach from another sentence of its topic, so a model decides that.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import typer
import yaml

from components.embed.protocol import Embedder
from components.judge.approaches import coverage, proposed
from components.language.words import stems
from components.nested import from_description
from components.retrieve.rejected import MIN_COSINE
from components.turn import RejectedApproach
from evaluation.metrics.calibration import Numbers
from settings import ROOT

FILE = ROOT / "evaluation" / "datasets" / "approaches.yaml"
_LIMIT = 3
_MIN_COVERAGE = 0.4


def main() -> None:
    """Measure and print."""
    ingest = yaml.safe_load((ROOT / "pipelines" / "ingest" / "ingest.yaml").read_text(encoding="utf-8"))
    embedder = from_description(ingest["components"]["writer"]["init_parameters"]["embedder"], "embedder")
    entries = yaml.safe_load(FILE.read_text(encoding="utf-8"))
    for threshold in (0.80, 0.81, MIN_COSINE, 0.83, 0.84):
        chosen, checked = (_chosen(entries, embedder, threshold, part) for part in (0, 1))
        typer.echo(f"questions, cosine from {threshold}: even {chosen}, odd {checked}")
    shares = [_coverage(entry["question"], entry["approach"]) for entry in entries]
    typer.echo(f"questions, by words alone: {sum(share >= _MIN_COVERAGE for share in shares)} of {len(shares)}")
    by_words = [_by_words(entry, kind) for kind in ("proposals", "others") for entry in entries]
    half = len(by_words) // 2
    typer.echo(f"sentences withheld by words: {sum(by_words[:half])} proposals, {sum(by_words[half:])} others")
    typer.echo(f"sentences by cosine: area under the curve {_area(entries, embedder):.2f} (0.5: chance)")


def _chosen(entries: Sequence[Mapping[str, Any]], embedder: Embedder, threshold: float, part: int) -> str:
    """Return how many questions bring their own approach along, and how many others each."""
    approaches = [_vector(entry["approach"], embedder) for entry in entries]
    own, others, count = 0, 0, 0
    for place, entry in enumerate(entries):
        if place % 2 == part:
            cosines = np.array(approaches) @ _vector(entry["question"], embedder)
            best = [near for near in np.argsort(-cosines)[:_LIMIT] if cosines[near] >= threshold]
            own += place in best
            others += len(best) - (place in best)
            count += 1
    return f"{own} of {count} with {others / count:.1f} others"


def _area(entries: Sequence[Mapping[str, Any]], embedder: Embedder) -> float:
    """Return the probability that a proposal has a higher cosine with its approach than another sentence has."""
    cosines: dict[str, list[float]] = {"proposals": [], "others": []}
    for entry in entries:
        approach = _vector(entry["approach"], embedder)
        for kind, found in cosines.items():
            found += [float(approach @ _vector(sentence, embedder)) for sentence in entry[kind]]
    above = [proposal > other for proposal in cosines["proposals"] for other in cosines["others"]]
    return sum(above) / len(above)


def _by_words(entry: Mapping[str, Any], kind: str) -> int:
    approach = RejectedApproach("", entry["approach"], "", "")
    return sum(proposed(sentence, approach) for sentence in entry[kind])


def _coverage(question: str, approach: str) -> float:
    return coverage(dict.fromkeys(stems(question), 1.0), approach)


def _vector(text: str, embedder: Embedder) -> Numbers:
    vector: Numbers = np.array(embedder.question(text))
    return vector / np.linalg.norm(vector)


if __name__ == "__main__":
    typer.run(main)
