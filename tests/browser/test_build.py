"""The committed assets match their sources, are small enough, and are in every wheel."""

import shutil
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest

from settings import ROOT
from tests import servers
from ui import build


@pytest.mark.browser
def test_the_committed_assets_are_what_the_sources_give() -> None:
    if (folder := build.packages()) is None:
        servers.absent("npm", "the npm packages of the widget cannot be installed")
    built = build.build(folder)
    for name in build.ASSETS:
        assert (built / name).read_bytes() == (build.STATIC / name).read_bytes(), f"{name}: run `make ui`"


def test_the_assets_are_small() -> None:
    sizes = build.sizes(build.STATIC)
    assert sizes["loader.js"] <= build.LOADER_LIMIT
    assert sum(sizes[name] for name in build.WIDGET) <= build.TOTAL_LIMIT


def test_no_asset_makes_html_of_a_string_or_asks_anybody_else() -> None:
    for name in build.ASSETS:
        script = (build.STATIC / name).read_text(encoding="utf-8")
        assert "eval(" not in script
        assert "insertAdjacentHTML" not in script
        assert "document.write" not in script
        # The template library uses it once, for templates in the source.
        assert script.count("innerHTML") <= 1
        addresses = {part.split('"')[0].split("`")[0] for part in script.split("https://")[1:]}
        # An error message for a case that the lexer never meets.
        assert addresses <= {"github.com/markedjs/marked."}


@pytest.mark.browser
def test_a_wheel_holds_every_asset(tmp_path: Path) -> None:
    source = tmp_path / "source"
    wanted = shutil.ignore_patterns(".*", "tests", "node_modules", "*.egg-info", "build", "dist", "__pycache__")
    shutil.copytree(ROOT, source, ignore=wanted)
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir"]
    subprocess.run([*command, tmp_path, source], check=True, capture_output=True)
    [wheel] = tmp_path.glob("*.whl")
    with ZipFile(wheel) as archive:
        names = set(archive.namelist())
    folders = (ROOT / "ui" / "static", ROOT / "ui" / "templates")
    kept = {str(path.relative_to(ROOT)) for folder in folders for path in folder.rglob("*") if path.is_file()}
    assert kept <= names
    assert {"ui/static/loader.js", "ui/static/chat.js", "ui/templates/demo.html"} <= names
    assert not {name for name in names if name.startswith("ui/src")}
