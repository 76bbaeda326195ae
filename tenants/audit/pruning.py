"""Retention of the audit: each tenant's outdated turns are dropped daily."""

import logging
from datetime import UTC, datetime, timedelta
from threading import Event

from settings import Settings
from tenants.accounts import policy
from tenants.accounts.registry import Registry
from tenants.audit import store
from tenants.core.context import working_for

log = logging.getLogger("opora.audit")


def prune(settings: Settings, closing: Event) -> None:
    """Drop the outdated turns of all tenants. A tenant whose turns cannot be dropped does not keep the others'.

    :param closing: set when the process stops.
    """
    now = datetime.now(UTC)
    for tenant in Registry(settings).list():
        if closing.is_set():
            return
        before = now - timedelta(days=policy.of(tenant).audit_days or settings.audit_days)
        with working_for(tenant.tenant_id, store.SUBJECT):
            if dropped := store.prune(before, settings):
                log.info("tenant=%r: %d audit records pruned", tenant.tenant_id, dropped)
