"""All endpoints of the API."""

from collections.abc import Iterator

from pipelines import metrics_endpoint
from pipelines.routes import OpenRouter
from ui.api import (
    articles,
    desk,
    evaluation,
    feedback,
    file,
    gap,
    index,
    insight,
    job,
    library,
    operators,
    playground,
    records,
    relation,
    session,
    settings,
    site,
    stream,
    token,
    tool,
    ui_messages,
    visitor,
    webhook,
)
from ui.services import Services


def routers(services: Services) -> Iterator[OpenRouter]:
    runner = services.runner
    yield stream.router(runner, services.settings)
    yield ui_messages.router(runner, services.settings)
    yield feedback.router(runner.ask)
    yield library.router(services.library, services.settings)
    yield job.router(services.settings)
    yield index.router(services.ingest.encoder)
    yield playground.router(runner, services.settings)
    if services.settings.metrics_token.get_secret_value():
        yield metrics_endpoint.router(services.settings, lambda: runner.waiting)
    yield session.router(services.limiter, services.visitors)
    for chats in (visitor, file, desk):
        yield chats.router(services.conversations)
    for written in (articles, gap):
        yield written.router(services.articles)
    yield evaluation.router(services.evaluations)
    for stored in (records, insight, relation, tool, token, site, webhook, settings):
        yield stored.router
    yield operators.router(services.passwords)
