"""Server-sent events: how they are encoded and described, and how a client resumes them.

What a stream needs is looked up in a dependency of its endpoint, because errors must be answered before the response
begins.
"""

import json
from collections.abc import Iterable, Mapping

from fastapi.sse import ServerSentEvent
from pydantic_core import to_jsonable_python

EVENT_HEADERS: Mapping[str, str] = {"Cache-Control": "no-cache, no-transform"}
_MOST_DIGITS = 18


def json_event(name: str | None, data: object, event_id: object = None) -> ServerSentEvent:
    """Return an event with data as JSON, models and dataclasses included; a reader resumes after `event_id`."""
    text = json.dumps(to_jsonable_python(data), ensure_ascii=False)
    return ServerSentEvent(raw_data=text, event=name, id=None if event_id is None else str(event_id))


def is_event_number(text: str) -> bool:
    """Return whether a text can be an event number. Python and databases reject numbers of thousands of digits."""
    return text.isdecimal() and len(text) <= _MOST_DIGITS


def last_number(last_event_id: str) -> int:
    return int(last_event_id) if is_event_number(last_event_id) else 0


def described(description: str, names: Iterable[str]) -> dict[int | str, dict[str, object]]:
    """Return the response of a stream for OpenAPI, with the names of its events."""
    item = {"properties": {"event": {"enum": [*names]}}}
    return {200: {"description": description, "content": {"text/event-stream": {"itemSchema": item}}}}
