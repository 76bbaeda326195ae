"""The process in which text is cut and analysed. `components.ingest.text_processes` starts it.

A request is a function of ours with its two arguments, pickled. The answer is the code of an error, empty for none,
and the result, pickled.
"""

import gc
import pickle

# What is asked for is here before memory and files are limited.
from components.ingest import analysis, cut
from components.ingest.worker import serve

LOADED = (analysis, cut)
_BETWEEN_COLLECTIONS = 100_000
"""A text becomes many small objects that go with it; looking among them for rings takes a tenth of the time."""


def main() -> None:
    """Work until nobody asks any more."""
    gc.freeze()
    gc.set_threshold(_BETWEEN_COLLECTIONS)
    serve(_answer)


def _answer(_name: str, data: bytes, _memory: int) -> bytes:
    # Who asks is the process that has started this one.
    work, first, second = pickle.loads(data)  # noqa: S301
    try:
        return pickle.dumps(("", work(first, second)))
    except MemoryError:
        code = "file_too_demanding"
    except RecursionError:
        code = "file_too_deep"
    return pickle.dumps((code, None))
