"""The pipeline's own claim check, held against what people say that a passage supports."""

from collections.abc import Callable
from time import perf_counter

from haystack import Pipeline

from components.judge.protocol import Cited
from components.judge.verifier import FactVerifier
from components.language.normalise import clean
from components.language.sentences import sentence_spans
from components.turn import Citation, Claim, Draft, Passage, Turn
from evaluation.cases import Pair, PairRecord, PairSet


def verifier_of(pipeline: Pipeline) -> FactVerifier | None:
    """The step that checks claims; None where the pipeline shows answers unchecked."""
    return next((found for _, found in pipeline.walk() if isinstance(found, FactVerifier)), None)


def verify_pairs(
    pairs: PairSet, verifier: FactVerifier | None, progress: Callable[[int, int], None]
) -> list[PairRecord]:
    """Every claim as the only sentence of an answer that cites its passage: is it let through?

    :param verifier: None lets everything through, as a pipeline without that step does.
    """
    records = []
    for done, pair in enumerate(pairs.pairs, 1):
        records.append(_verified(pair, pairs.locale, verifier))
        progress(done, len(pairs.pairs))
    return records


def _verified(pair: Pair, locale: str, verifier: FactVerifier | None) -> PairRecord:
    if verifier is None:
        return PairRecord(pair, True, 1.0)
    passage, claim = _passage(pair, locale), clean(pair.claim)
    citation = Citation(1, passage, passage.text, (0, len(passage.text)))
    draft = Draft(f"{claim} [1]", (Claim(claim, (1,)),), (citation,))
    started = perf_counter()
    checked: Turn = verifier.run(turn=Turn(pair.pair_id, "", locale, draft=draft))["turn"]
    spent = (perf_counter() - started) * 1_000
    let_through = checked.draft is not None and bool(checked.draft.claims)
    (verdict,) = verifier.judge.check_all(checked, [Cited(claim, {1: passage})])
    return PairRecord(pair, let_through, verdict.score, spent)


def _passage(pair: Pair, locale: str) -> Passage:
    text = clean(pair.passage)
    return Passage(pair.pair_id, pair.pair_id, "", "", text, sentence_spans(text), lang=locale)
