class Clock:
    """A clock that the test advances, in place of `monotonic`."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now
