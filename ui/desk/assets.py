"""The desk's templates and assets. The content of the pages is decided in the other modules of `ui/desk`."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

from fastapi import Header
from starlette.responses import Response

from pipelines.routes import OpenRouter
from ui.pages import Asset, sent, strict_templates

ASSETS: Mapping[str, str] = {"desk.js": "text/javascript", "desk.css": "text/css"}

_HERE = Path(__file__).parent


class Templates:
    def __init__(self) -> None:
        self._environment = strict_templates(_HERE / "templates")
        # Each version has its own address, so that browsers may cache it forever.
        versions = {name: Asset.read(_HERE.parent / "static" / name).digest[:12] for name in ASSETS}
        self._environment.globals["asset"] = lambda name: f"/desk/assets/{name}?{versions[name]}"

    def render(self, template: str, locale: str, values: Mapping[str, object]) -> str:
        return self._environment.get_template(template).render(values, locale=locale)


def router() -> OpenRouter:
    endpoints = OpenRouter(None, include_in_schema=False)

    def add(name: str) -> None:
        asset = Asset.read(_HERE.parent / "static" / name)

        @endpoints.get(f"/desk/assets/{name}")
        async def send(
            accept_encoding: Annotated[str, Header()] = "", if_none_match: Annotated[str, Header()] = ""
        ) -> Response:
            return sent(asset, ASSETS[name], "public, max-age=31536000, immutable", accept_encoding, if_none_match)

    for file in ASSETS:
        add(file)
    return endpoints
