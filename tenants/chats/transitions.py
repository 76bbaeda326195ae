"""State machine of a chat: every transition in one table.

```
bot -> queued -> human -> bot | snoozed | resolved
```

The assistant answers only in state `bot`. An operator's public reply takes a chat over from any state; a customer's
message returns a resolved chat to the assistant and wakes a snoozed one.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal, TypeAlias, get_args

State: TypeAlias = Literal["bot", "queued", "human", "snoozed", "resolved"]
Event: TypeAlias = Literal[
    "customer_message",
    "person_requested",
    "queue_timed_out",
    "taken",
    "operator_replied",
    "transferred",
    "handed_back",
    "snoozed",
    "woken",
    "resolved",
    "reopened",
]
STATES: tuple[State, ...] = get_args(State)

_BY_OPERATOR: Mapping[Event, State] = {"taken": "human", "operator_replied": "human", "transferred": "human"}
_WAITING_OR_TAKEN: Mapping[Event, State] = {"handed_back": "bot", "snoozed": "snoozed", "resolved": "resolved"}

_TABLE: Mapping[State, Mapping[Event, State]] = MappingProxyType(
    {
        "bot": {
            **_BY_OPERATOR,
            "customer_message": "bot",
            "person_requested": "queued",
            "resolved": "resolved",
        },
        "queued": {
            **_BY_OPERATOR,
            **_WAITING_OR_TAKEN,
            "customer_message": "queued",
            "person_requested": "queued",
            "queue_timed_out": "bot",
        },
        "human": {**_BY_OPERATOR, **_WAITING_OR_TAKEN, "customer_message": "human", "person_requested": "human"},
        "snoozed": {
            **_BY_OPERATOR,
            "handed_back": "bot",
            "resolved": "resolved",
            "customer_message": "queued",
            "person_requested": "queued",
            "woken": "queued",
        },
        "resolved": {
            **_BY_OPERATOR,
            "customer_message": "bot",
            "person_requested": "queued",
            "reopened": "human",
        },
    }
)


def after(state: State, event: Event, *, assigned: bool) -> State | None:
    """Return the state after an event; None if the event is not allowed.

    :param assigned: an operator has the chat, so that it wakes with them and not in the queue.
    """
    following = _TABLE[state].get(event)
    return "human" if state == "snoozed" and following == "queued" and assigned else following
