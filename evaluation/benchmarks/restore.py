"""`python -m evaluation.benchmarks.restore`: a backup taken under load, restored elsewhere, and asked the same.

A service answers questions of several people; meanwhile a backup is taken and one person is erased. Then the backup is
restored into an empty folder with the journal of erasures, and served. Both services must give the same answers to the
same questions; every turn acknowledged before the backup must be in the restored audit, whose chain must verify; the
erased person must not be there. A table goes to standard error, the same as JSON to standard output; the exit code is 1
if anything differs.
"""

import json
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event
from typing import Annotated

import httpx
import typer
from pyrage import x25519

from components.ingest.document import SourceDocument
from evaluation.benchmarks import results
from evaluation.benchmarks.server import Served, close_stores, installation, opora, serving, token_for
from evaluation.datasets.catalogue import largest_set
from pipelines.ingest.usecase import Ingest
from tenants.accounts.registry import Registry
from tenants.audit import search
from tenants.core.context import SCOPES, Tenant, acting_as
from tenants.privacy import persons
from tenants.privacy.persons import Person

SCHEMA = "bench-restore.v1"
FAULTS = ("different", "lost", "faults", "remains")
TENANT, ERASED = "shop", "erased"
ASKERS = 4
QUESTIONS = 200
_COMPARED = ("outcome", "refusal_reason", "answer", "citations", "articles")
_WARM_UP_SECONDS = 3.0


@dataclass(frozen=True, slots=True)
class Verdict:
    """Result of a restore. Those of `FAULTS` must be 0."""

    questions: int
    different: int
    acknowledged: int
    lost: int
    links: int
    faults: int
    remains: int
    backup_seconds: float
    restore_seconds: float
    backup_bytes: int


def restore(folder: Path, documents: Iterable[SourceDocument], questions: Sequence[str]) -> Verdict:
    """Load, ask, back up, erase, restore, ask again, compare.

    :param folder: an empty one.
    """
    home, other, file = folder / "home", folder / "other", folder / "opora.backup"
    bench, erased = Tenant(TENANT, "bench"), Person(subject=ERASED)
    key = str(x25519.Identity.generate())
    with installation(home, OPORA_BACKUP_KEY=key):
        Registry().add(TENANT, locale="ru")
        with acting_as(bench):
            Ingest().run(documents)
        close_stores()
        with serving(home) as served:
            with _asking(served, questions) as turns:
                time.sleep(_WARM_UP_SECONDS)
                acknowledged, started = list(turns), time.perf_counter()
                opora("backup", str(file))
                backup_seconds = time.perf_counter() - started
            before = _answers(served, questions)
        with acting_as(bench):
            persons.erase(erased)
    with installation(other, OPORA_BACKUP_KEY=key):
        started = time.perf_counter()
        opora("restore", str(file), "--erasures", str(home / "erasures.jsonl"))
        restore_seconds = time.perf_counter() - started
        with acting_as(bench):
            verification = search.verify()
            known = {turn.turn_id for turn in search.find(search.TurnQuery(), limit=10_000_000)}
            remains = sum(len(kept) for kept in persons.export(erased).values())
        close_stores()
        with serving(other) as served:
            after = _answers(served, questions)
    return Verdict(
        questions=len(questions),
        different=sum(answer != restored for answer, restored in zip(before, after, strict=True)),
        acknowledged=len(acknowledged),
        lost=len(set(acknowledged) - known),
        links=verification.links,
        faults=len(verification.faults),
        remains=remains,
        backup_seconds=round(backup_seconds, 2),
        restore_seconds=round(restore_seconds, 2),
        backup_bytes=file.stat().st_size,
    )


@contextmanager
def _asking(served: Served, questions: Sequence[str]) -> Iterator[list[str]]:
    """Let several people ask in this block. Filled meanwhile: the turns that were answered."""
    stop = Event()
    turns: list[str] = []

    def ask(number: int) -> None:
        # One of these people is erased later, so their questions are searched for.
        subject = ERASED if number == 0 else f"asker-{number}"
        with served.client(token_for(TENANT, *SCOPES, subject=subject)) as client:
            at = number
            while not stop.is_set():
                turns.append(str(_asked(client, questions[at % len(questions)])["turn_id"]))
                at += ASKERS

    with ThreadPoolExecutor(ASKERS) as pool:
        askers = [pool.submit(ask, number) for number in range(ASKERS)]
        try:
            yield turns
        finally:
            stop.set()
        for asker in askers:
            asker.result()


def _answers(served: Served, questions: Sequence[str]) -> list[str]:
    with served.client(token_for(TENANT, *SCOPES)) as client:
        return [_comparable(_asked(client, question)) for question in questions]


def _comparable(answer: dict[str, object]) -> str:
    """Return the comparable part of an answer, without the ticket number, which is random."""
    handoff = answer["handoff"]
    number = str(handoff["ticket_id"]) if isinstance(handoff, dict) and handoff["ticket_id"] else "-"
    return json.dumps({name: answer[name] for name in _COMPARED}, ensure_ascii=False).replace(number, "-")


def _asked(client: httpx.Client, question: str) -> dict[str, object]:
    answer = client.post("/ask/run", json={"question": question})
    answer.raise_for_status()
    body: dict[str, object] = answer.json()
    return body


def main(questions: Annotated[int, typer.Option(help="How many to ask before and after.")] = QUESTIONS) -> None:
    """Restore, judge, print."""
    chosen = largest_set()
    with TemporaryDirectory() as folder:
        asked = [case.question for case in chosen.cases][:questions]
        verdict = restore(Path(folder), chosen.corpus.documents(), asked)
    results.finish(SCHEMA, asdict(verdict), title="A restored backup", bounds=dict.fromkeys(FAULTS, 0))


if __name__ == "__main__":
    typer.run(main)
