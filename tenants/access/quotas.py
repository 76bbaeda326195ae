"""Rate limits per person: in this process, or shared by all replicas if Redis is configured."""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from math import ceil
from time import monotonic, time

from limits import RateLimitItem, RateLimitItemPerDay, RateLimitItemPerMinute
from limits.aio.storage import RedisStorage
from limits.aio.strategies import FixedWindowRateLimiter, MovingWindowRateLimiter
from redis import Redis
from redis.asyncio import ConnectionPool
from redis.exceptions import RedisError

from settings import Settings
from tenants.accounts import policy
from tenants.core import context
from tenants.core.context import Tenant
from tenants.core.errors import RateLimited, TryAgain

_MINUTE = 60.0
_DAY = 86_400.0
_SWEEP_EVERY = 1_024
_REDIS_SECONDS = 0.5
_REDIS_REST_SECONDS = 30.0
_PREFIX = "opora:limits"

log = logging.getLogger("opora.quotas")


class RateLimiter:
    """Bounds calls per tenant and subject: never more than the limit within any 60 seconds, nor in a day.

    A person's day begins with their first call and lasts 24 hours. The tenant's policy overrides the settings; 0 means
    no limit. A refused call does not count.

    Calls are counted in Redis if its URL is set. While Redis is down, each process counts alone: several replicas then
    allow several times as many calls, which is better than refusing all of them.

    :param settings: the installation's limits.
    :param clock: monotonic seconds for the counts of this process.
    """

    def __init__(self, settings: Settings, clock: Callable[[], float] = monotonic) -> None:
        self._settings = settings
        self._local = _LocalUsage(clock)
        url = settings.redis_url.get_secret_value()
        self._shared = _SharedUsage(url) if url else None
        self._shared_from = float("-inf")

    async def admit(self) -> None:
        """Count one call of the tenant and subject in context. Raises `RateLimited` with the seconds to wait."""
        caller = context.current()
        per_minute, per_day = limits(await policy.load(), self._settings)
        if not per_minute and not per_day:
            return
        wait = await self._wait(caller, per_minute, per_day)
        if wait is not None:
            raise RateLimited(max(1, ceil(wait)))

    async def admit_each(self, per_minute: Mapping[str, int]) -> None:
        """Count one call under each of these names, of the tenant in context, within its limit; 0: no limit."""
        caller = context.current()
        for name, limit in per_minute.items():
            wait = await self._wait(replace(caller, subject=f"\0{name}"), limit, 0) if limit else None
            if wait is not None:
                raise RateLimited(max(1, ceil(wait)))

    async def close(self) -> None:
        """Close the connections to Redis."""
        if self._shared is not None:
            await self._shared.close()

    async def _wait(self, caller: Tenant, per_minute: int, per_day: int) -> float | None:
        if self._shared is not None and monotonic() >= self._shared_from:
            try:
                async with asyncio.timeout(_REDIS_SECONDS):
                    return await self._shared.count(caller, per_minute, per_day)
            except (RedisError, TimeoutError, OSError) as failed:
                self._shared_from = monotonic() + _REDIS_REST_SECONDS
                log.warning("rate limits are not shared for %.0f s: %s", _REDIS_REST_SECONDS, type(failed).__name__)
        return self._local.count(caller, per_minute, per_day)


class RefusalLimiter:
    """Limits the refused bodies of a caller in this process, which has to parse them.

    :param per_minute: refused bodies; 0: unlimited.
    """

    def __init__(self, per_minute: int) -> None:
        self._per_minute = per_minute
        self._local = _LocalUsage(monotonic)

    def check(self, caller: Tenant) -> None:
        """Raise `RateLimited` when too many bodies of the caller were refused lately."""
        wait = self._local.wait(caller, self._per_minute, 0)
        if wait is not None:
            raise RateLimited(max(1, ceil(wait)))

    def count(self, caller: Tenant) -> None:
        """Count a refused body."""
        self._local.count(caller, self._per_minute, 0)


def limits(chosen: policy.Policy, settings: Settings) -> tuple[int, int]:
    """Return the allowed questions per minute and day, from the policy or the installation; 0: no limit."""
    minute, day = chosen.rate_limit_per_minute, chosen.rate_limit_per_day
    return (
        settings.rate_limit_per_minute if minute is None else minute,
        settings.rate_limit_per_day if day is None else day,
    )


def forget(subjects: Iterable[str], settings: Settings) -> None:
    """Delete Redis' counts of these people of the tenant in context; they would expire within a day.

    :raises TryAgain: Redis does not respond.
    """
    url = settings.redis_url.get_secret_value()
    if not url:
        return
    tenant_id = context.current().tenant_id
    people = {Tenant(tenant_id, subject).key("limits") for subject in subjects}
    try:
        with Redis.from_url(url, decode_responses=True) as client:
            for key in client.scan_iter(f"{_PREFIX}*", count=1_000):
                if any(part in people for part in key.split("/")):
                    client.delete(key)
    except RedisError as failed:
        raise TryAgain("limits_unreachable") from failed


class _SharedUsage:
    """Calls counted in Redis by `limits`, whose scripts count atomically."""

    def __init__(self, url: str) -> None:
        self._pool = ConnectionPool.from_url(url)
        storage = RedisStorage(
            "async+redis://",
            implementation="redispy",
            key_prefix=_PREFIX,
            connection_pool=self._pool,  # type: ignore[arg-type]  # documented, but not in the annotation
        )
        self._minute = MovingWindowRateLimiter(storage)
        self._day = FixedWindowRateLimiter(storage)

    async def count(self, caller: Tenant, per_minute: int, per_day: int) -> float | None:
        """Count a call. When it is one too many: the seconds until the next may pass, and it does not count."""
        # Hashed, so that no id can be mistaken for another, or for a part of the key.
        person = caller.key("limits")
        minute, day = RateLimitItemPerMinute(per_minute), RateLimitItemPerDay(per_day)
        # Looked at first: a call that the day refuses must not use up the minute.
        if per_day and not await self._day.test(day, person):
            return await self._remaining(self._day, day, person)
        if per_minute and not await self._minute.hit(minute, person):
            return await self._remaining(self._minute, minute, person)
        if per_day and not await self._day.hit(day, person):
            return await self._remaining(self._day, day, person)
        return None

    async def close(self) -> None:
        """Close the connections."""
        await self._pool.disconnect()

    async def _remaining(
        self, limiter: FixedWindowRateLimiter | MovingWindowRateLimiter, item: RateLimitItem, person: str
    ) -> float:
        return (await limiter.get_window_stats(item, person)).reset_time - time()


@dataclass(slots=True)
class _Usage:
    """A person's recent calls: times within the last minute, and the count since the day began."""

    minute: deque[float] = field(default_factory=deque)
    day_began: float = float("-inf")
    day_calls: int = 0


class _LocalUsage:
    """Call counts of this process, for the event loop only; a count takes microseconds.

    The memory storages of `limits` (5.8) scan all entries after each call: with 2,000 people that took 2 ms of CPU
    and a thread (`storage.memory`), or 79 ms (`aio.storage.memory`).
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        # Hashed, because a name may hold a path of 64 kB that a client made up.
        self._usage: dict[str, _Usage] = {}
        self._calls = 0

    def count(self, caller: Tenant, per_minute: int, per_day: int) -> float | None:
        """Count a call. If it exceeds a limit, do not count it and return the seconds until the next allowed call."""
        now = self._clock()
        self._sweep(now)
        usage = self._usage.setdefault(caller.key("limits"), _Usage())
        wait = self.wait(caller, per_minute, per_day)
        if wait is None:
            usage.minute.append(now)
            usage.day_calls += bool(per_day)
        return wait

    def wait(self, caller: Tenant, per_minute: int, per_day: int) -> float | None:
        """Return the seconds until a call may pass; None: now."""
        now = self._clock()
        usage = self._usage.get(caller.key("limits"))
        if usage is None:
            return None
        _roll_over(usage, now)
        waits = []
        if per_day and usage.day_calls >= per_day:
            waits.append(usage.day_began + _DAY - now)
        if per_minute and len(usage.minute) >= per_minute:
            waits.append(usage.minute[-per_minute] + _MINUTE - now)
        return max(waits, default=None)

    def _sweep(self, now: float) -> None:
        """Delete expired entries from time to time, so that memory is bounded by the people of a day.

        A visitor can make up names without end, of which only those of a minute stay.
        """
        self._calls += 1
        if self._calls % _SWEEP_EVERY == 0:
            over = [key for key, usage in self._usage.items() if _is_over(usage, now)]
            for key in over:
                del self._usage[key]


def _is_over(usage: _Usage, now: float) -> bool:
    _roll_over(usage, now)
    return not usage.minute and not usage.day_calls


def _roll_over(usage: _Usage, now: float) -> None:
    while usage.minute and now - usage.minute[0] >= _MINUTE:
        usage.minute.popleft()
    if now - usage.day_began >= _DAY:
        usage.day_began, usage.day_calls = now, 0
