"""Damaged indexes, found when the service starts and while it serves, and written anew from the kept texts."""

import logging
from threading import Event, Thread

from pipelines.ingest.library import Library
from tenants import index
from tenants.accounts.registry import Registry
from tenants.core import fairness
from tenants.core.context import Tenant, acting_as
from tenants.core.errors import TryAgain, trail
from tenants.storage import database

log = logging.getLogger("opora.mending")

_GRACE_SECONDS = 10.0
_ROUND_SECONDS = 600.0
_RETRY_SECONDS = 60.0


class Mender:
    """Looks at every tenant's index at the start, whenever one is found damaged, and every ten minutes.

    :param library: writes documents from their kept texts.
    """

    def __init__(self, library: Library) -> None:
        self._library = library
        self._closing = Event()
        self._thread = Thread(target=self._run, name="mending", daemon=True)

    def warm_up(self) -> None:
        """Begin."""
        self._thread.start()

    def close(self) -> None:
        """Finish the index in work, or leave a large one: the next start finds what it lacks."""
        self._closing.set()
        index.damage_noticed.set()
        if self._thread.is_alive():
            self._thread.join(_GRACE_SECONDS)

    def mend_all(self) -> bool:
        """Look at every tenant once. Returns whether all indexes are whole now."""
        healthy = True
        for tenant in Registry().list():
            if self._closing.is_set():
                return False
            fairness.yield_to_questions()
            healthy &= self._mend(tenant.tenant_id)
        return healthy

    def _run(self) -> None:
        self._verify_records()
        while not self._closing.is_set():
            try:
                healthy = self.mend_all()
            except Exception as error:
                # The database may be away for a while.
                log.error("mending: %s", trail(error))
                healthy = False
            index.damage_noticed.wait(_ROUND_SECONDS if healthy else _RETRY_SECONDS)
            # Here, before the look at `_closing`: what `close` says must not be cleared unheard.
            index.damage_noticed.clear()

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
