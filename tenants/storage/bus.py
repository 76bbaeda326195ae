"""Notices between the processes of an installation, over Redis' publish and subscribe.

A notice only says what to reload, and no correctness depends on it: a lost one costs time only. Without Redis, or while
it is away, values are fresh by time (`tenants.storage.cache`), and readers of chats reload them when it is back.
"""

import json
import logging
from collections.abc import Callable
from dataclasses import dataclass
from secrets import token_hex
from threading import Lock
from time import monotonic, sleep

from redis import Redis, RedisError
from redis.client import PubSub, PubSubWorkerThread

from settings import Settings, get_settings
from tenants.core.errors import OporaError, trail
from tenants.storage import redis_server

log = logging.getLogger("opora.bus")

LIVE_SECONDS = 3.0
"""Longest silence of Redis, which is asked for a sign of life all the time, before notices count as missed."""
_PING_SECONDS = 0.5
_RECONNECT_SECONDS = 1.0
_ALL = "*"
"""Channel of a process that could not send some notices: all handlers of the others may have missed some."""


@dataclass(frozen=True, slots=True)
class _Handler:
    """Callbacks for the notices of a channel: `take` for each, `missed` when some may have been lost."""

    take: Callable[[str], None]
    missed: Callable[[], None]


_HANDLERS: dict[str, _Handler] = {}
_LINKS: dict[str, "_Link"] = {}
_LOCK = Lock()


def on(channel: str, take: Callable[[str], None], missed: Callable[[], None]) -> None:
    """Handle the notices of a channel, in the listener's thread. Called when a module is imported."""
    _HANDLERS[channel] = _Handler(take, missed)


def publish(channel: str, payload: str, settings: Settings | None = None) -> None:
    """Notify all other processes, after the change is committed."""
    settings = settings or get_settings()
    if is_shared(settings):
        _link(settings).publish(channel, payload)


def is_shared(settings: Settings | None = None) -> bool:
    """Return whether notices go to other processes."""
    return redis_server.is_configured(settings or get_settings())


def listen(settings: Settings | None = None) -> None:
    """Listen from now on, if there may be other processes."""
    settings = settings or get_settings()
    if is_shared(settings):
        _link(settings).listen()


def is_live(database: str) -> bool:
    """Return whether this process hears of every change of a database, given by its URL, as it happens."""
    link = _LINKS.get(database)
    return link is not None and link.is_live()


def close_all() -> None:
    """Stop listening, and close all connections to Redis."""
    with _LOCK:
        links = list(_LINKS.values())
        _LINKS.clear()
    for link in links:
        link.close()
    redis_server.close_all()


def _link(settings: Settings) -> "_Link":
    with _LOCK:
        if settings.database not in _LINKS:
            _LINKS[settings.database] = _Link(settings)
        return _LINKS[settings.database]


class _Link:
    """A process's end of the bus: sends notices, and receives those of others."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._sender = token_hex(8)
        self._lock = Lock()
        self._listening: PubSubWorkerThread | None = None
        self._heard_at = float("-inf")
        self._resting_until = float("-inf")
        self._unsent = False

    def publish(self, channel: str, payload: str) -> None:
        """Send a notice to all other processes, or tell them later that they have missed some."""
        is_away = self._listening is not None and not self.is_live()
        if is_away or monotonic() < self._resting_until:
            self._unsent = True
            return
        try:
            redis_server.client(self._settings).publish(self.topic, json.dumps([self._sender, channel, payload]))
        except (RedisError, OporaError) as failed:
            self._unsent, self._resting_until = True, monotonic() + _RECONNECT_SECONDS
            # The change itself is stored, and seen without the notice, too, if later.
            log.warning("a notice is not sent: %s", type(failed).__name__)

    def listen(self) -> None:
        """Listen in a thread of redis-py's, unless it runs."""
        with self._lock:
            if self._listening is None:
                subscription = _Subscription(self, redis_server.client(self._settings))
                self._listening = subscription.run_in_thread(_PING_SECONDS, daemon=True, exception_handler=self._miss)

    def is_live(self) -> bool:
        """Return whether no notice of others can have been missed until a moment ago."""
        return monotonic() - self._heard_at < LIVE_SECONDS

    def hear(self, message: dict[str, str]) -> None:
        """Take a message, a sign of life or the start of a subscription."""
        if message["type"] == "subscribe":
            # Sent again by each reconnection: notices may have been lost before, and none is from now on.
            _miss_all()
        elif message["type"] == "message":
            self._pass_on(message["data"])
        self._heard_at = monotonic()

    def make_up(self) -> None:
        """Once Redis is back, tell the others that notices of this process were lost."""
        if self._unsent and monotonic() >= self._resting_until:
            self._unsent = False
            self.publish(_ALL, "")

    def close(self) -> None:
        """Stop listening."""
        if self._listening is not None:
            self._listening.stop()
            self._listening.join()

    @property
    def topic(self) -> str:
        """Return Redis' channel of the installation."""
        return f"{redis_server.namespace(self._settings)}:notices"

    def _pass_on(self, data: str) -> None:
        try:
            sender, channel, payload = json.loads(data)
            if sender == self._sender:
                return
            if channel == _ALL:
                _miss_all()
            elif channel in _HANDLERS:
                _HANDLERS[channel].take(payload)
        except (ValueError, TypeError):
            log.warning("a notice of another version is passed over")

    def _miss(self, error: BaseException, subscription: PubSub, _: PubSubWorkerThread) -> None:
        """Subscribe again after a while."""
        self._heard_at = float("-inf")
        subscription.reset()
        log.warning("notices of other processes are missed: %s", trail(error))
        sleep(_RECONNECT_SECONDS)


class _Subscription(PubSub):
    """Subscribes for redis-py's thread (`run_in_thread`), which receives one message after the other."""

    def __init__(self, link: _Link, client: Redis) -> None:
        super().__init__(client.connection_pool)
        self._link = link

    def get_message(self, ignore_subscribe_messages: bool = False, timeout: float = 0.0) -> None:  # noqa: ARG002
        """Receive a message if there is one. Ask for a sign of life all the time.

        :raises TimeoutError: Redis has been silent for too long.
        """
        if not self.subscribed:
            self.subscribe(self._link.topic)
            self._answered_at = self._asked_at = monotonic()
        message = super().get_message(timeout=timeout)
        now = monotonic()
        if message is not None:
            self._answered_at = now
            self._link.hear(message)
        if now - self._answered_at >= LIVE_SECONDS:
            raise TimeoutError
        if now - self._asked_at >= _PING_SECONDS:
            self._asked_at = now
            self.ping()
            self._link.make_up()


def _miss_all() -> None:
    for handler in tuple(_HANDLERS.values()):
        handler.missed()
