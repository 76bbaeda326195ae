"""Writing to a tenant's knowledge base so that interrupted work is always repaired.

The lexicon carries a mark while a session writes. A session that starts and finds the mark, or an index that lacks what
the records name, repairs it first. An ingest run keeps the mark from its first batch to its last. An
operator's change does not wait for the run: it goes between two of its batches, under the run's mark.
"""

from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from threading import Lock
from time import monotonic, sleep

from components.ingest.reconcile import Rewrite, compare, recount, repair
from tenants import index
from tenants.core.errors import Busy, CallerError
from tenants.knowledge import lexicon, writing
from tenants.storage.cache import Key, own_key
from tenants.work import locks
from tenants.work.locks import Claim

PATIENCE_SECONDS = 10.0
"""Time that an operator's change waits for a writer before it is refused as busy."""

MAX_CHANGES = 4
"""Maximum number of a tenant's changes, waiting ones included. All tenants' requests share about forty threads."""

_POLL_SECONDS = 0.05
_CHANGES: Counter[Key] = Counter()
_COUNTING = Lock()


@dataclass(slots=True)
class Session:
    """A run or a change in progress.

    :param healed: an earlier session was interrupted and has been repaired first.
    :param harmed: a change failed while the run went on, so what it left behind has to be put right in the end.
    :param writes: whether the run changes what is in force; if not, a failure of it leaves nothing to repair.
    """

    claim: Claim
    rewrite: Rewrite
    healed: bool = False
    harmed: bool = False
    writes: bool = True


_RUNS: dict[Key, Session] = {}
"""The runs in progress in this process."""


@contextmanager
def run(rewrite: Rewrite, patience: float | None = None) -> Iterator[Session]:
    """Open an ingest run: one at a time per tenant in all processes. Closing it early leaves a consistent state.

    :param patience: seconds to wait for another run; None waits without a limit. Raises `Busy`
        (`ingest_busy`) on timeout.
    """
    with locks.ingesting(patience) as claim:
        with writing.alone():
            session = _begin(claim, rewrite)
            _RUNS[own_key()] = session
        try:
            yield session
        except BaseException as error:
            if isinstance(error, GeneratorExit) or not session.writes:
                _close(session)
            else:
                del _RUNS[own_key()]
            raise
        _close(session)


def _close(session: Session) -> None:
    with writing.alone():
        del _RUNS[own_key()]
        _finish(session)


@contextmanager
def change(rewrite: Rewrite, *, patience: float = PATIENCE_SECONDS) -> Iterator[Session]:
    """Open a session for an operator's change of a few documents. Validate the change before writing anything.

    Raises `Busy` (`documents_busy`) when another writer is active for longer than `patience` seconds, or when too many
    of the tenant's changes wait already: each of them holds a thread that serves all tenants.
    """
    with ExitStack() as stack:
        stack.enter_context(_in_line())
        session, is_own = _enter(stack, rewrite, patience)
        try:
            yield session
        except CallerError:
            if is_own:
                _finish(session)
            raise
        except BaseException:
            # The mark on the lexicon stays, and the run must not remove it.
            session.harmed = True
            raise
        if is_own:
            _finish(session)


@contextmanager
def _in_line() -> Iterator[None]:
    key = own_key()
    with _COUNTING:
        if _CHANGES[key] >= MAX_CHANGES:
            raise Busy("documents_busy")
        _CHANGES[key] += 1
    try:
        yield
    finally:
        with _COUNTING:
            _CHANGES[key] -= 1
            if not _CHANGES[key]:
                del _CHANGES[key]


def _enter(stack: ExitStack, rewrite: Rewrite, patience: float) -> tuple[Session, bool]:
    """Become the only writer: in the active run of this process, or in a new session."""
    until = monotonic() + patience
    asked = False
    while True:
        with ExitStack() as attempt:
            claim = _claimed(attempt)
            attempt.enter_context(writing.alone(max(0.0, until - monotonic())))
            during = _RUNS.get(own_key())
            session = during or (_begin(claim, rewrite) if claim else None)
            if session is not None:
                stack.push(attempt.pop_all())
                return session, during is None
        if monotonic() >= until:
            raise Busy("documents_busy")
        if claim is None and not asked:
            locks.want_ingesting()
            asked = True
        sleep(_POLL_SECONDS)


def _claimed(stack: ExitStack) -> Claim | None:
    try:
        return stack.enter_context(locks.ingesting(patience=0))
    except Busy:
        return None


def _begin(claim: Claim, rewrite: Rewrite) -> Session:
    index.sweep()
    # First, because it raises when the index cannot be reached: then nothing is written, and nothing has to be mended.
    damaged = index.damage() is not None
    session = Session(claim, rewrite, healed=lexicon.begin() or damaged)
    if session.healed:
        with index.repairing():
            repair(compare(), rewrite)
    return session


def _finish(session: Session) -> None:
    if session.harmed:
        repair(compare(), session.rewrite)
    if session.healed or session.harmed:
        recount()
    lexicon.finish()
