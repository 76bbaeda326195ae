"""`kill -9` in the middle of a run, a rebuild or a change: nothing acknowledged is lost, and whatever is next heals."""

import subprocess
import sys
from pathlib import Path

from settings import ROOT

_INGESTS = 10
_REBUILDS = 4
_CHANGES = 2
_SEED = 14
"""Its moments fall into every step of a run, between two steps, and into pruning."""


def test_twenty_kills(tmp_path: Path) -> None:
    program = [
        sys.executable,
        "-W",
        "error",
        "-m",
        "tests.unit.pipelines.ingest.crash",
        str(tmp_path),
        "20",
        str(_INGESTS),
        str(_REBUILDS),
        str(_CHANGES),
    ]
    done = subprocess.run(program, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("killed after step") == _INGESTS + _REBUILDS + _CHANGES
