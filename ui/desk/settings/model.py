"""Models used for a tenant's questions, and their health."""

from asyncio import to_thread
from functools import partial

from starlette.responses import Response

from pipelines.ask import model_checks, named_models, profiles
from pipelines.ask.model_checks import ModelResult
from pipelines.pools import Pool
from pipelines.routes import OpenRouter
from tenants.accounts import policy
from tenants.core import context
from ui.desk.rendering import Desk, reader_locale
from ui.desk.settings import forms, pages
from ui.desk.settings.forms import Typed


def router(desk: Desk) -> OpenRouter:
    endpoints = pages.router()
    tests = Pool("model-tests", 4)

    @endpoints.get(f"{pages.ROOT}/models")
    def show_models() -> Response:
        return page()

    @endpoints.post(f"{pages.ROOT}/models/test")
    async def test_models(form: Typed) -> Response:
        named = await to_thread(named_models.profile, forms.line(form, "profile"))
        results = await tests.run({context.current().tenant_id: 1}, partial(model_checks.check, named))
        return await to_thread(page, named.name, results)

    def page(name: str = "", results: tuple[ModelResult, ...] = ()) -> Response:
        return pages.page(
            desk,
            "models",
            "models.html",
            profiles=named_models.listed(),
            chosen=profiles.chosen(),
            own=bool(policy.current().profile),
            tested=name,
            results=results,
            explained=lambda result: model_checks.explained(result, reader_locale()),
            status_of=model_checks.status,
        )

    return endpoints
