"""Small form of the benchmark: a backup under load, restored elsewhere: same answers, and no erased person."""

import os
from pathlib import Path

import pytest

from evaluation.benchmarks import restore
from evaluation.datasets.fixture import fixture
from settings import Settings


@pytest.mark.chaos
def test_a_backup_under_load_is_as_good_as_the_installation(
    installation: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("OPORA_BACKUP_KEY", "OPORA_DATA_DIR"):
        monkeypatch.setenv(name, os.environ.get(name, ""))
    shop = fixture()
    verdict = restore.restore(tmp_path, shop.corpus.documents(), [case.question for case in shop.cases])
    assert not any(getattr(verdict, name) for name in restore.FAULTS), verdict
    assert verdict.acknowledged
    assert verdict.links > verdict.acknowledged
