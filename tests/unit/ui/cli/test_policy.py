"""A tenant's policy from the command line: shown, changed, put back, and never half changed."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

import cli
from settings import get_settings
from tenants.accounts.policy import Policy
from tenants.accounts.registry import Registry
from tenants.storage import database


@pytest.fixture(autouse=True)
def _shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("OPORA_DATA_DIR", str(tmp_path))
    get_settings.cache_clear()
    Registry().add("shop", name="Shop", locale="en")
    yield
    database.close_all()
    get_settings.cache_clear()


def policy(*arguments: str) -> Result:
    return CliRunner().invoke(cli.app, ["tenant", "policy", "shop", *arguments])


def shown(*arguments: str) -> dict[str, object]:
    result = policy("--json", *arguments)
    assert result.exit_code == 0, result.output
    read: dict[str, object] = json.loads(result.stdout)
    return read


def test_what_is_set_is_in_force_and_can_be_put_back() -> None:
    now = shown("--set", "profile=ollama", "--set", "top_k=3", "--set", 'approved_offers={"complaint": "A coupon"}')
    assert (now["profile"], now["top_k"], now["approved_offers"]) == ("ollama", 3, {"complaint": "A coupon"})
    assert shown() == now
    assert shown("--unset", "top_k")["top_k"] == Policy().top_k
    assert shown()["profile"] == "ollama"


def test_null_restores_a_default_unless_it_is_a_value() -> None:
    assert shown("--set", "profile=ollama", "--set", "top_k=3")["top_k"] == 3
    now = shown("--set", "profile=null", "--set", "top_k=null", "--set", "evaluation_hour=null")
    assert (now["profile"], now["top_k"], now["evaluation_hour"]) == (Policy().profile, Policy().top_k, None)


def test_only_changed_rules_are_shown() -> None:
    output = policy("--set", "top_k=3", "--unset", "profile").stdout
    assert "top_k" in output
    assert "profile" in output
    assert "evaluation_hour" not in output


def test_every_rule_is_explained() -> None:
    output = policy().stdout
    assert all(name in output for name in Policy.model_fields)


@pytest.mark.parametrize(
    "arguments",
    [("--set", "top_k=99"), ("--set", "no_such=1"), ("--set", "profile"), ("--unset", "no_such")],
)
def test_what_does_not_fit_changes_nothing(arguments: tuple[str, str]) -> None:
    before = shown()
    result = policy("--set", "spend_cap_usd_per_day=5", *arguments)
    assert result.exit_code == 2
    assert arguments[1].partition("=")[0] in result.output
    assert shown() == before


def test_a_profile_that_cannot_be_loaded_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = tmp_path / "graph"
    shutil.copytree(get_settings().pipelines_dir / "ask", own / "ask", ignore=shutil.ignore_patterns("*.py"))
    profile = own / "ask" / "profiles" / "misspelt.yaml"
    profile.write_text("conections: []", encoding="utf-8")
    monkeypatch.setenv("OPORA_PIPELINES_DIR", str(own))
    get_settings.cache_clear()
    refused = policy("--set", "profile=misspelt")
    assert refused.exit_code == 2
    assert f"python -m pipelines.lint {profile}" in " ".join(refused.stderr.split())
    assert shown()["profile"] == Policy().profile
