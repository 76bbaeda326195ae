"""The claim check on its own, against what people say that a passage supports."""

from collections.abc import Callable
from time import perf_counter

from components.judge.protocol import ClaimVerdict
from components.language.normalise import clean
from components.language.sentences import sentence_spans
from components.turn import Passage
from evaluation.cases import Pair, PairSet
from evaluation.curve import area
from evaluation.intervals import Figure, exact, mean, percentile

Check = Callable[[str, Passage], ClaimVerdict]


def verify_pairs(pairs: PairSet, check: Check, progress: Callable[[int, int], None]) -> dict[str, Figure]:
    """How often the check agrees with people. A claim that is only partly supported is not supported.

    :param check: whether a passage supports a claim, as a judge answers it.
    """
    said: list[tuple[bool, ClaimVerdict]] = []
    times: list[float] = []
    for done, pair in enumerate(pairs.pairs, 1):
        passage = _passage(pair, pairs.locale)
        started = perf_counter()
        said.append((pair.supported, check(clean(pair.claim), passage)))
        times.append((perf_counter() - started) * 1_000)
        progress(done, len(pairs.pairs))
    caught = [float(verdict.status != "supported") for supported, verdict in said if not supported]
    let_through = [float(verdict.status == "supported") for supported, verdict in said if supported]
    passed = [float(supported) for supported, verdict in said if verdict.status == "supported"]
    figures = {
        "balanced_accuracy": exact((sum(caught) / len(caught) + sum(let_through) / len(let_through)) / 2, len(said)),
        "unsupported_caught": mean(caught),
        "supported_let_through": mean(let_through),
        "precision_of_supported": mean(passed),
        "auc": exact(
            area([v.score for supported, v in said if supported], [v.score for supported, v in said if not supported]),
            len(said),
        ),
        "latency_ms_p50": percentile(times, 50),
        "latency_ms_p99": percentile(times, 99),
    }
    return {name: figure for name, figure in figures.items() if figure is not None}


def _passage(pair: Pair, locale: str) -> Passage:
    text = clean(pair.passage)
    return Passage(pair.pair_id, pair.pair_id, "", "", text, sentence_spans(text), lang=locale)
