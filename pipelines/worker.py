"""Background threads of the service."""

import logging
from threading import Event, Thread

from tenants.core.errors import trail

log = logging.getLogger("opora.worker")


class Worker:
    """A thread that works in rounds until it is closed. A round that fails is logged, and the next one follows:
    the database may be away for a while.

    :param name: of the thread, also in the log.
    :param pause: seconds between two rounds.
    :param at_once: whether the first round begins at the start, not after a pause.
    :param after_fault: seconds after a failed round; as `pause` if None.
    :param grace: seconds that `close` waits for the round in work; None: as long as it takes.
    :param wake: ends a pause when it is set.
    """

    def __init__(
        self,
        name: str,
        pause: float,
        *,
        at_once: bool = False,
        after_fault: float | None = None,
        grace: float | None = 10.0,
        wake: Event | None = None,
    ) -> None:
        self._pause, self._after_fault, self._grace = pause, after_fault, grace
        self._first_pause = 0.0 if at_once else None
        self.wake = wake or Event()
        self.closing = Event()
        self._thread = Thread(target=self._rounds, name=name, daemon=True)

    def work(self) -> float | None:
        """Work one round. Returns the seconds until the next one; None: the usual pause."""
        raise NotImplementedError

    def finish(self) -> None:
        """Do what is left after the last round."""

    def pause(self) -> float:
        """Return the usual pause from now on."""
        return self._pause

    def warm_up(self) -> None:
        """Begin."""
        self._thread.start()

    def close(self) -> None:
        """Begin no further round, and wait for the one in work."""
        self.closing.set()
        self.wake.set()
        if self._thread.is_alive():
            self._thread.join(self._grace)

    def _rounds(self) -> None:
        pause = self._first_pause
        while not self._closed_after(self.pause() if pause is None else pause):
            try:
                pause = self.work()
            except Exception as error:
                log.error("%s: %s", self._thread.name, trail(error))
                pause = self._after_fault
        self.finish()

    def _closed_after(self, seconds: float) -> bool:
        self.wake.wait(seconds)
        # Before the look at `closing`: what `close` says must not be cleared unheard.
        self.wake.clear()
        return self.closing.is_set()
