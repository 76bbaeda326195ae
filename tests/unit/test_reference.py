"""Reference pages cover the whole interface: routes, settings, rules, commands, components."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from typing import TypeAlias

import pytest
import yaml
from typer.main import get_command

import cli
from app import create_app
from pipelines.draw import mermaid, names, path_of
from settings import ROOT, Settings
from tenants.accounts.policy import Policy
from ui.api.api_docs import is_desk
from ui.cli.terminal import LazyCommand

Pages: TypeAlias = Mapping[str, str]


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Pages:
    """Return the generated pages by name."""
    folder = tmp_path_factory.mktemp("reference")
    command = [sys.executable, "-m", "docs.generate", str(folder)]
    subprocess.run(command, cwd=ROOT, env={**os.environ, "LANG": "ru_RU.UTF-8"}, check=True)
    return {path.stem: path.read_text(encoding="utf-8") for path in folder.glob("*.md")}


def test_every_open_route_has_an_entry(pages: Pages, installation: Settings) -> None:
    routes = create_app(installation).state.open_routes
    interface = {(route.method, route.path) for route in routes if not is_desk(route)}
    expected = {(method, re.sub(r":\w+}", "}", path)) for method, path in interface}
    assert set(re.findall(r"^### ([A-Z]+) (/.*)$", pages["http"], re.MULTILINE)) == expected


def test_every_setting_and_rule_has_a_row(pages: Pages) -> None:
    expected = {*(f"OPORA_{name.upper()}" for name in Settings.model_fields), *Policy.model_fields}
    assert set(re.findall(r"^\| `(\w+)` \| .* \| \S.* \|$", pages["settings"], re.MULTILINE)) == expected


def test_every_command_has_an_english_entry(pages: Pages) -> None:
    assert set(re.findall(r"^#+ (opora .*)$", pages["commands"], re.MULTILINE)) == set(_commands())
    assert re.findall("[а-я]{4,}", re.sub(r"`[^`]*`", "", pages["commands"])) == []


def _commands() -> Iterator[str]:
    pending: list[tuple[str, object]] = [("opora", get_command(cli.app))]
    while pending:
        path, command = pending.pop()
        command = command.load() if isinstance(command, LazyCommand) else command
        inner = [(f"{path} {name}", one) for name, one in getattr(command, "commands", {}).items()]
        pending += inner
        yield from (name for name, _ in inner)


@pytest.mark.parametrize("name", names())
def test_every_pipeline_has_its_graph_and_its_components(pages: Pages, name: str) -> None:
    source = path_of(name).read_text(encoding="utf-8")
    assert mermaid(source) in pages["components"]
    types = {one["type"] for one in yaml.safe_load(source)["components"].values()}
    assert {one for one in types if one.startswith("components.")} <= set(
        re.findall(r"^`(components\.[\w.]+)`$", pages["components"], re.MULTILINE)
    )


def test_every_page_is_in_the_navigation(pages: Pages) -> None:
    navigation = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    assert set(re.findall(r"reference/([\w-]+)\.md", navigation)) == set(pages)
