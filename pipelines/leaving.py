"""Whether this process has been told to stop: streams that could go on for long end then, and clients come back."""

from threading import Event

_TOLD = Event()

tell = _TOLD.set
told = _TOLD.is_set
