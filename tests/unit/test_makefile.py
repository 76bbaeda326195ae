"""The targets of the Makefile: the requirements that they install and the tests that they run."""

import re
import shlex
import subprocess

import pytest

from settings import ROOT


def commands(target: str) -> str:
    """Return the commands that a target would run."""
    command = ["make", "--dry-run", "--always-make", target]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize(
    ("target", "installs", "not_this"), [("demo", "run", "dev"), ("serve", "run", "dev"), ("check", "dev", "run")]
)
def test_a_target_installs_what_it_needs(target: str, installs: str, not_this: str) -> None:
    printed = commands(target)
    assert f"requirements/{installs}" in printed
    assert f"requirements/{not_this}" not in printed


def test_ci_runs_every_test() -> None:
    ran = re.findall(r"^make (test\S*)$", (ROOT / ".ci" / "run").read_text(encoding="utf-8"), re.MULTILINE)
    runs = [shlex.split(next(line for line in commands(target).splitlines() if "pytest" in line)) for target in ran]
    selected = [run[len(run) - run[::-1].index("-m")] for run in runs]
    assert selected == ["not chaos and not browser", "chaos", "browser"]
    folders = {f"tests/{path.name}" for path in (ROOT / "tests").iterdir() if any(path.glob("**/test_*.py"))}
    assert all(folders <= set(run) for run in runs)
