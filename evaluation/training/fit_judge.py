"""`python -m evaluation.training.fit_judge`: fit the weights of the judge, and say what they are worth elsewhere.

Needs scikit-learn and the encoder (`opora models add e5-small`); the product needs neither to judge. It is fitted on
graded questions of two vendors, both Russian. The rarity of English function words is that in the articles of two
English help centres, whose questions are not used. Each vendor in turn is left out and measured with a fit on the
other; then VK Cloud's answer key, which nothing is fitted on, is put to the whole pipeline with the judge that is
stored. `--write` stores the new weights in `components/judge/relevance.json` before that.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from math import log
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
import yaml

from components.embed.dense import passage_text
from components.embed.protocol import Embedder
from components.judge.relevance import COSINE, FILE, SIGNALS, Kind, design, measure
from components.language.encoder import encode_passage, encode_query
from components.language.encoder_settings import STANDARD
from components.language.words import all_words, analyse
from components.serialisation import from_description
from components.turn import Passage
from evaluation import workspace
from evaluation.cases import Case, LabelledPassage
from evaluation.datasets.answer_keys import read_key, vkcloud_answers
from evaluation.datasets.rows import DATA, rows, string
from evaluation.measurement import Evaluation, Plan
from evaluation.metrics.accuracy_coverage import claim_curve
from evaluation.metrics.intervals import Booleans, Numbers
from settings import ROOT, get_settings
from tenants.index import SPARSE

VENDORS = ("yandexcloud", "microsoft")
ENGLISH = ("wixqa", "techqa")
"""Corpora with the English function words."""
KINDS: Mapping[Kind, Sequence[str]] = {
    "vectors": (COSINE, "cover", f"{COSINE} lead", "cover lead", f"{SPARSE} lead"),
    "words": ("cover", "about", "depth lead"),
}
THRESHOLDS = (0.35, 0.4, 0.45, 0.5, 0.55)
COLUMNS = (*SIGNALS, *(f"{name} lead" for name in SIGNALS))
_RIDGE = 0.3
"""Inverse strength, on standardised columns."""
_HITS = 40
"""Hits of the search by words, as many as `TenantRetriever` takes."""
_WORDS = 70
"""Words of a piece of an article: the mean length of the graded passages."""


@dataclass(frozen=True, slots=True)
class Vendor:
    """By question: the columns of its candidates, and which of them answer; the rarity of each function word."""

    columns: list[Numbers]
    answers: list[Booleans]
    function_words: Mapping[str, float]


def main(
    data: Annotated[Path, typer.Option(help="Folder of the public data sets.")] = DATA,
    write: Annotated[bool, typer.Option("--write", help="Store the weights.")] = False,
) -> None:
    """Fit, measure and print."""
    embedder = shipped_encoder()
    vendors = {name: read_vendor(read_key(data / name / "graded.jsonl"), embedder) for name in VENDORS}
    stored = json.loads(FILE.read_text(encoding="utf-8"))
    fitted: dict[str, Any] = {}
    for kind in KINDS:
        fitted[kind] = _weights(list(vendors.values()), kind, stored[kind]["elsewhere"])
        _print(kind, fitted[kind], stored)
        for name in VENDORS:
            _print_unseen(name, vendors, kind)
    if write:
        function_words = _function_words(data, list(vendors.values()))
        about = {"columns": COLUMNS, "encoder": stored["encoder"], "fitted_on": VENDORS}
        content = {**about, **fitted, "function_words": function_words}
        FILE.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    _print_vkcloud(data)


def shipped_encoder() -> Embedder:
    """Return the encoder of the ingest pipeline."""
    ingest = yaml.safe_load((ROOT / "pipelines" / "ingest" / "ingest.yaml").read_text(encoding="utf-8"))
    embedder: Embedder = from_description(ingest["components"]["writer"]["init_parameters"]["embedder"], "embedder")
    return embedder


def read_vendor(cases: Sequence[Case], embedder: Embedder) -> Vendor:
    """Return the signals of the graded candidates of a vendor's questions."""
    graded = [case.key.passages if case.key else () for case in cases]
    known = {_text(passage): passage for passages in graded for passage in passages}
    texts = list(known)
    embedded = embedder.passages(texts)
    vectors = {text: np.array(vector) for text, vector in zip(texts, embedded, strict=True)}
    words = _WordSearch(known)
    rarity = _rarity(texts)
    unseen = log(1 + (len(texts) + 0.5) / 0.5)
    columns = []
    for case, passages in zip(cases, graded, strict=True):
        asked = np.array(embedder.question(case.question))
        weights = {word[0]: rarity.get(word, unseen) for word in map(analyse, all_words(case.question))}
        found = words.scores(case.question)
        candidates = [
            _candidate(one, float(vectors[_text(one)] @ asked), found.get(_text(one), 0.0)) for one in passages
        ]
        columns.append(design(measure(weights, candidates)))
    answers = [np.array([passage.grade > 0 for passage in passages]) for passages in graded]
    return Vendor(columns, answers, _of_function_words(rarity))


def fit(vendors: Sequence[Vendor], kind: Kind) -> tuple[Numbers, float]:
    """Fit the weights of the columns and the bias. Each vendor counts the same."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    used = [COLUMNS.index(name) for name in KINDS[kind]]
    columns = np.concatenate([rows for one in vendors for rows in one.columns])[:, used]
    answers = np.concatenate([rows for one in vendors for rows in one.answers])
    sizes = [len(np.concatenate(one.answers)) for one in vendors]
    shares = np.concatenate([np.full(size, sum(sizes) / len(sizes) / size) for size in sizes])
    scaler, regression = StandardScaler(), LogisticRegression(C=_RIDGE, max_iter=3_000)
    make_pipeline(scaler, regression).fit(columns, answers, logisticregression__sample_weight=shares)
    weights = np.zeros(len(COLUMNS))
    weights[used] = regression.coef_[0] / scaler.scale_
    return weights, float(regression.intercept_[0] - weights[used] @ scaler.mean_)


def _text(passage: LabelledPassage) -> str:
    return passage_text(passage.title, passage.heading, passage.text)


def _candidate(passage: LabelledPassage, cosine: float, found: float) -> Passage:
    scores = {COSINE: cosine, SPARSE: found}
    return Passage("", passage.doc_id, passage.title, passage.heading, passage.text, sentences=(), scores=scores)


class _WordSearch:
    """The search by words over all passages of a vendor, as an index does it."""

    def __init__(self, passages: Mapping[str, LabelledPassage]) -> None:
        self._postings: defaultdict[int, list[tuple[str, float]]] = defaultdict(list)
        self._count = len(passages)
        for text, passage in passages.items():
            vector = encode_passage(passage.title, passage.heading, passage.text, STANDARD)
            for dimension, weight in vector.items():
                self._postings[dimension].append((text, weight))

    def scores(self, question: str) -> dict[str, float]:
        """Return the hits by their text, each with its score as a share of the best hit's."""
        scores: defaultdict[str, float] = defaultdict(float)
        for dimension, asked in encode_query(question, STANDARD).items():
            held = self._postings.get(dimension, [])
            rarity = log(1 + (self._count - len(held) + 0.5) / (len(held) + 0.5))
            for text, weight in held:
                scores[text] += asked * rarity * weight
        hits = sorted(scores.items(), key=lambda hit: -hit[1])[:_HITS]
        return {text: score / hits[0][1] for text, score in hits}


def _weights(vendors: Sequence[Vendor], kind: Kind, elsewhere: float) -> dict[str, Any]:
    weights, bias = fit(vendors, kind)
    return {"weights": weights.round(4).tolist(), "bias": round(bias, 4), "elsewhere": elsewhere}


def _print_unseen(name: str, vendors: Mapping[str, Vendor], kind: Kind) -> None:
    """Print the results on a vendor of a fit on the others: of questions with an answer whether the likeliest candidate
    is one, or one of three; by threshold the share claimed, and what of it is right or cannot be."""
    weights, bias = fit([one for other, one in vendors.items() if other != name], kind)
    likely = [1 / (1 + np.exp(-(columns @ weights + bias))) for columns in vendors[name].columns]
    best = np.array([one.max() for one in likely])
    ranked = [answers[np.argsort(-one)] for one, answers in zip(likely, vendors[name].answers, strict=True)]
    first, three, can = (np.array([answers[:most].any() for answers in ranked]) for most in (1, 3, None))
    typer.echo(f"  {name}, unseen: first {first[can].mean():.3f}, in three {three[can].mean():.3f}")
    for threshold in THRESHOLDS:
        claimed = best >= threshold
        typer.echo(
            f"    from {threshold:.2f}: claims {claimed.mean():.3f}, right {first[claimed].mean():.3f}, "
            f"of unanswerable {claimed[~can].mean():.3f}"
        )


def _rarity(texts: Sequence[str]) -> dict[tuple[str, bool], float]:
    """Return the inverse document frequency of each stem, which comes with whether it is a function word."""
    holding = Counter(stem for text in texts for stem in {analyse(word) for word in all_words(text)})
    return {stem: log(1 + (len(texts) - count + 0.5) / (count + 0.5)) for stem, count in holding.items()}


def _of_function_words(rarity: Mapping[tuple[str, bool], float]) -> dict[str, float]:
    return {stem: value for (stem, is_function_word), value in rarity.items() if is_function_word}


def _function_words(data: Path, vendors: Sequence[Vendor]) -> dict[str, float]:
    """Return the rarity of each function word, averaged over the corpora in its language that use it."""
    english = [_of_function_words(_rarity(list(_pieces(data / name / "corpus" / "corpus.jsonl")))) for name in ENGLISH]
    known: defaultdict[str, list[float]] = defaultdict(list)
    for in_english, corpora in ((False, [vendor.function_words for vendor in vendors]), (True, english)):
        for corpus in corpora:
            for word, rarity in corpus.items():
                if word.isascii() == in_english:
                    known[word].append(rarity)
    return {word: round(sum(values) / len(values), 2) for word, values in sorted(known.items())}


def _pieces(corpus: Path) -> Iterator[str]:
    for row in rows(corpus):
        words = f"{string(row, 'title') if 'title' in row else ''} {string(row, 'text')}".split()
        for start in range(0, len(words), _WORDS):
            yield " ".join(words[start : start + _WORDS])


def _print(kind: Kind, model: Mapping[str, Any], stored: Mapping[str, Any]) -> None:
    earlier = dict(zip((*stored["columns"], "bias"), (*stored[kind]["weights"], stored[kind]["bias"]), strict=True))
    fitted = zip((*COLUMNS, "bias"), (*model["weights"], model["bias"]), strict=True)
    weights = (
        f"{name} {new:.4g} (stored {earlier.get(name, 0):.4g})" for name, new in fitted if new or earlier.get(name)
    )
    typer.echo(f"{kind}: {', '.join(weights)}")


def _print_vkcloud(data: Path) -> None:
    workspace.enter(get_settings().data_dir.resolve() / "evaluation")
    (key,) = vkcloud_answers(data)
    with closing(Evaluation(Plan(data=data), lambda *_: None)) as evaluation:
        curve = claim_curve(evaluation.run(key).records)
    typer.echo(f"{key.name}, {len(key.cases)} questions, by the judge that is stored")
    for threshold in THRESHOLDS:
        for one in [point for point in curve if point.certainty >= threshold][-1:]:
            typer.echo(
                f"    from {threshold:.2f}: claims {one.claimed:.3f}, right {one.answer_precision:.3f}, "
                f"of answerable {one.answer_recall:.3f}, of unanswerable {one.false_answer_rate:.3f}"
            )


if __name__ == "__main__":
    typer.run(main)
