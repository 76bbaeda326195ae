"""Text worked on in processes of its own: it takes time from nobody's question and none from writing to the index.

A little text is worked on right here, because handing it over would take longer. Either way the results are the same
and in the same order. A text made to keep its reader busy is given up after a while, whatever it does.
"""

import pickle
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from components.ingest.analysis import Analysed, Text, analysed
from components.ingest.cut import Cut, cut_all
from components.ingest.document import SourceDocument
from components.ingest.pack import Sizes
from components.ingest.process import Processes, start_of
from components.ingest.sandbox import MEMORY, SECONDS
from components.language.encoder_settings import EncoderSettings
from tenants.errors import CallerError, Invalid, TooLarge, TryAgain

_AT_HAND = 20_000
"""Characters that are worked on here: some ten chunks, as many milliseconds as a worker takes to begin."""

_AT_ONCE = 50_000
"""Characters of documents in one request."""

_CHUNKS_AT_ONCE = 32
_REQUESTS = 10_000

_First = TypeVar("_First")
_Second = TypeVar("_Second")
_Result = TypeVar("_Result")


class TextProcesses(Processes):
    """Cuts and analyses text in worker processes. Thread-safe.

    :param workers: how many work at once.
    :param seconds: wall time of one request, after which its worker is killed.
    :param memory: bytes of address space of a worker.
    """

    def __init__(self, workers: int = 2, seconds: float = SECONDS, memory: int = MEMORY) -> None:
        program = start_of("components.ingest.text_worker")
        super().__init__(program, workers=workers, seconds=seconds, memory=memory, requests=_REQUESTS)
        self._threads = ThreadPoolExecutor(workers, "texts")

    def cut(self, documents: Sequence[SourceDocument], sizes: Sizes) -> list[Cut | CallerError]:
        """Each document cut, or why it could not be: `file_too_slow`, `file_too_demanding`, `file_too_deep`."""
        if sum(len(document.text) for document in documents) <= _AT_HAND:
            return [*cut_all(documents, sizes)]
        groups = list(_groups(documents))
        found = self._threads.map(self._cut, groups, [sizes] * len(groups))
        return [one for some in found for one in some]

    def analysed(self, texts: Sequence[Text], settings: EncoderSettings) -> Iterator[Analysed]:
        """What each chunk is found by, in order. Some are worked on ahead of what has been taken."""
        if len(texts) <= _CHUNKS_AT_ONCE:
            return iter(analysed(texts, settings.json_form))
        groups = [texts[start : start + _CHUNKS_AT_ONCE] for start in range(0, len(texts), _CHUNKS_AT_ONCE)]
        found = self._threads.map(self._analysed, groups, [settings.json_form] * len(groups))
        return (one for some in found for one in some)

    def _cut(self, documents: Sequence[SourceDocument], sizes: Sizes) -> Sequence[Cut | CallerError]:
        try:
            return self._done(cut_all, documents, sizes)
        except TryAgain:
            return cut_all(documents, sizes)
        except CallerError as failed:
            if len(documents) == 1:
                return [failed]
            return [one for document in documents for one in self._cut([document], sizes)]

    def _analysed(self, texts: Sequence[Text], settings: str) -> Sequence[Analysed]:
        try:
            return self._done(analysed, texts, settings)
        except (TryAgain, CallerError):
            # A chunk is short, so nothing is wrong with it. The machine has too much to do.
            return analysed(texts, settings)

    def _done(self, work: Callable[[_First, _Second], _Result], first: _First, second: _Second) -> _Result:
        answer = self.ask("", pickle.dumps((work, first, second)))
        # What answers is code of ours that has gone through text and nothing else, as this process would have.
        code, result = pickle.loads(answer)  # noqa: S301
        if code == "file_too_demanding":
            raise TooLarge(code, megabytes=self.memory // 10**6)
        if code:
            raise Invalid(code)
        done: _Result = result
        return done


def _groups(documents: Sequence[SourceDocument]) -> Iterator[list[SourceDocument]]:
    group: list[SourceDocument] = []
    size = 0
    for document in documents:
        if group and size + len(document.text) > _AT_ONCE:
            yield group
            group, size = [], 0
        group.append(document)
        size += len(document.text)
    if group:
        yield group


TEXT_PROCESSES = TextProcesses()
"""Those of this process, for all tenants."""
