"""The encoder on the command line: fetched once, on first start, with a one-line error if it is unavailable."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cli import app
from components.embed import install
from components.embed.install import Installed, ModelUnavailable
from components.language.texts import text
from settings import Settings, get_settings
from ui.cli.model import fetch_encoder

pytestmark = pytest.mark.usefixtures("installation")


@pytest.fixture
def fetching(monkeypatch: pytest.MonkeyPatch, installation: Settings) -> Iterator[list[Path]]:
    """The first start may fetch models; no source is available."""
    requests: list[Path] = []

    def nothing(models: Path, source: str = "") -> Installed:
        requests.append(models)
        raise ModelUnavailable

    monkeypatch.setattr(install, "install", nothing)
    monkeypatch.setenv("OPORA_FETCH_MODELS", "true")
    monkeypatch.delenv("OPORA_MODELS_DIR")
    monkeypatch.setenv("LC_ALL", "en_US.UTF-8")
    get_settings.cache_clear()
    yield requests
    get_settings.cache_clear()


def test_one_line_says_that_search_goes_by_words(
    fetching: list[Path], capsys: pytest.CaptureFixture[str], installation: Settings
) -> None:
    fetch_encoder()
    assert capsys.readouterr().err.splitlines()[-1] == text("models.words_alone", "en")
    assert fetching == [installation.data_dir.resolve() / "models"]


def test_no_download_if_indexes_have_another_embedder(fetching: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPORA_PROFILE", "ollama")
    get_settings.cache_clear()
    fetch_encoder()
    assert fetching == []


def test_no_download_if_the_model_is_installed_or_fetching_is_off(
    fetching: list[Path], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(install, "installed", lambda models: Installed("package", models, 1))
        fetch_encoder()
    monkeypatch.setenv("OPORA_FETCH_MODELS", "false")
    get_settings.cache_clear()
    fetch_encoder()
    assert capsys.readouterr().err == ""
    assert fetching == []


def test_adding_says_what_became_of_it(monkeypatch: pytest.MonkeyPatch, fetching: list[Path]) -> None:
    failed = CliRunner().invoke(app, ["models", "add", "e5-small"])
    assert failed.exit_code == 2
    assert text("cli.error.model_unavailable", "en") in failed.stderr
    assert text("cli.error.model_unknown", "en", name="e6", known="e5-small") in (
        CliRunner().invoke(app, ["models", "add", "e6"]).stderr
    )
    monkeypatch.setattr(install, "install", lambda models, source: Installed("package", models, 71_000_000, new=True))
    added = CliRunner().invoke(app, ["models", "add"])
    assert added.exit_code == 0
    assert "71 MB" in added.stdout
