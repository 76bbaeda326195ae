"""`GET /metrics` for Prometheus: what the service does, as numbers that name no tenant, person or document.

Open only with the token of `OPORA_METRICS_TOKEN`, which belongs to no tenant; without it the route does not exist.
Labels come from fixed sets, so that no caller can create series. Turns and steps are counted in this process;
jobs, gaps, deliveries and chats are counted in the database, which replicas share, at most every ten seconds.
"""

import hmac
from collections.abc import Callable, Iterator, Mapping
from time import monotonic

from fastapi import Request, Response
from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    PlatformCollector,
    ProcessCollector,
    generate_latest,
)
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from components.models import breaker
from pipelines.routes import OpenRouter, opens
from pipelines.turn_counters import REGISTRY
from settings import Settings
from tenants import index
from tenants.core.errors import OporaError, Unauthenticated
from tenants.insight import totals
from tenants.storage import cache

PATH = "/metrics"
_FRESH_SECONDS = 10.0

ProcessCollector(registry=REGISTRY)
PlatformCollector(registry=REGISTRY)


class _Now(Collector):
    """Current values at the time of a scrape.

    :param waiting: returns the number of running and queued questions.
    """

    def __init__(self, waiting: Callable[[], int]) -> None:
        self._waiting = waiting
        self._counted: dict[str, dict[str, int]] = {}
        self._counted_at = float("-inf")

    def collect(self) -> Iterator[Metric]:
        yield _gauge("opora_questions_waiting", "Questions taken in and not answered yet.", self._waiting())
        yield _gauge(
            "opora_breakers_open",
            "Providers that are paused, for all tenants or one.",
            breaker.open_now(),
        )
        yield _gauge("opora_indexes_damaged", "Indexes found damaged that are not repaired yet.", index.damaged())
        counts = self._counts()
        yield _gauge("opora_database_up", "Whether the records can be read.", int(counts is not None))
        for name, (about, label) in _COUNTED.items():
            family = GaugeMetricFamily(f"opora_{name}", about, labels=[label])
            for value, count in (counts or {}).get(name, {}).items():
                family.add_metric([value], count)
            yield family
        yield from _caches()

    def _counts(self) -> dict[str, dict[str, int]] | None:
        if monotonic() - self._counted_at >= _FRESH_SECONDS:
            try:
                self._counted = totals.by_state()
            except OporaError:
                return None
            self._counted_at = monotonic()
        return self._counted


_COUNTED: Mapping[str, tuple[str, str]] = {
    "tenants": ("Tenants.", "state"),
    "jobs": ("Jobs of ingestion by state; ended ones are kept for a week.", "state"),
    "gaps": ("Gaps of knowledge by status.", "status"),
    "deliveries": ("Events for webhooks by state; ended ones are kept for a month.", "state"),
    "chats": ("Chats by state.", "state"),
}


def _caches() -> Iterator[Metric]:
    requests = CounterMetricFamily("opora_cache_requests", "Look-ups in a cache.", labels=["cache", "result"])
    size = GaugeMetricFamily("opora_cache_size", "Size of a cache: entries, bytes of the lexicons.", labels=["cache"])
    for one in cache.named():
        requests.add_metric([one.name, "hit"], one.hits)
        requests.add_metric([one.name, "miss"], one.misses)
        size.add_metric([one.name], one.size)
    yield requests
    yield size


def _gauge(name: str, about: str, value: float) -> Metric:
    return GaugeMetricFamily(name, about, value=value)


def router(settings: Settings, waiting: Callable[[], int]) -> OpenRouter:
    made, now, token = OpenRouter(None, tags=["health"]), CollectorRegistry(), settings.metrics_token.get_secret_value()
    now.register(_Now(waiting))

    @made.get(PATH)
    @opens(probe=True)
    def metrics(request: Request) -> Response:
        """Metrics in the text format of Prometheus."""
        scheme, _, given = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not hmac.compare_digest(given.strip().encode(), token.encode()):
            raise Unauthenticated("token_invalid" if given else "token_missing")
        return Response(generate_latest(REGISTRY) + generate_latest(now), media_type=CONTENT_TYPE_LATEST)

    return made
