"""`kill -9` in the middle of a run, a rebuild or a change: no acknowledged write is lost, and the next run repairs.

A few kills here; the same program takes any number: `python -m tests.unit.pipelines.ingest.crash`.
"""

import subprocess
import sys
from pathlib import Path

import pytest

from settings import ROOT

_INGESTS = 3
_REBUILDS = 1
_CHANGES = 1
_SEED = 20


@pytest.mark.chaos
def test_kills_at_random_moments(tmp_path: Path) -> None:
    program = [
        sys.executable,
        "-W",
        "error",
        "-m",
        "tests.unit.pipelines.ingest.crash",
        str(tmp_path),
        str(_SEED),
        str(_INGESTS),
        str(_REBUILDS),
        str(_CHANGES),
    ]
    done = subprocess.run(program, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("killed after step") == _INGESTS + _REBUILDS + _CHANGES
