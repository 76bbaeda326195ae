"""Timed changes of chats: snoozed chats return, chats that no operator takes go back to the assistant."""

import logging
from datetime import UTC, datetime, timedelta
from threading import Event

from components.language.texts import text
from pipelines.ask.staffing import sentence
from tenants.accounts import policy
from tenants.chats import sites, timeouts
from tenants.chats.records import Chat
from tenants.core.context import working_for

log = logging.getLogger("opora.chats")


def sweep(closing: Event, now: datetime | None = None) -> None:
    """Do what is due in the chats of all tenants, which take turns; in each round, also what is due since the last."""
    more_due = True
    while more_due:
        moment = now or datetime.now(UTC)
        more_due = False
        for tenant_id in timeouts.tenants_due(moment):
            if closing.is_set():
                return
            with working_for(tenant_id, "clock"):
                more_due = _sweep_tenant(moment) or more_due


def _still_open(chat: Chat) -> str:
    when = sentence(sites.hours(chat.site), chat.locale)
    return text("chats.queue_timed_out", chat.locale, when=when)


def _sweep_tenant(now: datetime) -> bool:
    """Do what is due in a tenant's chats, up to `DUE_AT_ONCE` of each kind; return whether more may be due."""
    woken = timeouts.wake_up(now)
    minutes = policy.current().queue_minutes
    timed_out = timeouts.give_up_waiting(now - timedelta(minutes=minutes), _still_open) if minutes else ()
    if woken or timed_out:
        log.info("chats: %d woken, %d returned to the assistant", len(woken), len(timed_out))
    return timeouts.DUE_AT_ONCE in (len(woken), len(timed_out))
