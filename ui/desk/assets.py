"""The desk's templates and assets. The content of the pages is decided in the other modules of `ui/desk`."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

from fastapi import Header
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.responses import Response

from pipelines.routes import OpenRouter
from ui.assets import Asset, sent

ASSETS: Mapping[str, str] = {"desk.js": "text/javascript", "desk.css": "text/css"}
PATHS = tuple(f"/desk/assets/{name}" for name in ASSETS)
"""Open routes, each by GET and without a session."""

_HERE = Path(__file__).parent
_FOR_GOOD = "public, max-age=31536000, immutable"


class Templates:
    """Renders pages. The templates escape every value."""

    def __init__(self) -> None:
        self._environment = Environment(
            loader=FileSystemLoader(_HERE / "templates"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        # Each version has its own address, so that browsers may cache it forever.
        versions = {name: Asset.read(_HERE.parent / "static" / name).digest[:12] for name in ASSETS}
        self._environment.globals["asset"] = lambda name: f"/desk/assets/{name}?{versions[name]}"

    def render(self, template: str, locale: str, values: Mapping[str, object]) -> str:
        """Render a page as HTML."""
        return self._environment.get_template(template).render(values, locale=locale)


def router() -> OpenRouter:
    """Return the endpoints of the assets."""
    endpoints = OpenRouter(None, include_in_schema=False)
    for path, (name, media_type) in zip(PATHS, ASSETS.items(), strict=True):
        _add(endpoints, path, Asset.read(_HERE.parent / "static" / name), media_type)
    return endpoints


def _add(endpoints: OpenRouter, path: str, asset: Asset, media_type: str) -> None:
    @endpoints.get(path)
    def send(accept_encoding: Annotated[str, Header()] = "", if_none_match: Annotated[str, Header()] = "") -> Response:
        return sent(asset, media_type, _FOR_GOOD, accept_encoding, if_none_match)
