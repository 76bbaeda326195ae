"""The README cannot drift: its tables, commands and paths are checked against the tree."""

import json
import re

import pytest
import yaml
from pydantic import SecretStr
from pydantic.fields import FieldInfo
from typer.main import get_command

import cli
from app import routes
from components.ingest import formats
from components.ingest.files import LARGEST_ARTICLE
from components.ingest.formats import limits
from components.ingest.formats.detect import FORMATS
from components.ingest.sandbox import MEMORY, SECONDS
from settings import ROOT, Settings
from tenants import tools

README = (ROOT / "README.md").read_text(encoding="utf-8")
SECURITY = (ROOT / "SECURITY.md").read_text(encoding="utf-8")


def _default(field: FieldInfo) -> str:
    value = field.default.get_secret_value() if isinstance(field.default, SecretStr) else field.default
    if value is None or value == "":
        return "none"
    return f"`{str(value).removeprefix(f'{ROOT}/')}`"


def settings_table() -> str:
    """The table of settings as the README should hold it: copy it from the failing test."""
    rows = [
        f"| `OPORA_{name.upper()}` | {_default(field)} | {field.description} |"
        for name, field in Settings.model_fields.items()
    ]
    return "\n".join(["| variable | default | what it is for |", "|---|---|---|", *rows])


def test_the_settings_table_is_true() -> None:
    found = re.search(r"<!-- settings -->\n(.*?)\n<!-- /settings -->", README, re.DOTALL)
    assert found is not None
    assert found.group(1) == settings_table()


def test_the_endpoints_are_those_of_the_service() -> None:
    told = set(re.findall(r"\| `(GET|POST|PUT|PATCH|DELETE) (/\S+)` \| (?:`(\w+)`|none) \|", README))
    assert told == {(route.method, route.path, route.scope or "") for route in routes(Settings())}


def test_the_formats_are_those_that_are_read() -> None:
    found = re.search(r"<!-- formats -->\n(.*?)\n<!-- /formats -->", README, re.DOTALL)
    assert found is not None
    told = re.findall(r"^\| [^|]*?((?:`\.\w+` ?)+)\|", found.group(1), re.MULTILINE)
    assert {ending for cell in told for ending in re.findall(r"`(\.\w+)`", cell)} == set(FORMATS)


def test_the_limits_of_files_are_true() -> None:
    told = {int(number.replace(",", "")) for number in re.findall(r"\b\d[\d,]*\b", _paragraph("A file may have 50 MB"))}
    parser = yaml.safe_load((ROOT / "pipelines/ingest/ingest.yaml").read_text(encoding="utf-8"))["components"]["parser"]
    megabytes = (LARGEST_ARTICLE // 1_000_000, MEMORY // 1_000_000)
    others = (
        limits.MOST_PAGES,
        limits.MOST_CELLS,
        limits.DEEPEST,
        parser["init_parameters"]["max_characters"],
        SECONDS,
    )
    assert told == {*megabytes, *others}


def _paragraph(start: str) -> str:
    return README[README.index(start) :].split("\n\n")[0]


@pytest.mark.parametrize("example", re.findall(r"```(csv|markdown)\n(.*?)```", README, re.DOTALL))
def test_the_faq_examples_are_read_as_such(example: tuple[str, str]) -> None:
    ending, text = example
    parsed = formats.read(f"faq.{ending}", text.encode())
    assert (parsed.markup, parsed.flags) == ("faq", ())
    assert len(re.findall(r"^##+ .*\?$", parsed.text, re.MULTILINE)) == 2


def test_the_tool_is_one() -> None:
    (example,) = re.findall(r"```json\n(.*?)```", README, re.DOTALL)
    assert tools.parsed(json.loads(example)).parameters.required == ("number",)


def test_every_room_is_described() -> None:
    rooms = {f"{path.parent.name}/" for path in ROOT.glob("*/__init__.py")} | {path.name for path in ROOT.glob("*.py")}
    assert rooms | {"tests/"} == set(re.findall(r"^\| `([\w./]+)` \| [^|]+ \|$", README, re.MULTILINE))


def test_every_make_target_exists() -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    assert set(re.findall(r"\bmake ([a-z]+)\b", README)) - {"sure"} <= targets


def test_every_command_exists() -> None:
    for line in re.findall(r"^(?:export TOKEN=\$\()?opora ([a-z].*)$", README, re.MULTILINE):
        command: object = get_command(cli.app)
        for word in line.split():
            following = getattr(command, "commands", {}).get(word)
            if following is None:
                break
            command = following
        command = getattr(command, "commands", {}).get("run", command) if line.startswith("evaluate ") else command
        options = {option for parameter in getattr(command, "params", []) for option in parameter.opts}
        assert command is not get_command(cli.app), line
        assert set(re.findall(r"--[a-z-]+", line)) <= options, line


@pytest.mark.parametrize("text", [README, SECURITY], ids=["README", "SECURITY"])
def test_every_path_exists(text: str) -> None:
    paths = re.findall(
        r"`((?:app|cli|settings|pipelines|components|tenants|evaluation|ui|tests|compose)[\w/]*(?:/|\.\w+))`", text
    )
    assert paths
    assert [path for path in paths if not (ROOT / path).exists()] == []


@pytest.mark.parametrize("text", [README, SECURITY], ids=["README", "SECURITY"])
def test_every_local_link_leads_somewhere(text: str) -> None:
    links = re.findall(r"\]\(([^)#]+)\)", text)
    assert [link for link in links if not link.startswith("https://") and not (ROOT / link).exists()] == []


def test_the_thresholds_shown_are_parameters_of_the_pipeline() -> None:
    pipeline = (ROOT / "pipelines" / "ask" / "ask.yaml").read_text(encoding="utf-8")
    first = re.findall(r"```yaml\n(.*?)```", README, re.DOTALL)[0]
    for line in first.splitlines():
        key = line.partition(":")[0]
        assert f"\n{key}:" in pipeline, line
