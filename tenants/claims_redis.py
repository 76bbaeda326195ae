"""Claims in Redis or Valkey, for processes on several machines: a key that expires unless its process renews it."""

import logging
from secrets import token_hex
from threading import Event, Lock, Thread
from time import monotonic

from redis import Redis
from redis.exceptions import RedisError

from tenants.errors import TryAgain

LEASE_SECONDS = 30
_RENEW_SECONDS = 5
_TIMEOUT_SECONDS = 5
_PREFIX = "opora:ingest:"
_PENDING = float("-inf")
"""In place of the moment until which a claim holds, while Redis is asked for it."""

# One's own key only: after a pause longer than the lease it may be somebody else's.
_RENEW = "return redis.call('get', KEYS[1]) == ARGV[1] and redis.call('pexpire', KEYS[1], ARGV[2]) or 0"
_RELEASE = "return redis.call('get', KEYS[1]) == ARGV[1] and redis.call('del', KEYS[1]) or 0"

log = logging.getLogger("opora.claims")


class RedisClaims:
    """Claims among all processes that use one Redis. A claim lost to a long pause or to Redis itself is noticed within
    `_RENEW_SECONDS`, at the end of the batch in work; what two processes wrote meanwhile is put right by reconciling.

    :param url: `redis://`, `rediss://` or `unix://`.
    :param lease_seconds: how long a claim outlives a process that ended without giving it back.
    """

    def __init__(self, url: str, lease_seconds: float = LEASE_SECONDS) -> None:
        self._redis = Redis.from_url(url, socket_timeout=_TIMEOUT_SECONDS, socket_connect_timeout=_TIMEOUT_SECONDS)
        self._lease = int(lease_seconds * 1_000)
        self._owner = token_hex(16)
        self._held: dict[str, float] = {}
        self._lock = Lock()
        self._closing = Event()
        self._renewing = Thread(target=self._renew_all, name="claims", daemon=True)
        self._renewing.start()

    def take(self, name: str) -> bool:
        """Claim a name. False when somebody has it. Raises `TryAgain` when Redis cannot be reached."""
        # The lock is for the table alone: Redis may take seconds, and other tenants' claims must not wait for that.
        with self._lock:
            if name in self._held:
                return False
            self._held[name] = _PENDING
        started, acquired = monotonic(), False
        try:
            acquired = bool(self._redis.set(_PREFIX + name, self._owner, nx=True, px=self._lease))
        except RedisError as failed:
            raise TryAgain("claims_unreachable") from failed
        finally:
            with self._lock:
                if acquired:
                    self._held[name] = started + self._lease / 1_000
                else:
                    del self._held[name]
        return acquired

    def holds(self, name: str) -> bool:
        """Whether the claim is still this process's: renewed in time, and not found in other hands."""
        return monotonic() < self._held.get(name, float("-inf"))

    def release(self, name: str) -> None:
        """Give a claim back."""
        with self._lock:
            self._held.pop(name, None)
        try:
            self._redis.eval(_RELEASE, 1, _PREFIX + name, self._owner)
        except RedisError:
            log.warning("a claim was not given back; it ends by itself")

    def close(self) -> None:
        """Give all claims back."""
        self._closing.set()
        self._renewing.join()
        for name in tuple(self._held):
            self.release(name)
        self._redis.close()

    def _renew_all(self) -> None:
        while not self._closing.wait(min(_RENEW_SECONDS, self._lease / 3_000)):
            for name in tuple(self._held):
                self._renew(name)

    def _renew(self, name: str) -> None:
        until = self._held.get(name, _PENDING)
        if until == _PENDING:
            return
        started = monotonic()
        try:
            renewed = bool(self._redis.eval(_RENEW, 1, _PREFIX + name, self._owner, self._lease))
        except RedisError:
            # Until the lease is over nobody else can have the claim, and Redis may be back before.
            log.warning("a claim cannot be renewed now")
            return
        with self._lock:
            if self._held.get(name) != until:
                return  # given back meanwhile
            if renewed:
                self._held[name] = started + self._lease / 1_000
            else:
                del self._held[name]
                log.warning("a claim was lost")
