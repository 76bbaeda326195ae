"""The process in which passages are embedded. `components.embed.processes` starts it.

A request is files, texts and the size of a batch, pickled; the answer is the bytes of the vectors, one after the other.
"""

import os
import pickle

# A worker starts no process, so its libraries must not try to start threads.
os.environ["TOKENIZERS_PARALLELISM"] = "false"

from components.embed.encoding import encode
from components.ingest.worker import serve


def main() -> None:
    """Serve requests until the parent closes the pipe."""
    serve(_answer)


def _answer(_name: str, data: bytes, _memory: int) -> bytes:
    # The request comes from the parent process.
    files, texts, batch = pickle.loads(data)  # noqa: S301
    return encode(files, texts, batch).tobytes()
