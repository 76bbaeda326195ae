"""Damaged indexes, found when the service starts and while it serves, and written anew from the kept texts."""

import logging

from pipelines.ingest.library import Library
from pipelines.worker import Worker
from tenants import index
from tenants.accounts.registry import Registry
from tenants.core import fairness
from tenants.core.context import Tenant, acting_as
from tenants.core.errors import TryAgain, trail
from tenants.storage import database

log = logging.getLogger("opora.mending")

_ROUND_SECONDS = 600.0
_RETRY_SECONDS = 60.0


class Mender(Worker):
    """Looks at every tenant's index at the start, whenever one is found damaged, and every ten minutes.

    :param library: writes documents from their kept texts.
    """

    def __init__(self, library: Library) -> None:
        super().__init__("mending", _ROUND_SECONDS, at_once=True, after_fault=_RETRY_SECONDS, wake=index.damage_noticed)
        self._library = library
        self._verified = False

    def mend_all(self) -> bool:
        """Look at every tenant once. Returns whether all indexes are whole now."""
        healthy = True
        for tenant in Registry().list():
            if self.closing.is_set():
                return False
            fairness.yield_to_questions()
            healthy &= self._mend(tenant.tenant_id)
        return healthy

    def work(self) -> float | None:
        if not self._verified:
            self._verified = True
            self._verify_records()
        return None if self.mend_all() else _RETRY_SECONDS

    def _mend(self, tenant_id: str) -> bool:
        try:
            with acting_as(Tenant(tenant_id, "mending")):
                damage = index.damage()
                if damage is None:
                    return True
                findings = self._library.check(mend=True)
        except TryAgain as busy:
            log.warning("the index of %r is left for later: %s", tenant_id, busy.code)
        except Exception as error:
            log.error("the index of %r: %s", tenant_id, trail(error))
        else:
            log.warning("the index of %r was %s and holds %d chunks again", tenant_id, damage, findings.chunks)
            return True
        return False

    def _verify_records(self) -> None:
        try:
            database.verify()
        except Exception as error:
            log.error("the records: %s", trail(error))
