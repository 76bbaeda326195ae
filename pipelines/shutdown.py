"""Whether this process is shutting down: long-running streams end then, and their clients reconnect."""

from threading import Event

_REQUESTED = Event()

request = _REQUESTED.set
requested = _REQUESTED.is_set
