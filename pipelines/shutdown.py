"""Whether this process is shutting down: it is not ready first, then its streams end, and their clients reconnect."""

from threading import Event

_ANNOUNCED = Event()
_REQUESTED = Event()

announce = _ANNOUNCED.set
announced = _ANNOUNCED.is_set
"""Return whether new requests should go to another process; requests that arrive are still answered."""

request = _REQUESTED.set
requested = _REQUESTED.is_set
