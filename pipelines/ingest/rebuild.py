"""Rebuild of a tenant's index without downtime, and rollback.

A rebuild writes the next generation beside the current one and switches when it is complete, in one transaction.
Ingest runs of the tenant wait; an operator's changes do not: they go to the current generation and are copied just
before the switch. An interrupted rebuild leaves an unused generation, which the tenant's next writer removes.

The new generation is placed by the tenant's size (`OPORA_PLACEMENT`), so a rebuild also moves a tenant between a shared
collection and a dedicated one.
"""

from collections.abc import Callable, Generator
from dataclasses import asdict, dataclass
from time import perf_counter
from typing import Any, TypeAlias

from components.ingest.reconcile import Rewrite, recount
from components.ingest.transfer import align, transfer
from components.language.encoder_settings import EncoderSettings, settings_from
from components.turn import Frozen
from pipelines.ingest import session
from tenants import index
from tenants.core.errors import IndexDamaged, InternalFault, NotFound
from tenants.knowledge import generations, writing


@dataclass(frozen=True, slots=True)
class Rebuilding(Frozen):
    """Progress of a rebuild: `chunks` of `total` are encoded."""

    chunks: int
    total: int

    def as_json(self) -> dict[str, int]:
        """Return the progress for a program."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Rebuilt(Frozen):
    """The generation made current and its number of chunks; number 0 before the switch."""

    generation: int = 0
    chunks: int = 0
    seconds: float = 0.0

    def as_json(self) -> dict[str, int | float]:
        """Return the result for a program."""
        return {**asdict(self), "seconds": round(self.seconds, 3)}


OnRebuilding: TypeAlias = Callable[[Rebuilding], None]


class Rebuild:
    """A rebuild of the index of the tenant in context. Runs only while its steps are iterated.

    :param settings: encoder settings of the new generation.
    :param rewrite: writes documents from their stored texts, to repair them first.
    """

    def __init__(self, settings: EncoderSettings, rewrite: Rewrite) -> None:
        self._settings = settings
        self._rewrite = rewrite
        self.report = Rebuilt()

    def steps(self, *, patience: float | None = None) -> Generator[Rebuilding, None, None]:
        """Encode one batch per step; after the last one the new generation is in force. Leaving earlier changes
        nothing.

        :param patience: seconds to wait for an ingest run of the tenant; None waits without a limit. Raises `Busy`
            (`ingest_busy`) on timeout.
        """
        started = perf_counter()
        with session.run(self._rewrite, patience) as now:
            now.writes = False
            number = generations.begin(self._settings.json_form, self._settings.dimensions)
            try:
                done, total = 0, index.open_collection().count()
                for written in transfer(index.open_collection(), index.open_collection(create=True, generation=number)):
                    done += written
                    yield Rebuilding(done, total)
                now.writes = True
                with writing.alone():
                    now.check()
                    chunks = _switch(number, later_than=number - 1)
            finally:
                index.sweep()
        self.report = Rebuilt(number, chunks, perf_counter() - started)

    def finish(self, progress: OnRebuilding | None = None) -> Rebuilt:
        """Take all steps."""
        return _finished(self, progress)


class Rollback:
    """A rollback to the generation before the last rebuild, which is discarded.

    Later documents are copied first, so nothing is lost. Runs only while its steps are iterated.

    :param rewrite: writes documents from their stored texts, to repair them first.
    """

    def __init__(self, rewrite: Rewrite) -> None:
        self._rewrite = rewrite
        self.report = Rebuilt()

    def steps(self, *, patience: float | None = None) -> Generator[Rebuilding, None, None]:
        """Switch to the kept generation after one step. Raises `NotFound` (`generation_not_kept`).

        :param patience: as for `Rebuild.steps`.
        """
        started = perf_counter()
        with session.run(self._rewrite, patience) as now:
            previous = generations.in_state("kept")
            if previous is None:
                raise NotFound("generation_not_kept")
            try:
                index.open_collection(generation=previous.number)
            except IndexDamaged:
                index.remove(previous.number)
                raise NotFound("generation_not_kept") from None
            yield Rebuilding(0, index.open_collection().count())
            with writing.alone():
                now.check()
                chunks = _switch(previous.number, later_than=previous.number)
                index.sweep()
        self.report = Rebuilt(previous.number, chunks, perf_counter() - started)

    def finish(self, progress: OnRebuilding | None = None) -> Rebuilt:
        """Take the step."""
        return _finished(self, progress)


def rebuild_due(settings: EncoderSettings) -> bool:
    """Return whether the current index of the tenant in context has other encoder settings."""
    now = generations.in_state("in_force")
    return now is not None and settings_from(now.encoder) != settings


def generations_json(settings: EncoderSettings) -> dict[str, Any]:
    """Return the generations of the tenant in context for a program. `encoder` is a digest of encoder settings.

    :param settings: how a rebuild would encode.
    """
    listed = [
        {
            "number": generation.number,
            "state": generation.state,
            "encoder": settings_from(generation.encoder).digest,
            "shared": bool(generation.shared),
            "created_at": f"{generation.created_at:%FT%TZ}",
        }
        for generation in generations.all()
    ]
    return {
        "generations": listed,
        "encoder": settings.digest,
        "rebuild_due": rebuild_due(settings),
        "move_due": generations.move_due(),
    }


def _finished(work: Rebuild | Rollback, progress: OnRebuilding | None) -> Rebuilt:
    for now in work.steps():
        if progress is not None:
            progress(now)
    return work.report


def _switch(number: int, *, later_than: int) -> int:
    """Make a generation current once it matches the records exactly. There must be no concurrent writer.

    :param later_than: also copy documents whose records were written since a later generation began.
    :returns: its number of chunks.
    """
    target = index.open_collection(generation=number)
    expected = align(index.open_collection(), target, generations.changed_documents(later_than))
    if target.count() != expected:
        raise InternalFault("generation_incomplete")
    recount(number)
    index.activate(number)
    return expected
