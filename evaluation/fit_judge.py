"""Fits the model of relevance: `python -m evaluation.fit_judge [--data FOLDER] [--cache FILE.npz] [--write]`.

Prints what the judge is worth on a vendor that it never saw, the others being fitted on; the answer key of VK Cloud is
only ever a test. The encoder must be installed: `opora models add e5-small`.
"""

import json
from argparse import ArgumentParser
from pathlib import Path

from components.embed.fast import FastEmbedder
from components.judge.calibration import Line
from components.judge.evidence import EVIDENCE
from components.judge.relevance import FILE, Weights
from components.language.yaml_files import read_yaml
from evaluation.datasets.rows import DATA
from evaluation.fit.fitting import VendorEvidence, fit_weights, probabilities, similarities, vendor_evidence
from evaluation.fit.questions import (
    LANGUAGES,
    UNSEEN,
    VENDORS,
    Encoder,
    encyclopaedia,
    function_words,
    graded,
    paragraphs,
)
from evaluation.metrics.unseen import UnseenVendor, save, unseen_vendor
from settings import ROOT

_MARGIN = 0.03
"""Of cosines, for questions further off than any of these."""
_INGEST = ROOT / "pipelines" / "ingest" / "ingest.yaml"


def main() -> int:
    """Fit, print, and write the files."""
    parser = ArgumentParser(prog="python -m evaluation.fit_judge")
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--cache", type=Path, help="file of vectors, for another run")
    parser.add_argument("--write", action="store_true", help=f"write {FILE.name} and the table of the report")
    given = parser.parse_args()
    encoder = Encoder(_embedder(), given.cache)
    asked = {name: graded(given.data / path, encoder) for name, path in {**VENDORS, **UNSEEN}.items()}
    pools = (one for name in VENDORS for question in asked[name] for one in question.passages)
    weights = function_words(pools, paragraphs(given.data, "en"))
    bare = {one: vendor_evidence(encyclopaedia(given.data, one, encoder, weights), weights) for one in LANGUAGES}
    encoder.save()
    known = {name: vendor_evidence(questions, weights) for name, questions in asked.items()}
    for cosine in (True, False):
        print("with the encoder" if cosine else "by words alone")
        table = _unseen(known, bare, cosine=cosine)
        for row in table:
            _print(row)
        if given.write and cosine:
            save(table)
    if given.write:
        sets = {
            name: _stored(fit_weights([known[one] for one in VENDORS], list(bare.values()), cosine=name == "meaning"))
            for name in ("meaning", "words")
        }
        cosines = [
            float(values[:, 0].mean())
            for one in (*(known[name] for name in VENDORS), *bare.values())
            for values in one.values
        ]
        content = {
            "fitted_on": [*VENDORS, *(f"xquad-{one}" for one in LANGUAGES)],
            **sets,
            "cosines": [round(min(cosines) - _MARGIN, 3), round(max(cosines) + _MARGIN, 3)],
            "function_words": weights,
        }
        FILE.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return 0


def _unseen(known: dict[str, VendorEvidence], bare: dict[str, VendorEvidence], *, cosine: bool) -> list[UnseenVendor]:
    """Each vendor judged by a fit on the others, each language of XQuAD by the line of the other."""
    table = []

    def measured(name: str, line: Line, weights: Weights, one: VendorEvidence) -> None:
        likely, similar = probabilities(line, weights, one), similarities(one, cosine=cosine)
        table.append(unseen_vendor(name, likely, one.answers, similar))

    for name, one in known.items():
        found = fit_weights([known[other] for other in VENDORS if other != name], list(bare.values()), cosine=cosine)
        measured(name, found.titled, found, one)
    vendors = [known[name] for name in VENDORS]
    for language, one in bare.items():
        found = fit_weights(vendors, [bare[other] for other in LANGUAGES if other != language], cosine=cosine)
        measured(f"xquad-{language}", found.bare, found, one)
    return table


def _print(row: UnseenVendor) -> None:
    print(f"  {row.vendor}: first {row.first:.2f}, in three {row.in_three:.2f}, ", end="")
    print(f"calibration error {row.calibration_error:.3f}")
    for stop in row.claims:
        print(
            f"    p >= {stop.threshold}: claims {stop.claimed:.2f}, right of claimed {stop.right:.2f}, "
            f"of unanswerable {stop.of_unanswerable:.2f}"
        )


def _stored(weights: Weights) -> dict[str, object]:
    """As `components.judge.relevance` reads it."""
    rows = weights.evidence.tolist()
    evidence = {name: [round(one, 5) for one in row] for name, row in zip(EVIDENCE, rows, strict=True)}
    lines = {
        name: {"slope": round(line.slope, 5), "intercept": round(line.intercept, 5)}
        for name, line in (("titled", weights.titled), ("bare", weights.bare))
    }
    return {"evidence": evidence, "bias": round(weights.bias, 5), "alone": weights.alone.round(5).tolist(), **lines}


def _embedder() -> FastEmbedder:
    """The encoder that knowledge bases are embedded with by default."""
    described = read_yaml(_INGEST)["components"]["writer"]["init_parameters"]["embedder"]
    return FastEmbedder(**described["init_parameters"])


if __name__ == "__main__":
    raise SystemExit(main())
