"""Openings of event streams: few are at work at once, and the networks that open streams take turns.

Threat: thousands of streams opened at once, each of which checks its token and looks up its tenant before any limit of
its caller applies. All of that runs on the event loop, where another request waits for all of them at each step.

None is refused: by the HTML standard, an `EventSource` that gets any other status than 200 never tries again. Those
that wait are bounded by the open connections, because an opening ends when its client leaves.
"""

import asyncio
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

from starlette.requests import ClientDisconnect
from starlette.types import Message, Receive

from pipelines.connections import network_of

AT_WORK, AT_WORK_OF_NETWORK = 6, 2
"""Openings at work at once, in all and from one network."""


class Openings:
    """Belongs to the event loop."""

    def __init__(self) -> None:
        self._at_work: Counter[str] = Counter()
        self._lines: defaultdict[str, OrderedDict[asyncio.Future[None], None]] = defaultdict(OrderedDict)

    async def admit(self, address: str, receive: Receive) -> tuple[AbstractContextManager[None], Receive]:
        """Wait until an opening from the address may begin.

        :param receive: of the request, which has no body.
        :returns: the context in which the opening is at work, and from where to receive instead.
        :raises ClientDisconnect: the client has left.
        """
        network = network_of(address)
        admitted = asyncio.get_running_loop().create_future()
        self._lines[network][admitted] = None
        self._fill()
        heard = list[Message]()
        if not admitted.done():
            leaving = asyncio.create_task(_leave(receive, heard))
            try:
                await asyncio.wait((admitted, leaving), return_when=asyncio.FIRST_COMPLETED)
            except asyncio.CancelledError:
                self._give_up(network, admitted)
                raise
            finally:
                leaving.cancel()
            if leaving.done():
                self._give_up(network, admitted)
                raise ClientDisconnect

        async def received() -> Message:
            return heard.pop() if heard else await receive()

        return self._working(network), received

    def _give_up(self, network: str, admitted: asyncio.Future[None]) -> None:
        if admitted.done():
            self._end(network)
            return
        line = self._lines[network]
        del line[admitted]
        if not line:
            del self._lines[network]

    @contextmanager
    def _working(self, network: str) -> Iterator[None]:
        try:
            yield
        finally:
            self._end(network)

    def _end(self, network: str) -> None:
        self._at_work[network] -= 1
        self._at_work += Counter()  # drops those that have none
        self._fill()

    def _fill(self) -> None:
        """Admit the longest waiting network that may have another opening at work, then the next one."""
        while self._at_work.total() < AT_WORK:
            network = next((one for one in self._lines if self._at_work[one] < AT_WORK_OF_NETWORK), None)
            if network is None:
                return
            line = self._lines.pop(network)
            admitted, _ = line.popitem(last=False)
            if line:
                self._lines[network] = line
            self._at_work[network] += 1
            admitted.set_result(None)


async def _leave(receive: Receive, heard: list[Message]) -> None:
    """Return when the client leaves. Its latest other message, which ends the request, is kept in `heard`."""
    while (message := await receive())["type"] != "http.disconnect":
        heard[:] = [message]
