"""Reference pages, generated from the code: HTTP, settings and policies, commands, components and profiles.

`make docs` runs `python -m docs.generate` before MkDocs, so no page can be older than the code. Pages are written to
`docs/reference/`, which git ignores.
"""

import os

os.environ["LC_ALL"] = "en_US.UTF-8"  # Help texts of commands are read in this language, when they are imported.

import inspect
import re
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeAlias

import yaml
from haystack import component
from pydantic import BaseModel, SecretStr
from typer.main import get_command

import app
import cli
from pipelines.draw import mermaid, names, path_of
from settings import ROOT, Settings
from tenants.accounts.policy import Policy
from ui.api.api_docs import ApiDocs
from ui.cli.terminal import LazyCommand

Json: TypeAlias = dict[str, Any]  # A decoded JSON document.
FOLDER = ROOT / "docs" / "reference"
_INCLUDED = {"contributing": "CONTRIBUTING.md", "security-policy": "SECURITY.md", "changelog": "CHANGELOG.md"}
_OWN_TYPE = re.compile(r"type: ((?:components|tenants)\.[\w.]+)")
_PARAM = re.compile(r":param (\w+): (.*?)(?=\n\s*:|\n\s*\n|\Z)", re.DOTALL)


def http() -> str:
    """Return every route of the API, by topic: scope, parameters, fields of the body, success."""
    with TemporaryDirectory() as folder:
        settings = Settings(data_dir=Path(folder))
        service = app.create_app(settings)
        document = ApiDocs(service, service.state.open_routes).document
    schemas = document["components"]["schemas"]
    by_topic: dict[str, list[str]] = defaultdict(list)
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            topic = operation.get("tags", ["records"])[0]
            by_topic[topic].append(_operation(method.upper(), path, operation, schemas))
    topics = "\n".join(f"## {topic.capitalize()}\n\n{''.join(found)}" for topic, found in sorted(by_topic.items()))
    return f"""# HTTP

A running service describes the same at `/docs` and, as OpenAPI 3.1, at `/openapi.json`. The
[API guide](../guides/api.md) explains tokens, streams, chats and webhooks. Errors are problem objects (RFC 9457) with a
stable `code`. A `*` marks a required field.

{topics}
## The turn

The fields of `turn.v1`, which `POST /ask/run` returns:

{_table(("field", "type", "meaning"), _fields(schemas["TurnAnswer"], schemas))}
"""


def _operation(method: str, path: str, operation: Json, schemas: Json) -> str:
    scope = "".join(operation["security"][0]["bearer"]) if operation.get("security") else ""
    parts = [f"### {method} {path}", f"{operation.get('description', '')} {_scope(scope)}".strip()]
    rows: list[tuple[str, ...]] = [
        (f"`{one['name']}`", one["in"], _json_type(one["schema"], schemas), one.get("description", ""))
        for one in operation.get("parameters", ())
    ]
    for media_type, content in operation.get("requestBody", {}).get("content", {}).items():
        fields = _fields(_resolved(content.get("schema", {}), schemas), schemas)
        rows += [(name, "body", *rest) for name, *rest in fields or [("", f"`{media_type}`", "")]]
    if rows:
        parts.append(_table(("parameter", "in", "type", "meaning"), rows))
    return "\n\n".join(parts) + "\n\n"


def _scope(scope: str) -> str:
    return f"Scope: `{scope}`." if scope else "No token."


def _fields(schema: Json, schemas: Json) -> list[tuple[str, ...]]:
    required = schema.get("required", ())
    return [
        (f"`{name}`{' *' if name in required else ''}", _json_type(one, schemas), one.get("description", ""))
        for name, one in schema.get("properties", {}).items()
    ]


def _resolved(schema: Json, schemas: Json) -> Json:
    reference = schema.get("$ref")
    found: Json = schemas[reference.rpartition("/")[2]] if reference else schema
    return found


def _json_type(schema: Json, schemas: Json) -> str:
    """Return a schema in a few words: type, allowed values, bounds of the value or of its length."""
    if "$ref" in schema:
        found = _resolved(schema, schemas)
        return _json_type(found, schemas) if "properties" not in found else schema["$ref"].rpartition("/")[2]
    if options := schema.get("anyOf") or schema.get("oneOf"):
        return " or ".join(dict.fromkeys(_json_type(one, schemas) for one in options))
    if values := schema.get("enum"):
        return ", ".join(f"`{value}`" if value else "empty" for value in values)
    if "const" in schema:
        return f"`{schema['const']}`"
    kind = str(schema.get("type", "any"))
    if kind == "array":
        return f"list of {_json_type(schema.get('items', {}), schemas)}"
    low, high = (next((schema[key] for key in keys if key in schema), None) for keys in (_LOWEST, _HIGHEST))
    if low is None:
        return kind if high is None else f"{kind}, up to {high:.10g}"
    return f"{kind}, {low:.10g} {'or more' if high is None else f'to {high:.10g}'}"


_LOWEST, _HIGHEST = ("minimum", "minLength"), ("maximum", "maxLength")


def settings() -> str:
    """Return the environment variables of the service and the rules of a tenant's policy."""
    variables = ((f"`OPORA_{name.upper()}`", *row) for name, row in _model(Settings))
    rules = ((f"`{name}`", *row) for name, row in _model(Policy))
    return f"""# Settings

## Environment

Settings of an installation are environment variables. All data is stored under `OPORA_DATA_DIR`, unless it is on a
server.

{_table(("variable", "default", "meaning"), variables)}

## Policy

Settings of a tenant's assistant: `opora tenant policy acme --set NAME=VALUE`, `/settings/policy` over HTTP, or the
desk. Changes take effect at once, in every process.

{_table(("rule", "default", "meaning"), rules)}
"""


def _model(model: type[BaseModel]) -> Iterator[tuple[str, tuple[str, str]]]:
    for name, field in model.model_fields.items():
        value = field.get_default(call_default_factory=True, validated_data={})
        value = value.get_secret_value() if isinstance(value, SecretStr) else value
        shown = "none" if value in (None, "", (), {}) else f"`{str(value).removeprefix(f'{ROOT}/')}`"
        yield name, (shown, field.description or "")


def commands() -> str:
    """Return the tree of commands, with arguments and options."""
    tree = "\n".join(_command("opora", get_command(cli.app), 1))
    return f"""# Commands

`opora --help` and `opora COMMAND --help` print the same. Commands print in the language of the environment (`LANG`).

{tree}
"""


def _command(path: str, command: Any, depth: int) -> Iterator[str]:  # noqa: ANN401 - a private type of Typer
    if depth > 1:
        usage = " ".join([path, *(one.name.upper() for one in command.params if one.param_type_name == "argument")])
        yield f"{'#' * min(depth, 3)} {path}\n\n{command.help or ''}\n"
        rows = [_option(one) for one in command.params if not one.hidden]
        if not getattr(command, "commands", None):
            yield f"```text\n{usage}{' [OPTIONS]' if any(row[0].startswith('`--') for row in rows) else ''}\n```\n"
        if rows:
            yield _table(("argument or option", "default", "meaning"), rows) + "\n"
    for name, inner in sorted(getattr(command, "commands", {}).items()):
        loaded = inner.load() if isinstance(inner, LazyCommand) else inner
        yield from _command(f"{path} {name}", loaded, depth + 1)


def _option(option: Any) -> tuple[str, str, str]:  # noqa: ANN401 - a private type of Typer
    names = ", ".join(f"`{name if name.startswith('-') else name.upper()}`" for name in option.opts)
    default = option.default if not callable(option.default) else None
    shown = "required" if option.required else "" if default in (None, "", False, []) else f"`{default}`"
    return names, shown, option.help or ""


def steps() -> str:
    """Return the graphs of the deployed pipelines, our classes for YAML, and the profiles."""
    for path in sorted((ROOT / "components").rglob("*.py")):
        import_module(".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"))
    registered = {name: cls for name, cls in component.registry.items() if name.startswith("components.")}
    others = {name: _class(name) for name in sorted(_types_in_yaml() - set(registered))}
    graphs = "\n".join(
        f"### {name}\n\n```mermaid\n{mermaid(path_of(name).read_text('utf-8'))}```\n" for name in names()
    )
    return f"""# Pipelines and components

[Pipelines](../develop/pipelines.md) explains the steps and how to change them.

## Graphs

Drawn by `opora pipeline draw`. Dotted arrows lead back to earlier steps.

{graphs}
## Profiles

{_table(("file", "meaning", "replaces or adds"), _profiles())}

## Components

{"".join(_component(name, cls) for name, cls in sorted(registered.items()))}
## Other classes in YAML

Values of the parameters above, and stores for Haystack's own components.

{"".join(_component(name, cls) for name, cls in others.items())}
"""


def _graph(name: str) -> str:
    return mermaid(path_of(name).read_text("utf-8"))


def _types_in_yaml() -> set[str]:
    pages = (*(ROOT / "pipelines").rglob("*.yaml"), *(ROOT / "docs" / "develop").glob("*.md"))
    stores = {"tenants.index.stores.EdgeDocumentStore", "tenants.index.stores.TenantQdrantDocumentStore"}
    return {name for page in pages for name in _OWN_TYPE.findall(page.read_text("utf-8"))} | stores


def _class(path: str) -> type | None:
    """Return a class, or None if a guide defines it."""
    module, _, name = path.rpartition(".")
    try:
        found: type = getattr(import_module(module), name)
    except ModuleNotFoundError:
        return None
    return found


def _component(path: str, cls: type | None) -> str:
    if cls is None:
        return ""
    text = inspect.getdoc(cls) or ""
    told = dict(_PARAM.findall(text))
    constructor = inspect.getattr_static(cls, "__init__")
    own = constructor is not inspect.getattr_static(object, "__init__")
    parameters = list(inspect.signature(constructor).parameters.values())[1:] if own else []
    parts = [f"### {path.rpartition('.')[2]}", f"`{path}`", text.partition("\n:param")[0].partition("```")[0].strip()]
    if parameters:
        rows = ((f"`{one.name}`", _type(one.annotation), _default(one), told.get(one.name, "")) for one in parameters)
        parts.append(_table(("init parameter", "type", "default", "meaning"), rows))
    run = getattr(cls, "run", None)
    if run is not None and (outputs := getattr(run, "_output_types_cache", None)):
        parts.append(_table(("socket", "type", "default", "meaning"), _sockets(run, outputs)))
    return "\n\n".join(parts) + "\n\n"


def _sockets(run: Callable[..., object], outputs: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    told = dict(_PARAM.findall(inspect.getdoc(run) or ""))
    for one in list(inspect.signature(run).parameters.values())[1:]:
        yield f"in: `{one.name}`", _type(one.annotation), _default(one), told.get(one.name, "")
    for name, socket in outputs.items():
        yield f"out: `{name}`", _type(socket.type), "", ""


def _type(annotation: object) -> str:
    name = annotation.__name__ if type(annotation) is type else str(annotation)
    short = re.sub(r"[A-Za-z_][.A-Za-z0-9_]*[.](?=[A-Za-z_])", "", name)
    return f"`{short.replace(' | ', ' or ')}`"


def _default(parameter: inspect.Parameter) -> str:
    return "" if parameter.default is inspect.Parameter.empty else f"`{parameter.default}`"


def _profiles() -> Iterator[tuple[str, str, str]]:
    for path in sorted((ROOT / "pipelines").glob("*/profiles/*.yaml")):
        source = path.read_text("utf-8")
        comment = " ".join(line.removeprefix("#").strip() for line in source.split("\n\n")[0].splitlines())
        changed = ", ".join(f"`{name}`" for name in yaml.safe_load(source).get("components", {}))
        yield f"`{path.relative_to(ROOT)}`", comment if source.startswith("#") else "", changed


def _table(header: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [header, ("---",) * len(header), *rows]
    return "\n".join(
        "| " + " | ".join(" ".join(cell.split()).replace("|", "\\|") for cell in row) + " |" for row in lines
    )


def _included(name: str) -> str:
    """Return a page of the repository's root, with its links as seen from this folder."""
    text = (ROOT / name).read_text("utf-8")
    text = re.sub(r"\]\(docs/", "](../", text)
    for page, file in _INCLUDED.items():
        text = text.replace(f"]({file})", f"]({page}.md)")
    return text


PAGES: Mapping[str, Callable[[], str]] = {
    "http": http,
    "settings": settings,
    "commands": commands,
    "components": steps,
    **{page: partial(_included, file) for page, file in _INCLUDED.items()},
}
"""Generated pages by name, each with the function that returns its text."""


def main(folder: Path = FOLDER) -> None:
    """Write every page, and remove pages that are no longer generated."""
    folder.mkdir(exist_ok=True)
    for stale in set(folder.glob("*.md")) - {folder / f"{name}.md" for name in PAGES}:
        stale.unlink()
    for name, page in PAGES.items():
        (folder / f"{name}.md").write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
