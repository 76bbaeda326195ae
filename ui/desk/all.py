"""All pages of the desk."""

from collections.abc import Iterator

from pipelines.routes import OpenRouter
from ui.desk import account, article, assets, chat, document, doubt, first_run, gap, job, live, sso, tenant
from ui.desk.insights import audit, evaluation, figures, measured, playground, reading
from ui.desk.rendering import Desk
from ui.desk.settings import change, hours, identity_provider, model, offers, policy, site, token, tool, webhook
from ui.services import Services


def routers(desk: Desk, services: Services) -> Iterator[OpenRouter]:
    yield account.router(desk, services.limiter, services.passwords)
    yield chat.router(desk, services.conversations)
    yield document.router(desk, services.library)
    yield job.router(desk)
    yield live.router
    yield first_run.router(desk, services.runner, services.passwords)
    yield gap.router(desk, services.articles)
    yield article.router(desk, services.articles)
    yield doubt.router(desk)
    for insights in (figures, audit, measured):
        yield insights.router(desk)
    yield evaluation.router(desk, services.evaluations)
    yield reading.router(desk, services.runner.ask)
    yield playground.router(desk, services.runner)
    for settings in (policy, offers, hours, site, tool, webhook, token, model, identity_provider, change):
        yield settings.router(desk)
    yield sso.router(desk, services.limiter)
    yield tenant.router(desk, services.passwords)
    yield assets.router()
