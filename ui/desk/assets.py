"""The desk's templates and assets. What stands on its pages is decided in `pipelines/ask/desk`."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

from fastapi import APIRouter, Header
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.responses import Response

from ui.assets import Asset, sent

ASSETS: Mapping[str, str] = {"desk.js": "text/javascript", "desk.css": "text/css"}
PATHS = tuple(f"/desk/assets/{name}" for name in ASSETS)
"""What the gate lets through, each by GET and without a session."""

_HERE = Path(__file__).parent
_FOR_GOOD = "public, max-age=31536000, immutable"


class Templates:
    """Makes pages. Everything that is put into a template is escaped."""

    def __init__(self) -> None:
        self._environment = Environment(
            loader=FileSystemLoader(_HERE / "templates"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        # An address of its own for each version, so that browsers may keep it for good.
        versions = {name: Asset.read(_HERE.parent / "static" / name).digest[:12] for name in ASSETS}
        self._environment.globals["asset"] = lambda name: f"/desk/assets/{name}?{versions[name]}"

    def render(self, template: str, locale: str, values: Mapping[str, object]) -> str:
        """A page as HTML."""
        return self._environment.get_template(template).render(values, locale=locale)


def router() -> APIRouter:
    """The endpoints of the assets."""
    endpoints = APIRouter(include_in_schema=False)
    for path, (name, media_type) in zip(PATHS, ASSETS.items(), strict=True):
        _add(endpoints, path, Asset.read(_HERE.parent / "static" / name), media_type)
    return endpoints


def _add(endpoints: APIRouter, path: str, asset: Asset, media_type: str) -> None:
    @endpoints.get(path)
    def send(accept_encoding: Annotated[str, Header()] = "", if_none_match: Annotated[str, Header()] = "") -> Response:
        return sent(asset, media_type, _FOR_GOOD, accept_encoding, if_none_match)
