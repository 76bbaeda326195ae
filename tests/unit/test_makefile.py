"""What each target installs."""

import subprocess

import pytest

from settings import ROOT


@pytest.mark.parametrize(
    ("target", "installs", "not_this"), [("demo", "run", "dev"), ("serve", "run", "dev"), ("check", "dev", "run")]
)
def test_a_target_installs_what_it_needs(target: str, installs: str, not_this: str) -> None:
    command = ["make", "--dry-run", "--always-make", target]
    printed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert f"requirements/{installs}" in printed
    assert f"requirements/{not_this}" not in printed
