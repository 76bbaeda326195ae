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


@dataclass(frozen=True, slots=True)
class Rebuilt(Frozen):
    """The generation made current and its number of chunks; number 0 before the switch."""

    generation: int = 0
    chunks: int = 0
    seconds: float = 0.0

    def as_json(self) -> dict[str, int | float]:
        return {**asdict(self), "seconds": round(self.seconds, 3)}


OnRebuilding: TypeAlias = Callable[[Rebuilding], None]
Work: TypeAlias = Generator[Rebuilding, None, tuple[int, int]]
"""Steps that end with the number of the generation in force and its number of chunks."""


class IndexChange:
    """A rebuild or a rollback of the index of the tenant in context. Runs only while its steps are iterated.

    :param work: begins it. Its parameter is the time to wait for an ingest run of the tenant.
    """

    def __init__(self, work: Callable[[float | None], Work]) -> None:
        self._work = work
        self.report = Rebuilt()

    def steps(self, *, patience: float | None = None) -> Generator[Rebuilding, None, None]:
        """Do it step by step. Leaving before the last one changes nothing.

        :param patience: seconds to wait for an ingest run of the tenant; None waits without a limit. Raises `Busy`
            (`ingest_busy`) on timeout.
        """
        started = perf_counter()
        number, chunks = yield from self._work(patience)
        self.report = Rebuilt(number, chunks, perf_counter() - started)

    def finish(self, progress: OnRebuilding | None = None) -> Rebuilt:
        for now in self.steps():
            if progress is not None:
                progress(now)
        return self.report


def rebuild(settings: EncoderSettings, rewrite: Rewrite, patience: float | None) -> Work:
    """Encode one batch per step; after the last one the new generation is in force."""
    with session.run(rewrite, patience) as now:
        now.writes = False
        number = generations.begin(settings.json_form, settings.dimensions)
        try:
            source, target = index.open_collection(), index.open_collection(create=True, generation=number)
            done, total = 0, source.count()
            for written in transfer(source, target):
                done += written
                yield Rebuilding(done, total)
            now.writes = True
            with writing.alone():
                now.claim.check()
                return number, _switch(number, later_than=number - 1)
        finally:
            index.sweep()


def rollback(rewrite: Rewrite, patience: float | None) -> Work:
    """Switch to the generation before the last rebuild after one step. Documents written since are copied first.

    Raises `NotFound` (`generation_not_kept`).
    """
    with session.run(rewrite, patience) as now:
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
            now.claim.check()
            chunks = _switch(previous.number, later_than=previous.number)
            index.sweep()
        return previous.number, chunks


def rebuild_due(settings: EncoderSettings) -> bool:
    now = generations.in_state("in_force")
    return now is not None and settings_from(now.encoder) != settings


def generations_json(settings: EncoderSettings) -> dict[str, Any]:
    """Return the generations of the tenant in context for a program. `encoder` is a digest of encoder settings."""
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
