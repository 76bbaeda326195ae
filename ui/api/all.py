"""All endpoints of the API."""

from collections.abc import Iterator

from pipelines import metrics
from pipelines.routes import OpenRouter
from ui.api import (
    articles,
    contradiction,
    desk,
    evaluation,
    feedback,
    file,
    gap,
    hours,
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
    """Yield the endpoints in the order in which they are matched."""
    yield stream.router(services.runner, services.settings)
    yield ui_messages.router(services.runner, services.settings)
    yield feedback.router(services.runner.ask)
    yield library.router(services.library, services.settings)
    yield job.router(services.settings)
    yield index.router(services.ingest.encoder)
    yield playground.router(services.runner, services.settings)
    yield records.router
    yield insight.router
    yield relation.router
    yield tool.router
    yield token.router
    if services.settings.metrics_token.get_secret_value():
        yield metrics.router(services.settings, lambda: services.runner.waiting)
    yield session.router(services.runner, services.visitors)
    yield visitor.router(services.conversations)
    yield file.router(services.conversations)
    yield desk.router(services.conversations)
    yield hours.router()
    yield site.router
    yield webhook.router
    yield settings.router
    yield operators.router
    yield articles.router(services.articles)
    yield gap.router(services.articles)
    yield contradiction.router
    yield evaluation.router(services.evaluations)
