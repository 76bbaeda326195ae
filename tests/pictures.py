"""Pictures of README and docs, and the digests of the templates and styles that they show.

`python -m tests.browser.pictures` takes them all; a unit test fails as soon as one of them is out of date.
"""

from hashlib import sha256
from pathlib import Path

import yaml
from jinja2 import Environment, FileSystemLoader, meta

from settings import ROOT

FOLDER = ROOT / "docs" / "images"
RECORD = FOLDER / "sources.yaml"
"""Digest of the sources of each picture when it was taken."""

_UI = ROOT / "ui"
_DESK = _UI / "desk" / "templates"
_DESK_PAGES = {
    "upload": "welcome.html",
    "answer": "welcome.html",
    "reply": "chat.html",
    "article": "articles/preview.html",
}
NAMES = ("shop", *_DESK_PAGES)


def sources(name: str) -> list[Path]:
    """Return the templates, styles and scripts that a picture shows."""
    if name == "shop":
        return [_UI / "templates" / "demo.html", _UI / "templates" / "demo.css", _UI / "static" / "chat.js"]
    return [_UI / "static" / "desk.css", *sorted(_with_included(_DESK_PAGES[name]))]


def digests() -> dict[str, str]:
    """Return the digest of each picture's sources today."""
    return {name: sha256(b"\0".join(path.read_bytes() for path in sources(name))).hexdigest()[:16] for name in NAMES}


def recorded() -> dict[str, str]:
    """Return the digests of when the pictures were taken."""
    return dict(yaml.safe_load(RECORD.read_text(encoding="utf-8")))


def _with_included(template: str) -> set[Path]:
    """Return the file of a template, and of those that it extends, includes or imports."""
    environment = Environment(loader=FileSystemLoader(_DESK), autoescape=True, extensions=["jinja2.ext.do"])
    found: set[str] = set()
    waiting = [template]
    while waiting:
        name = waiting.pop()
        if name in found:
            continue
        found.add(name)
        parsed = environment.parse((_DESK / name).read_text(encoding="utf-8"))
        waiting += [other for other in meta.find_referenced_templates(parsed) if other]
    return {_DESK / name for name in found}
