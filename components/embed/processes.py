"""Embeds passages in worker processes, so that bulk loads use all cores without delaying questions."""

import logging
import pickle
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from components.embed.encoding import EncoderFiles, Vectors
from components.ingest.process import Processes, program_of
from tenants.errors import CallerError, TryAgain
from tenants.seats import Seats

log = logging.getLogger("opora.embed")

_AT_HAND = 4
"""Passages that no worker is asked for: one takes two seconds to begin."""

_AT_ONCE = 32
"""Passages of one request: a second's work."""

_SECONDS = 120.0
_MEMORY = 3 * 10**9
"""Bytes of address space, of which a worker with the default encoder fills 350 MB."""

_REQUESTS = 10_000


class EmbeddingProcesses(Processes):
    """Embeds passages in worker processes, each with a copy of the model. Thread-safe.

    :param workers: how many work at once.
    """

    def __init__(self, workers: int = 2) -> None:
        program = program_of("components.embed.worker")
        super().__init__(program, workers=workers, seconds=_SECONDS, memory=_MEMORY, requests=_REQUESTS)
        self._seats = Seats(workers, workers)

    def embedded(self, files: EncoderFiles, texts: Sequence[str], batch: int) -> Vectors | None:
        """The vectors of passages, in their order; None when they are better computed in the caller's own process: for
        a few, and where no worker can.
        """
        if len(texts) <= _AT_HAND:
            return None
        # Of like length, roughly: only the workers have the model that counts tokens. The longest first, so that no
        # worker is left with much when the others are done.
        order = sorted(range(len(texts)), key=lambda number: len(texts[number]), reverse=True)
        groups = [order[start : start + _AT_ONCE] for start in range(0, len(order), _AT_ONCE)]
        # One worker to a core.
        requests = [
            pickle.dumps((replace(files, threads=1), [texts[number] for number in group], batch)) for group in groups
        ]
        vectors = np.zeros((len(texts), files.dimensions), np.float32)
        try:
            for group, answer in zip(groups, self._seats.map(self._ask, requests), strict=True):
                vectors[group] = np.frombuffer(answer, np.float32).reshape(len(group), files.dimensions)
        except (TryAgain, CallerError, ValueError) as failure:
            log.warning("%d passages cannot be embedded by workers: %s", len(texts), type(failure).__name__)
            return None
        return vectors

    def _ask(self, request: bytes) -> bytes:
        return self.ask("", request)


EMBEDDING_PROCESSES = EmbeddingProcesses()
"""Those of this process, for all tenants."""
