from components.judge.verifier import FactVerifier
from evaluation.asking import verifier_of, verify_pairs
from evaluation.cases import Pair, PairSet
from pipelines.ask.engine import AskEngine

PAIRS = PairSet(
    "made-up",
    "ru",
    (
        Pair("1", "Слив засорён. Насос исправен.", "Слив засорён.", True),
        Pair("2", "Слив чист.", "Слив засорён на 40 процентов.", False),
        Pair("3", "Слив не засорён.", "Слив засорён.", False),
    ),
)


def test_claims_are_verified_by_the_pipeline() -> None:
    progress: list[tuple[int, int]] = []
    records = verify_pairs(PAIRS, FactVerifier(), lambda done, total: progress.append((done, total)))
    assert [record.let_through for record in records] == [True, False, False]
    assert records[0].score == 1.0
    assert progress == [(1, 3), (2, 3), (3, 3)]


def test_without_a_verifier_every_claim_passes() -> None:
    records = verify_pairs(PAIRS, None, lambda done, total: None)
    assert all(record.let_through for record in records)


def test_the_pipeline_has_one_verifier() -> None:
    assert verifier_of(AskEngine().pipeline) is not None
