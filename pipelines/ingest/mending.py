"""Damaged indexes, found when the service starts and while it serves, and written anew from the kept texts."""

import logging
from threading import Event

from pipelines.ingest.library import Library
from tenants import index
from tenants.accounts.registry import Registry
from tenants.core import fairness
from tenants.core.context import Tenant, acting_as
from tenants.core.errors import TryAgain, trail
from tenants.storage import database

log = logging.getLogger("opora.mending")

_RETRY_SECONDS = 60.0


class Mender:
    """Looks at every tenant's index.

    :param library: writes documents from their kept texts.
    """

    def __init__(self, library: Library) -> None:
        self._library = library
        self._verified = False

    def mend_all(self, closing: Event) -> bool:
        """Look at every tenant once. Returns whether all indexes are whole now.

        :param closing: set when the process stops.
        """
        healthy = True
        for tenant in Registry().list():
            if closing.is_set():
                return False
            fairness.yield_to_questions()
            healthy &= self._mend(tenant.tenant_id)
        return healthy

    def run(self, closing: Event) -> float | None:
        """Look at every tenant, and verify the records the first time.

        :returns: the seconds until the next look, if it is due earlier because an index is still damaged.
        """
        if not self._verified:
            self._verified = True
            self._verify_records()
        return None if self.mend_all(closing) else _RETRY_SECONDS

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
