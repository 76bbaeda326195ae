"""Write lock of a tenant's knowledge base: chunks, document records and lexicon.

For this process only. Two processes never share the embedded index, whose folder belongs to one of them.
"""

from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock, RLock

from tenants.core.errors import Busy
from tenants.storage.cache import Key, own_key

_WRITERS: defaultdict[Key, RLock] = defaultdict(RLock)
_ADDING = Lock()


@contextmanager
def alone(patience: float | None = None) -> Iterator[None]:
    """Run the block as the only writer of the tenant in context. Reentrant.

    :param patience: seconds to wait for another writer; None: without limit. Raises `Busy` with the code
        `documents_busy` when they are over.
    """
    with _ADDING:
        lock = _WRITERS[own_key()]
    if not lock.acquire(timeout=-1 if patience is None else patience):
        raise Busy("documents_busy")
    try:
        yield
    finally:
        lock.release()
