"""Time in tests."""

import asyncio


async def everything_waits() -> None:
    """Let all tasks of the loop go on until they wait for something else."""
    for _ in range(1_000):
        await asyncio.sleep(0)


class Clock:
    """A clock that the test advances, in place of `monotonic`."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now
