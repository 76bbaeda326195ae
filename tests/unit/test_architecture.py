"""Machine-checked rules of the code base: imports, tests, texts, and file contents."""

import ast
import os
import re
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from string import Formatter

import pytest

from components.language.texts import LOCALES, keys
from components.language.yaml_files import read_yaml
from settings import ROOT

ROOMS = ("app", "cli", "settings", "pipelines", "components", "tenants", "evaluation", "ui")
MAY_IMPORT = {
    "app": {"settings", "pipelines", "components", "tenants", "ui"},
    "cli": {"settings", "app", "pipelines", "components", "tenants", "evaluation", "ui"},
    "settings": set(),
    "pipelines": {"settings", "pipelines", "components", "tenants"},
    "components": {"settings", "components", "tenants"},
    "components.language": {"components.language"},
    "components.turn": set(),
    "tenants": {"settings", "tenants"},
    "evaluation": {"settings", "evaluation", "ui", "pipelines", "components", "tenants"},
    "ui": {"settings", "ui", "pipelines", "components", "tenants"},
}
TENANTS = (
    *("core", "storage", "accounts", "access", "knowledge", "index", "work"),
    *("chats", "desk", "audit", "insight", "privacy", "backup"),
)
"""The packages of `tenants`, each above those that it may import."""

STORES = {"qdrant_client", "qdrant_edge", "sqlalchemy", "alembic", "redis", "psycopg", "sqlite3"}
WEB = {"fastapi", "starlette", "hayhooks", "uvicorn"}
NOT_OURS = re.compile(
    r"\.(git|venv(-phoenix|-docs)?|opora|hypothesis|\w+_cache)|__pycache__|dist|build|site|reference|.*\.egg-info"
)
# Written in parts, so that this file passes its own rule.
REGISTRY = re.compile(
    "|".join(["pypi" + r"\.org", "python" + r"hosted\.org", "npm" + r"js\.org", r"index" + "-url", "find" + "-links"])
)
MACHINE = re.compile(r"(?<![\w.~$}])/(?:work|root|Users|home)/\w")


def _files() -> Iterator[Path]:
    for folder, folders, names in os.walk(ROOT):
        folders[:] = [name for name in folders if not NOT_OURS.fullmatch(name)]
        yield from (Path(folder, name) for name in names if not name.endswith(".pyc") and name != ".git")


FILES = sorted(_files())
MODULES = [path for path in FILES if path.suffix == ".py"]
PRODUCT = [path for path in MODULES if path.relative_to(ROOT).parts[0].removesuffix(".py") in ROOMS]
_SOURCES = {path: path.read_text(encoding="utf-8") for path in MODULES}


@cache
def _parsed(source: str) -> ast.Module:
    """Parse a module once for all rules."""
    return ast.parse(source)


def _named(path: Path) -> str:
    return str(path.relative_to(ROOT))


def _module(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def _imported(tree: ast.AST, module: str, *, is_package: bool) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = module.split(".")
            above = base[: len(base) - node.level + is_package] if node.level else []
            source = ".".join([*above, *([node.module] if node.module else [])])
            yield from (f"{source}.{alias.name}" for alias in node.names)


def _within(name: str, package: str) -> bool:
    return name == package or name.startswith(package + ".")


def wrong_imports(source: str, module: str, *, is_package: bool = False) -> list[str]:
    """Return the module's imports that break the rules."""
    rule = max((room for room in MAY_IMPORT if _within(module, room)), key=len)
    wrong = []
    for name in _imported(_parsed(source), module, is_package=is_package):
        is_own = name.split(".")[0] in ROOMS
        if is_own and not any(_within(name, allowed) for allowed in MAY_IMPORT[rule]):
            wrong.append(f"{module} imports {name}")
        if name.split(".")[0] in STORES and not _within(module, "tenants"):
            wrong.append(f"{module} opens a store of its own: {name}")
    return wrong


def test_packages_of_tenants_import_only_those_below_them() -> None:
    upward = []
    for path in PRODUCT:
        package, _, rest = _module(path).removeprefix("tenants.").partition(".")
        if rest and package in TENANTS:
            above = TENANTS[TENANTS.index(package) + 1 :]
            imported = _imported(_parsed(_SOURCES[path]), _module(path), is_package=path.name == "__init__.py")
            upward += [
                (_named(path), name) for name in imported if name.split(".")[1:2] and name.split(".")[1] in above
            ]
    assert not upward


def test_imports_point_one_way_and_stores_have_one_door() -> None:
    wrong = [
        fault
        for path in PRODUCT
        for fault in wrong_imports(_SOURCES[path], _module(path), is_package=path.name == "__init__.py")
    ]
    assert not wrong


def test_a_wrong_import_is_seen() -> None:
    for module, source in (
        ("tenants.accounts.registry", "from components.turn import Turn"),
        ("components.judge.local", "def f():\n    from pipelines.ask import engine"),
        ("components.language.words", "from components.turn import Turn"),
        ("components.language.words", "import settings"),
        ("components.turn", "from components.language import words"),
        ("components.turn", "from .language import words"),
        ("pipelines.ask.usecase", "import app"),
        ("evaluation.measurement", "from cli import main"),
        ("pipelines.ask.usecase", "from evaluation import run"),
        ("components.retrieve.retriever", "from qdrant_client import QdrantClient"),
        ("app", "import sqlalchemy"),
    ):
        assert wrong_imports(source, module)


def loaded_with(module: str) -> Iterator[tuple[str, str]]:
    """Yield the imports caused by importing a module, each with the importing module. Imports in functions are lazy."""
    files = {_module(path): path for path in PRODUCT}
    waiting, known = [module], {module}
    while waiting:
        at = waiting.pop()
        is_package = files[at].name == "__init__.py"
        outer: list[ast.stmt] = [
            node for node in _parsed(_SOURCES[files[at]]).body if isinstance(node, ast.Import | ast.ImportFrom)
        ]
        for name in _imported(ast.Module(outer, []), at, is_package=is_package):
            yield name, at
            new_modules = {name, name.rpartition(".")[0]} & files.keys() - known
            known |= new_modules
            waiting += new_modules


@pytest.mark.parametrize(
    ("module", "unneeded"),
    [
        ("ui.cli.ask", WEB),
        ("ui.cli.ingest", WEB),
        ("pipelines.ask.usecase", WEB | {"sklearn"}),
        ("pipelines.ingest.usecase", WEB | {"sklearn"}),
        ("evaluation.measurement", {"openai", "ollama", "haystack_integrations"}),
    ],
)
def test_slow_libraries_are_imported_by_those_that_need_them(module: str, unneeded: set[str]) -> None:
    loaded = list(loaded_with(module))
    assert len(loaded) > 100
    assert not [(name, at) for name, at in loaded if name.split(".")[0] in unneeded]


def test_help_imports_no_command() -> None:
    rooms = {name.partition(".")[0] for name, _ in loaded_with("cli")}
    assert "typer" in rooms
    assert not rooms & {"haystack", "sqlalchemy", "pipelines", *WEB}


def _tests() -> dict[Path, ast.Module]:
    # Parsed when a rule runs: each process of pytest-xdist imports this module, only one runs its tests.
    return {path: _parsed(_SOURCES[path]) for path in MODULES if _named(path).startswith("tests/")}


_CHECKS = {"raises", "warns", "fail", "expect", "run_state_machine_as_test"}


def _functions(tree: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


def _called(node: ast.AST) -> set[str]:
    calls = [item.func for item in ast.walk(node) if isinstance(item, ast.Call)]
    return {
        call.attr if isinstance(call, ast.Attribute) else call.id
        for call in calls
        if isinstance(call, ast.Attribute | ast.Name)
    }


def _asserts(node: ast.AST) -> bool:
    return any(isinstance(item, ast.Assert) for item in ast.walk(node)) or bool(_called(node) & _CHECKS)


def without_assertion(tests: Iterable[ast.AST]) -> list[str]:
    """Return the tests that neither assert nor call a helper that does."""
    every = [function for tree in tests for function in _functions(tree)]
    checking = {function.name for function in every if not function.name.startswith("test_") and _asserts(function)}
    return [
        function.name
        for function in every
        if function.name.startswith("test_") and not _asserts(function) and not _called(function) & checking
    ]


def test_every_test_asserts_something() -> None:
    assert not without_assertion(_tests().values())


def test_a_test_without_an_assertion_is_seen() -> None:
    source = "def help():\n    assert 1\ndef test_a():\n    help()\ndef test_b():\n    f()\ndef test_c():\n    assert 1"
    assert without_assertion([ast.parse(source)]) == ["test_b"]


def sleeps(tree: ast.AST) -> bool:
    """Whether a test sleeps longer than a turn of the event loop instead of waiting for an event."""
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and "sleep" in _called(ast.Expr(node))]
    return any(not (isinstance(zero := call.args[0], ast.Constant) and zero.value == 0) for call in calls if call.args)


def test_no_test_sleeps() -> None:
    assert not {_named(path) for path, tree in _tests().items() if sleeps(tree)}


def test_a_sleep_is_seen() -> None:
    assert sleeps(ast.parse("time.sleep(0.1)"))
    assert not sleeps(ast.parse("asyncio.sleep(0)"))


def _text_of(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return path.read_bytes().decode("latin-1")


def test_no_file_names_a_registry_or_a_place_on_one_machine() -> None:
    results = {
        _named(path): match.group()
        for path in FILES
        if (match := REGISTRY.search(_text_of(path)) or MACHINE.search(_text_of(path)))
    }
    assert not results


def _flat(node: object, prefix: str) -> Iterator[tuple[str, str]]:
    if isinstance(node, dict):
        for name, child in node.items():
            yield from _flat(child, f"{prefix}.{name}")
    else:
        assert isinstance(node, str), f"{prefix} is no text"
        yield prefix, node


def _locale(locale: str) -> dict[str, str]:
    folder = ROOT / "components" / "language" / "locales" / locale
    areas = {
        ".".join(path.relative_to(folder).with_suffix("").parts): read_yaml(path)
        for path in sorted(folder.rglob("*.yaml"))
    }
    return dict(pair for area, node in areas.items() for pair in _flat(node, area))


def _placeholders(template: str) -> set[str]:
    return {name for _, name, _, _ in Formatter().parse(template) if name is not None}


def test_all_locales_say_the_same_things() -> None:
    russian, *others = (_locale(locale) for locale in LOCALES)
    for other in others:
        assert other.keys() == russian.keys()
        differing = {key for key in russian if _placeholders(russian[key]) != _placeholders(other[key])}
        assert not differing


def texts_asked_for(source: str) -> set[str]:
    """Return the locale keys that a module uses as literals."""
    tree = _parsed(source)
    if "components.language.texts.text" not in set(_imported(tree, "", is_package=False)):
        return set()
    calls = (node for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name))
    asked = (call.args[0] for call in calls if isinstance(call.func, ast.Name) and call.func.id == "text" and call.args)
    return {key.value for key in asked if isinstance(key, ast.Constant) and isinstance(key.value, str)}


def test_every_text_that_code_asks_for_exists() -> None:
    asked = {(key, _named(path)) for path in PRODUCT for key in texts_asked_for(_SOURCES[path])}
    known = set(keys(""))
    assert not {(key, where) for key, where in asked if key not in known}


def test_a_text_asked_for_is_seen() -> None:
    source = 'from components.language.texts import text\ntext("a.b", "ru")\ntext(key, "ru")'
    assert texts_asked_for(source) == {"a.b"}
    assert texts_asked_for('from sqlalchemy import text\ntext("SELECT 1")') == set()
