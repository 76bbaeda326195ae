"""Targets of the Makefile, and tests whose backend is missing."""

import re
import shlex
import subprocess

import pytest

from settings import ROOT
from tests import servers


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


@pytest.mark.parametrize("packages", ["run", "dev"])
def test_an_installation_into_an_older_environment_is_announced(packages: str) -> None:
    command = ["make", "--dry-run", "--no-print-directory", f".venv/.ready-{packages}"]
    command += [f"--assume-new=requirements/{packages}.txt", "--assume-old=.venv/bin/uv"]
    printed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert printed.splitlines()[0] == f'echo "Installing requirements/{packages}.txt into .venv: up to two minutes…"'


def test_uv_trusts_the_certificates_of_the_system() -> None:
    rule = "shown:\n\t@echo $$UV_SYSTEM_CERTS\n"
    command = ["env", "-i", "make", "--silent", "-f", "Makefile", "-f", "-", "shown"]
    shown = subprocess.run(command, cwd=ROOT, input=rule, capture_output=True, text=True, check=True)
    assert shown.stdout == "true\n"


def test_ci_runs_every_test() -> None:
    ran = re.findall(r"^make (test\S*)$", (ROOT / ".ci" / "run").read_text(encoding="utf-8"), re.MULTILINE)
    runs = [shlex.split(next(line for line in commands(target).splitlines() if "pytest" in line)) for target in ran]
    selected = [run[len(run) - run[::-1].index("-m")] for run in runs]
    assert selected == ["not chaos and not browser", "chaos", "browser"]
    folders = {f"tests/{path.name}" for path in (ROOT / "tests").iterdir() if any(path.glob("**/test_*.py"))}
    *others, browser = (folders & set(run) for run in runs)
    assert all(other == folders for other in others)
    # A test gets a browser from a fixture of its folder, or is marked.
    uses_browser = re.compile(r"^(def browser\(|@pytest\.mark\.browser)", re.MULTILINE)
    assert browser == {
        folder
        for folder in folders
        if any(uses_browser.search(path.read_text(encoding="utf-8")) for path in (ROOT / folder).rglob("*.py"))
    }


@pytest.mark.parametrize(
    ("environment", "outcome"),
    [
        ({"CI": ""}, pytest.skip.Exception),
        ({"CI": "true"}, pytest.fail.Exception),
        ({"CI": "true", "OPORA_TEST_WITHOUT": "qdrant"}, pytest.fail.Exception),
        ({"CI": "true", "OPORA_TEST_WITHOUT": "qdrant redis"}, pytest.skip.Exception),
    ],
)
def test_missing_backend_fails_in_ci(
    monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], outcome: type[BaseException]
) -> None:
    monkeypatch.delenv("OPORA_TEST_WITHOUT", raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(outcome, match="no server: Redis"):
        servers.absent("redis", "Redis")
