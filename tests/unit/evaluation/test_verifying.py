from components.judge.protocol import ClaimVerdict
from components.turn import Passage
from evaluation.cases import Pair, PairSet
from evaluation.verifying import verify_pairs

PAIRS = PairSet(
    "made-up",
    "ru",
    (
        Pair("1", "Слив засорён.", "Слив засорён.", True),
        Pair("2", "Слив чист.", "Слив не засорён.", True),
        Pair("3", "Слив чист.", "Слив засорён.", False),
        Pair("4", "Слив чист.", "Насос исправен.", False),
    ),
)
SAID = {
    "Слив засорён.": ClaimVerdict("supported", 0.9, ""),
    "Слив не засорён.": ClaimVerdict("partially_supported", 0.5, ""),
    "Насос исправен.": ClaimVerdict("unsupported", 0.1, ""),
}


def test_partial_support_counts_as_none() -> None:
    seen: list[Passage] = []

    def check(claim: str, passage: Passage) -> ClaimVerdict:
        seen.append(passage)
        return SAID[claim]

    told: list[tuple[int, int]] = []
    figures = verify_pairs(PAIRS, check, lambda done, total: told.append((done, total)))
    assert figures["supported_let_through"].value == 0.5
    assert figures["unsupported_caught"].value == 0.5
    assert figures["balanced_accuracy"].value == 0.5
    assert figures["precision_of_supported"].value == 0.5
    # 0.9 and 0.5 against 0.9 and 0.1: one tie, two above, one below.
    assert figures["auc"].value == 2.5 / 4
    assert told[-1] == (4, 4)
    assert seen[0].sentences == ((0, len("Слив засорён.")),)
