"""Delivery of the outbox: chat events to the tenants' webhooks (signed by `webhook_signing`), and e-mails (`outgoing`).

Deliveries to one receiver are sequential, to different receivers parallel: a hanging receiver delays only itself. After
three requests in a row without an answer, it gets none for a minute. A tenant has a share of the threads, and e-mails
have their own: a mail server that does not answer would hold those of all tenants. A failed delivery is retried under
the same id for more than a day, then marked dead until an operator resends it. A receiver in the internal network is
reached only if `OPORA_TOOL_NETWORKS` lists the network.
"""

import logging
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Event, Lock

from components.ingest.fetch import Fetcher, is_permitted
from components.models.breaker import Breaker
from pipelines.ask.chats import outgoing
from tenants.chats import outbox, webhooks
from tenants.chats.outbox import Delivery
from tenants.chats.webhook_signing import signed_headers
from tenants.core.context import Tenant, acting_as
from tenants.core.errors import NotFound, OporaError, trail

log = logging.getLogger("opora.webhooks")

SECONDS = 15.0
"""Time limit of one delivery, from the connection to the end of the answer."""

WORKERS, MAIL_WORKERS = 16, 4
TENANT_WORKERS = 4
FAILURES, REST_SECONDS = 3, 60.0
_MAX_RESPONSE_BYTES = 64_000


class WebhookDelivery:
    """Sends due deliveries in background threads.

    :param permitted: returns whether an IP address may be connected to. Only tests override the settings.
    """

    def __init__(
        self,
        *,
        permitted: Callable[[str], bool] = is_permitted,
        seconds: float = SECONDS,
        rest_seconds: float = REST_SECONDS,
    ) -> None:
        self._fetcher = Fetcher(permitted=permitted, seconds=seconds, largest=_MAX_RESPONSE_BYTES)
        self._rest_seconds = rest_seconds
        self._busy: set[tuple[str, str]] = set()
        self._breakers: dict[tuple[str, str], Breaker] = {}
        self._lock, self._starting = Lock(), Lock()
        self._closing = Event()
        self._pool = ThreadPoolExecutor(WORKERS + MAIL_WORKERS, thread_name_prefix="webhook")

    def close(self) -> None:
        """Begin no further delivery. One in progress that does not end in time is made again by the next process."""
        self._closing.set()
        self._pool.shutdown(wait=False, cancel_futures=True)

    def deliver(self, delivery: Delivery) -> None:
        with acting_as(Tenant(delivery.tenant_id, "webhooks")):
            if delivery.webhook_id == outbox.MAIL:
                outgoing.deliver(delivery)
                return
            key = (delivery.tenant_id, delivery.webhook_id)
            try:
                webhook = webhooks.get(delivery.webhook_id)
            except NotFound:
                with self._lock:
                    self._breakers.pop(key, None)
                return
            headers = signed_headers(delivery.delivery_id, delivery.body, webhook.secrets)
            with self._lock:
                breaker = self._breakers.setdefault(key, Breaker(FAILURES, self._rest_seconds))
            try:
                with breaker.call():
                    answer = self._fetcher.post(webhook.url, delivery.body.encode(), headers)
                fault = "" if 200 <= answer.status < 300 else f"status {answer.status}"
            except OporaError as error:
                fault = error.code
            outbox.settle(delivery, fault=fault)

    def start_due(self) -> None:
        """Begin what is due for receivers that nothing is being sent to."""
        with self._starting:
            for mail in (False, True):
                while not self._closing.is_set() and self._start_some(mail=mail):
                    pass

    def _start_some(self, *, mail: bool) -> int:
        with self._lock:
            busy = {key for key in self._busy if (key[1] == outbox.MAIL) == mail}
            resting = {key for key, breaker in self._breakers.items() if breaker.is_resting}
        full = {tenant_id for tenant_id, count in Counter(key[0] for key in busy).items() if count >= TENANT_WORKERS}
        free = (MAIL_WORKERS if mail else WORKERS) - len(busy)
        due = outbox.claim(free, mail=mail, webhooks=busy | resting, tenants=full) if free else ()
        for delivery in due:
            with self._lock:
                self._busy.add((delivery.tenant_id, delivery.webhook_id))
            self._pool.submit(self._work, delivery)
        return len(due)

    def _work(self, delivery: Delivery) -> None:
        try:
            self.deliver(delivery)
        except Exception as error:
            # Its lease runs out, and it is sent again.
            log.error("delivery %s: %s", delivery.delivery_id, trail(error))
        finally:
            with self._lock:
                self._busy.discard((delivery.tenant_id, delivery.webhook_id))
        self._start_more()

    def _start_more(self) -> None:
        try:
            self.start_due()
        except Exception as error:
            log.error("webhooks: %s", trail(error))
