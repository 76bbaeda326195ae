"""Streams of turns shared by replicas through Redis, so that a client can resume at any replica.

Encrypted, and kept for an hour at most. A stream belongs to its caller, who is part of its keys: for all others it does
not exist.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TypeAlias

from redis import Redis, RedisError
from redis.exceptions import ResponseError
from redis.typing import EncodableT, FieldT

from settings import Settings, get_settings
from tenants.core import context
from tenants.core.context import Tenant
from tenants.core.errors import TryAgain
from tenants.storage import redis_server
from tenants.storage.sealed import seal, unseal

RETENTION_SECONDS = 3_600
MAX_EVENTS = 10_000
"""Events of a stream. One with more is no longer shared: without its beginning it would have a gap."""
ALIVE_SECONDS = 5
"""Time for which a process counts as alive after its last sign of life."""

_Fields: TypeAlias = dict[FieldT, EncodableT]
_STREAM = "stream"
_HOLDER, _REQUEST = "holder", "request_hash"
_TAKE_OVER = """
if redis.call('HGET', KEYS[1], ARGV[1]) ~= ARGV[2] then return 0 end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[3])
return 1
"""


@dataclass(frozen=True, slots=True)
class LoggedStream:
    """A stream that a process runs, or ran.

    :param owner: a digest of tenant and subject, see `owner`.
    :param holder: the process that writes it.
    :param request_hash: of the request that it answers.
    """

    turn_id: str
    owner: str
    holder: str
    request_hash: str


@dataclass(frozen=True, slots=True)
class LoggedEvent:
    """An event of a stream; its number counts from 1."""

    number: int
    name: str
    data: Mapping[str, object]


def begin(stream: LoggedStream, settings: Settings) -> None:
    """Add a new stream, and a sign of life of its process.

    :raises RedisError: Redis does not respond.
    """
    key = _naming(settings)
    head: _Fields = {_HOLDER: stream.holder, _REQUEST: stream.request_hash}
    head_key, owned_key = key("stream", stream.owner, stream.turn_id), key("streams", stream.owner)
    with redis_server.client(settings).pipeline(transaction=False) as pipeline:
        pipeline.set(key("process", stream.holder), "", ex=ALIVE_SECONDS)
        pipeline.hset(head_key, mapping=head)
        pipeline.sadd(owned_key, stream.turn_id)
        for name in (head_key, owned_key):
            pipeline.expire(name, RETENTION_SECONDS)
        pipeline.execute()


def append(events: Sequence[tuple[LoggedStream, LoggedEvent]], holder: str, settings: Settings) -> frozenset[str]:
    """Add the next events of streams, of any tenants, and a sign of life of their process.

    :returns: turns that cannot be shared any more: too long, or taken over by another process.
    :raises RedisError: Redis does not respond.
    """
    key = _naming(settings)
    with redis_server.client(settings).pipeline(transaction=False) as pipeline:
        pipeline.set(key("process", holder), "", ex=ALIVE_SECONDS)
        for stream, event in events:
            fields: _Fields = {"name": event.name, "data": seal(json.dumps(event.data, ensure_ascii=False))}
            # Redis refuses a number that is not greater than the last one: another process has written it.
            pipeline.xadd(key("events", stream.owner, stream.turn_id), fields, id=_id(event.number))
        for owner, turn_id in {(stream.owner, stream.turn_id) for stream, _ in events}:
            pipeline.expire(key("events", owner, turn_id), RETENTION_SECONDS)
        results = pipeline.execute(raise_on_error=False)
    return frozenset(
        stream.turn_id
        for (stream, event), result in zip(events, results[1:], strict=False)
        if isinstance(result, ResponseError) or event.number > MAX_EVENTS
    )


def close(holder: str, settings: Settings) -> None:
    """Let the streams of a process that ends be taken over at once."""
    with suppress(RedisError, TryAgain):
        redis_server.client(settings).delete(_naming(settings)("process", holder))


def find(turn_id: str) -> LoggedStream | None:
    """Return the caller's stream; None if it does not exist or belongs to another caller."""
    with _reached() as (redis, key):
        head = redis.hgetall(key("stream", owner(), turn_id))
    return LoggedStream(turn_id, owner(), str(head[_HOLDER]), str(head[_REQUEST])) if head else None


def events(turn_id: str, after: int) -> tuple[LoggedEvent, ...]:
    """Return the events of a stream of the caller after number `after`, in order."""
    with _reached() as (redis, key):
        entries = redis.xrange(key("events", owner(), turn_id), min=_id(after + 1)) or ()
    return tuple(
        LoggedEvent(int(str(entry_id).partition("-")[0]), str(fields["name"]), json.loads(unseal(str(fields["data"]))))
        for entry_id, fields in entries
        if fields
    )


def is_alive(holder: str) -> bool:
    """Return whether a process has given a sign of life lately."""
    with _reached() as (redis, key):
        return bool(redis.exists(key("process", holder)))


def take_over(stream: LoggedStream, holder: str) -> bool:
    """Take over a stream whose process has died. Returns False if another process was faster."""
    with _reached() as (redis, key):
        head = key("stream", stream.owner, stream.turn_id)
        return bool(redis.eval(_TAKE_OVER, 1, head, _HOLDER, stream.holder, holder))


def erase(subjects: Iterable[str]) -> None:
    """Drop the streams of these people of the tenant in context."""
    if not redis_server.is_configured(get_settings()):
        return
    tenant_id = context.current().tenant_id
    with _reached() as (redis, key):
        for person in (Tenant(tenant_id, subject).key(_STREAM) for subject in subjects):
            for turn_id in map(str, redis.smembers(key("streams", person))):
                redis.delete(key("stream", person, turn_id), key("events", person, turn_id))
            redis.delete(key("streams", person))


def owner() -> str:
    """Return a digest of the caller as the owner of streams."""
    return context.current().key(_STREAM)


def _naming(settings: Settings) -> Callable[..., str]:
    """Return the function that names keys in Redis."""
    prefix = redis_server.namespace(settings)
    return lambda *parts: ":".join((prefix, *parts))


def _id(number: int) -> str:
    return f"{number}-0"


@contextmanager
def _reached() -> Iterator[tuple[Redis, Callable[..., str]]]:
    """Open Redis for the caller, with `_naming`. Raises `TryAgain` when it does not respond."""
    settings = get_settings()
    with TryAgain("limits_unreachable").instead_of(RedisError):
        yield redis_server.client(settings), _naming(settings)
