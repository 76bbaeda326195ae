"""The documentation cannot drift: its tables, commands, paths and links are checked against the tree."""

import json
import re
from importlib.util import find_spec

import yaml
from typer.main import get_command

import cli
from app import create_app
from components.ingest import formats
from components.ingest.files import MAX_ARTICLE_BYTES
from components.ingest.formats import parsed
from components.ingest.formats.detect import FORMATS
from components.ingest.sandbox import MEMORY, SECONDS
from components.language.texts import LOCALES
from settings import ROOT, Settings
from tenants.accounts.hours import Hours
from tenants.knowledge import tools
from tests import pictures
from tests.pages import PAGES, blocks, files, marked
from ui.cli.terminal import LazyCommand

KNOWLEDGE = PAGES["docs/guides/knowledge-base.md"]
README, README_RU = PAGES["README.md"], PAGES["README.ru.md"]
NAVIGATION = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
CURRENT = {page: text for page, text in PAGES.items() if page != "CHANGELOG.md"}
"""Pages that say how things are now."""


def test_every_finding_is_held_by_tests_that_exist() -> None:
    text = (ROOT / "tests/attack/README.md").read_text(encoding="utf-8")
    for row in re.findall(r"^\| (?!finding |-)(.+?) \| (.+) \|$", text, re.MULTILINE):
        path = ""
        for file, name in re.findall(r"`([\w/.]*)::(\w+)`", row[1]):
            path = file or path
            assert f"def {name}(" in (ROOT / path).read_text(encoding="utf-8"), (row[0], path, name)
        assert path, row


def test_the_formats_are_those_that_are_read() -> None:
    cells = re.findall(r"^\| [^|]*?((?:`\.\w+` ?)+)\|", marked(KNOWLEDGE, "formats"), re.MULTILINE)
    assert {ending for cell in cells for ending in re.findall(r"`(\.\w+)`", cell)} == set(FORMATS)


def test_the_limits_of_files_are_true() -> None:
    paragraph = _paragraph("A file may be up to 50 MB")
    documented = {int(number.replace(",", "")) for number in re.findall(r"\b\d[\d,]*\b", paragraph)}
    parser = yaml.safe_load((ROOT / "pipelines/ingest/ingest.yaml").read_text(encoding="utf-8"))["components"]["parser"]
    megabytes = (MAX_ARTICLE_BYTES // 1_000_000, MEMORY // 1_000_000)
    others = (
        parsed.MAX_PAGES,
        parsed.MAX_CELLS,
        parsed.MAX_DEPTH,
        parser["init_parameters"]["max_characters"],
        SECONDS,
    )
    assert documented == {*megabytes, *others}


def _paragraph(start: str) -> str:
    return KNOWLEDGE[KNOWLEDGE.index(start) :].split("\n\n")[0]


def test_the_faq_examples_are_read_as_such() -> None:
    examples = re.findall(r"```(csv|markdown)\n(.*?)```", KNOWLEDGE, re.DOTALL)
    assert examples
    for ending, text in examples:
        parsed = formats.read(f"faq.{ending}", text.encode())
        assert (parsed.markup, parsed.flags) == ("faq", ()), text
        assert len(re.findall(r"^##+ .*\?$", parsed.text, re.MULTILINE)) == 2, text


def test_the_tool_and_the_hours_are_some() -> None:
    tool, hours = blocks(PAGES["docs/guides/api.md"], "json")
    assert tools.parsed(json.loads(tool)).parameters.required == ("number",)
    assert Hours.model_validate_json(hours).holidays


def test_every_figure_is_explained_by_its_names() -> None:
    rows = re.findall(
        r"^\| `([^`]+)` \| (.+?) \| .+ \|$", marked(PAGES["docs/develop/evaluation.md"], "names"), re.MULTILINE
    )
    locale = (ROOT / "components/language/locales/en/evaluation.yaml").read_text(encoding="utf-8")
    assert dict(rows) == yaml.safe_load(locale)["figure"]


def test_every_room_is_described() -> None:
    rooms = {f"{path.parent.name}/" for path in ROOT.glob("*/__init__.py")} | {path.name for path in ROOT.glob("*.py")}
    assert rooms | {"tests/"} == set(
        re.findall(r"^\| `([\w./]+)` \| [^|]+ \|$", PAGES["CONTRIBUTING.md"], re.MULTILINE)
    )


def test_a_readme_is_short() -> None:
    assert max(len(readme.splitlines()) for readme in (README, README_RU)) <= 150


def test_every_make_target_exists() -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    for page, text in PAGES.items():
        assert set(re.findall(r"(?:^|`)make ([a-z]+)\b", text, re.MULTILINE)) <= targets, page


def test_every_command_exists() -> None:
    for page, text in PAGES.items():
        lines = re.findall(r"^(?:(?:export )?[A-Z_]+=(?:\$\(|\S+ ))?opora ([a-z].*)$", text, re.MULTILINE)
        for line in lines + re.findall(r"`opora\s([a-z][^`]*)`", text):
            _check_command(line, page)


def _check_command(line: str, page: str) -> None:
    command: object = get_command(cli.app)
    for word in line.split():
        following = getattr(command, "commands", {}).get(word)
        if following is None:
            break
        command = following.load() if isinstance(following, LazyCommand) else following
    if line.startswith("evaluate ") and isinstance(measure := getattr(command, "commands", {}).get("run"), LazyCommand):
        command = measure.load()
    options = {option for parameter in getattr(command, "params", []) for option in parameter.opts}
    assert not getattr(command, "commands", {}) or len(line.split()) == 1 or "--help" in line, (page, line)
    assert set(re.findall(r"--[a-z-]+", line.partition("#")[0])) <= {*options, "--help"}, (page, line)


def test_every_path_exists() -> None:
    rooms = "app|cli|settings|pipelines|components|tenants|evaluation|ui|tests|docs|compose"
    for page, text in PAGES.items():
        paths = re.findall(rf"`((?:{rooms})[\w/]*(?:/|\.\w+))`", text)
        assert [path for path in paths if not (ROOT / path).exists() and path not in files(text)] == [], page


def test_every_module_that_is_run_exists() -> None:
    for page, text in PAGES.items():
        modules = re.findall(r"python -m ([\w.]+)", text)
        assert [module for module in modules if find_spec(module) is None] == [], page


def test_every_local_link_leads_somewhere() -> None:
    for page, text in PAGES.items():
        for target, anchor in re.findall(r"\]\(([^)#]*)(?:#([^)]+))?\)", text):
            _check_link(page, target, anchor)


def _check_link(page: str, target: str, anchor: str) -> None:
    if target.startswith("https://"):
        return
    path = (ROOT / page).parent.joinpath(target).resolve() if target else ROOT / page
    if path.parent == ROOT / "docs" / "reference":
        assert f" reference/{path.name}\n" in NAVIGATION, (page, target)
        return
    assert path.exists(), (page, target)
    if anchor:
        assert anchor in _anchors(path.read_text(encoding="utf-8")), f"{page}: {target}#{anchor}"


def _anchors(text: str) -> set[str]:
    """Return the anchors of headings as code hosts make them: lower case, hyphens for spaces, no punctuation."""
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


_ELSEWHERE = {
    ("GET", "/metrics"),
    ("POST", "/articles/run"),
    ("POST", "/api/chat"),  # of Ollama
    ("POST", "/api/embed"),
    ("GET", "/api/tags"),
}
"""Routes that a setting or a guide adds, and those of model servers."""


def test_every_route_exists(installation: Settings) -> None:
    served = {
        (route.method, re.sub(r"{[^}]*}", "{}", route.path)) for route in create_app(installation).state.open_routes
    }
    for page, text in CURRENT.items():
        named = re.findall(r"`(GET|POST|PUT|PATCH|DELETE) (/[^\s`?]*)[^`]*`", text)
        assert {(method, re.sub(r"{[^}]*}", "{}", path)) for method, path in named} - served <= _ELSEWHERE, page


def test_every_setting_exists() -> None:
    settings = {f"OPORA_{name.upper()}" for name in Settings.model_fields}
    for page, text in CURRENT.items():
        named = {name for name in re.findall(r"OPORA_[A-Z_]*[A-Z]", text) if "_TEST_" not in name}
        assert named <= settings, page


def test_pictures_were_taken_of_the_present_templates() -> None:
    assert pictures.recorded() == pictures.digests(), "run `python -m tests.browser.pictures` and look at the result"


def test_each_picture_exists_in_light_dark_and_phone() -> None:
    expected = {f"{name}{look}.png" for name in pictures.NAMES for look in ("", "-dark", "-phone")}
    for locale in LOCALES:
        assert {path.name for path in (pictures.FOLDER / locale).iterdir()} == expected, locale
