"""Cross-validation of a judge over vendors, computed by hand."""

from pathlib import Path

import numpy as np
import pytest

from evaluation.metrics.unseen import UnseenClaims, load, save, unseen_vendor


def test_the_figures_by_hand_and_read_back(tmp_path: Path) -> None:
    probabilities = [np.array(one) for one in ([0.9, 0.2], [0.6, 0.1, 0.5, 0.3], [0.7, 0.4], [0.2, 0.1])]
    answers = [np.array(one) for one in ([True, False], [False, False, True, False], [False, False], [True, False])]
    vendor = unseen_vendor("shop", probabilities, answers, (0.5, 0.95))
    assert vendor.questions == 4
    assert (vendor.first, vendor.in_three) == pytest.approx((2 / 3, 1.0))
    # Probabilities 0.9, 0.6, 0.7, 0.2; right, wrong, wrong, right: each in a separate tenth.
    assert vendor.calibration_error == pytest.approx((0.1 + 0.6 + 0.7 + 0.8) / 4)
    assert vendor.claims == (UnseenClaims(0.5, 0.75, 1 / 3, 1.0), UnseenClaims(0.95, 0.0, 0.0, 0.0))
    save([vendor], tmp_path / "unseen.json")
    (again,) = load(tmp_path / "unseen.json")
    assert again == vendor
    assert load(tmp_path / "absent.json") == ()
