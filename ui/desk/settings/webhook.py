"""Receivers of chat events and the delivery log."""

from typing import Annotated

from fastapi import Query
from starlette.responses import Response

from components.ingest.fetch import canonical
from components.language.texts import text_or
from pipelines.routes import OpenRouter
from tenants.chats import outbox, webhooks
from tenants.chats.outbox import Delivery
from tenants.chats.webhook_events import MAIL_EVENTS, TEST_EVENT, WEBHOOK_EVENTS
from tenants.core.errors import Invalid, OporaError
from ui.desk import chat_view
from ui.desk.rendering import Desk, reader_locale
from ui.desk.settings import forms, pages
from ui.desk.settings.forms import Field, Typed

_ALL = f"{pages.ROOT}/webhooks"
_SHOWN = 50


def router(desk: Desk) -> OpenRouter:
    endpoints = pages.router()

    @endpoints.get(_ALL)
    def show_webhooks(saved: pages.Saved = "", state: Annotated[str, Query(max_length=20)] = "") -> Response:
        return page(saved=saved, dead=state == "dead")

    @endpoints.post(_ALL)
    def add_webhook(form: Typed) -> Response:
        url = forms.line(form, "url")
        events = tuple(name for name in WEBHOOK_EVENTS if forms.flag(form, name))
        try:
            added = webhooks.add(canonical(url), events)
        except Invalid as refused:
            wrong = Field("url", value=url, fault=forms.fault_text(refused.code), focus=True)
            return page(wrong, refused, chosen=events)
        return page(secret=added.secrets[0])

    @endpoints.post(f"{_ALL}/rotate")
    def rotate(form: Typed) -> Response:
        return page(secret=webhooks.rotate(forms.line(form, "webhook_id")).secrets[0])

    @endpoints.post(f"{_ALL}/test")
    def test(form: Typed) -> Response:
        outbox.enqueue_test(forms.line(form, "webhook_id"))
        return pages.saved(_ALL, "tested")

    @endpoints.post(f"{_ALL}/remove")
    def remove(form: Typed) -> Response:
        webhooks.remove(forms.line(form, "webhook_id"))
        return pages.saved(_ALL, "removed")

    @endpoints.post(f"{_ALL}/redeliver")
    def redeliver(form: Typed) -> Response:
        outbox.deliver_again(forms.line(form, "delivery_id"))
        return pages.saved(_ALL, "again")

    def page(
        url: Field | None = None,
        refused: OporaError | None = None,
        *,
        chosen: tuple[str, ...] = (),
        secret: str = "",
        saved: str = "",
        dead: bool = False,
    ) -> Response:
        return pages.page(
            desk,
            "webhooks",
            "webhooks.html",
            refused,
            webhooks=webhooks.own(),
            url=url or Field("url", required=True),
            events=WEBHOOK_EVENTS,
            chosen=chosen,
            names=(*WEBHOOK_EVENTS, TEST_EVENT, *MAIL_EVENTS),
            secret=secret,
            saved=saved,
            dead=dead,
            fault_of=_fault,
            deliveries=outbox.latest(state="dead" if dead else None, limit=_SHOWN),
        )

    return endpoints


def _fault(delivery: Delivery) -> str:
    if delivery.webhook_id == outbox.MAIL:
        return chat_view.email_fault(delivery.fault, reader_locale())
    kind, _, status = delivery.fault.partition(" ")
    return text_or(delivery.fault, f"desk.settings.fault.{kind}", reader_locale(), code=status)
