"""Moves records from the spool to the database in the background."""

import logging
from collections.abc import Iterator, Sequence
from pathlib import Path
from time import monotonic

from sqlalchemy.exc import DataError, IntegrityError

from settings import Settings, get_settings
from tenants.accounts.registry import Registry
from tenants.audit import store
from tenants.audit.entry import Entry
from tenants.audit.shared_spool import SharedSpool
from tenants.audit.spool import Spool, read
from tenants.core.background_loop import Repeating, Rest
from tenants.core.batches import batches
from tenants.core.errors import Busy, Clash, Locked, TryAgain
from tenants.storage import database
from tenants.work import locks

log = logging.getLogger("opora.audit")

PACE = 0.25
"""Seconds between two transactions: a dozen turns share one when the service is busy."""

_MAX_PAUSE = 5.0
_SWEEP_SECONDS = 60.0
_BATCH = 64
"""Turns in one transaction: it holds SQLite's write lock for some 5 ms, and tickets wait for it."""

_REST_SECONDS = 2.0
"""Time for which a locked chain is left alone."""

_PATIENCE = 20.0
"""Seconds that `close` waits for a hanging database."""

_CARRYING = "~audit"
"""Name of the claim held by the process that moves shared records."""


class Recorder:
    """Records turns. `record` costs one write to a file and waits for no lock; the rest is done in the background.

    :param settings: the installation; that of the process by default.
    """

    def __init__(self, settings: Settings | None = None) -> None:
        self._settings = settings or get_settings()
        self.spool = Spool(self._settings.data_dir / "spool")
        self._shared = SharedSpool(self._settings)
        self._pending: list[Path] = []
        self._carrying = Repeating(self._carry, PACE)
        self._failures = 0
        self._locked_until: dict[str, float] = {}
        self._swept_at = float("-inf")

    def start(self) -> None:
        """Begin to store records, also those left by earlier processes."""
        self._carrying.start()

    def record(self, entry: Entry) -> None:
        """Record one turn. Once this returns, a crash of the process cannot lose it.

        Raises `TryAgain` with the code `not_recorded` if neither the spool nor the database can be written: an answer
        that cannot be found again must not be sent.
        """
        try:
            if not self._shared.append(entry):
                self.spool.append(entry)
        except OSError as error:
            log.error("the spool cannot be written: %s", type(error).__name__)
            try:
                store.append([entry], self._settings)
            except Exception as refused:
                log.critical("turn %s is not recorded: %s", entry.turn_id, type(refused).__name__)
                raise TryAgain("not_recorded") from refused
        self._carrying.wake()

    def collect(self) -> None:
        """Store the records left by earlier processes now. Only call it before `start`.

        Raises `TryAgain` if the database does not accept them.
        """
        self._pending = self.spool.abandoned_segments()
        if not self._store_pending() or self._locked_until:
            raise TryAgain

    def close(self) -> None:
        """Stop after one more attempt; records that the database refuses stay in the spool for the next start."""
        if not self._carrying.close(_PATIENCE):
            log.error("the database hangs, records stay in the spool")
            return
        self._store_pending()
        self.spool.cut()

    def _carry(self) -> float:
        if monotonic() - self._swept_at >= _SWEEP_SECONDS:
            self._swept_at = monotonic()
            self._pending += [path for path in self.spool.abandoned_segments() if path not in self._pending]
        if not self._store_pending():
            return Rest(min(PACE * 2.0**self._failures, _MAX_PAUSE))
        return _REST_SECONDS if self._locked_until else _SWEEP_SECONDS

    def _store_pending(self) -> bool:
        now = monotonic()
        self._locked_until = {tenant_id: until for tenant_id, until in self._locked_until.items() if until > now}
        try:
            if self._pending:
                self.spool.force()
            elif (cut := self.spool.cut()) is not None:
                self._pending.append(cut)
            while self._pending:
                self._store_segment(self._pending[0])
                self._pending.pop(0).unlink(missing_ok=True)
            self._store_shared()
        except Exception as error:
            # The records are safe in the spool after any error, and the step must not raise.
            if not self._failures:
                log.error("the audit is not written, records wait in the spool: %s", type(error).__name__)
            self._failures += 1
            return False
        if self._failures:
            log.warning("the audit is written again")
        self._failures = 0
        return True

    def _store_shared(self) -> None:
        """Store the records spooled by any replica, unless another replica is doing that."""
        if not database.is_shared(self._settings):
            return
        try:
            with locks.holding(_CARRYING, patience=0):
                last = ""
                while lines := self._shared.first(_BATCH, after=last):
                    last = lines[-1].spooled_id
                    for one in lines:
                        if one.entry is None:
                            log.critical("a record of %d bytes is put aside: it cannot be read", len(one.line))
                            self.spool.quarantine(one.line)
                    locked = self._store_batch([one.entry for one in lines if one.entry is not None])
                    self._shared.remove(
                        [one for one in lines if one.entry is None or one.entry.tenant_id not in locked]
                    )
        except Busy:
            # The other one may just have ended.
            self._carrying.wake()

    def _store_segment(self, path: Path) -> None:
        if not path.exists():
            return
        for batch in batches(self._entries(path), _BATCH):
            locked = self._store_batch(batch)
            for entry in batch:
                if entry.tenant_id in locked:
                    self.spool.append(entry)

    def _store_batch(self, batch: Sequence[Entry]) -> set[str]:
        """Store records of any tenants. Returns the tenants whose chains are locked, so that theirs have to wait."""
        tenants = dict.fromkeys(entry.tenant_id for entry in batch)
        for tenant_id in [one for one in tenants if one not in self._locked_until]:
            try:
                self._store(tenant_id, [entry for entry in batch if entry.tenant_id == tenant_id])
            except Locked:
                self._locked_until[tenant_id] = monotonic() + _REST_SECONDS
        return self._locked_until.keys() & tenants

    def _entries(self, path: Path) -> Iterator[Entry]:
        for entry, line in read(path):
            if entry is not None:
                yield entry
            else:
                log.warning("%s holds a line that was cut short: %d bytes", path.name, len(line))

    def _store(self, tenant_id: str, entries: list[Entry]) -> None:
        try:
            store.append(entries, self._settings)
        except (Clash, DataError, IntegrityError) as refused:
            if len(entries) > 1:
                for entry in entries:
                    self._store(tenant_id, [entry])
                return
            if tenant_id not in {tenant.tenant_id for tenant in Registry(self._settings).list()}:
                log.warning("turn %s is not recorded: its tenant was removed", entries[0].turn_id)
                return
            log.critical("turn %s is put aside: %s", entries[0].turn_id, type(refused).__name__)
            self.spool.quarantine(entries[0].line())
