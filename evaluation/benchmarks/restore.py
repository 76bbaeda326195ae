"""`python -m evaluation.benchmarks.restore`: a backup taken under load, restored elsewhere, and asked the same.

A service answers questions of several people; meanwhile a backup is taken and one person is erased. Then the backup is
restored into an empty folder with the journal of erasures, and served. Both services must give the same answers to the
same questions; every turn acknowledged before the backup must be in the restored audit, whose chain must verify; the
erased person must not be there. A table goes to standard error, the same as JSON to standard output; the exit code is 1
if anything differs.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event, Thread

import httpx
from pyrage import x25519
from rich.console import Console

from components.ingest.document import SourceDocument
from evaluation.benchmarks.server import serving
from evaluation.datasets.fixture import fixture, near_miss_codes
from evaluation.datasets.public import vkcloud
from evaluation.datasets.rows import DATA, MissingData
from pipelines.ingest.usecase import Ingest
from settings import ROOT, get_settings
from tenants import index
from tenants.access.tokens import issue
from tenants.accounts.registry import Registry
from tenants.audit import search
from tenants.core.context import SCOPES, Tenant, acting_as
from tenants.privacy import persons
from tenants.privacy.persons import Person
from tenants.storage import database
from tenants.work import claims

TENANT, ERASED = "shop", "erased"
ASKERS = 4
QUESTIONS = 200
_COMPARED = ("outcome", "refusal_reason", "answer", "citations", "articles")
_WARM_UP_SECONDS = 3.0


@dataclass(frozen=True, slots=True)
class Verdict:
    """Result of a restore. `different`, `lost`, `faults` and `remains` must be 0."""

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

    @property
    def is_clean(self) -> bool:
        """Whether the restored installation is as good as the one before."""
        return not (self.different or self.lost or self.faults or self.remains)


class Askers:
    """People who ask until they are stopped; their answers are recorded by turn."""

    def __init__(self, port: int, questions: Sequence[str]) -> None:
        self._port = port
        self._questions = questions
        self._stop = Event()
        self.turns: list[str] = []
        self._threads = [Thread(target=self._ask, args=(number,)) for number in range(ASKERS)]

    @contextmanager
    def asking(self) -> Iterator[None]:
        """Ask while the block runs."""
        for thread in self._threads:
            thread.start()
        try:
            yield
        finally:
            self._stop.set()
            for thread in self._threads:
                thread.join()

    def _ask(self, number: int) -> None:
        # One of these people is erased later, so their questions are searched for.
        subject = ERASED if number == 0 else f"asker-{number}"
        with _client(self._port, subject) as client:
            for at in range(number, 1_000_000, ASKERS):
                if self._stop.is_set():
                    return
                answer = _asked(client, self._questions[at % len(self._questions)])
                self.turns.append(str(answer["turn_id"]))


def restore(folder: Path, documents: Iterable[SourceDocument], questions: Sequence[str]) -> Verdict:
    """Load, ask, back up, erase, restore, ask again, compare.

    :param folder: an empty one.
    """
    home, other, file = folder / "home", folder / "other", folder / "opora.backup"
    os.environ |= {"OPORA_BACKUP_KEY": str(x25519.Identity.generate())}
    _move(home)
    Registry().add(TENANT, locale="ru")
    with acting_as(Tenant(TENANT, "bench")):
        Ingest().run(documents)
    _move(home)
    with serving(home) as served:
        askers = Askers(served.port, questions)
        with askers.asking():
            time.sleep(_WARM_UP_SECONDS)
            acknowledged, started = list(askers.turns), time.perf_counter()
            _opora("backup", str(file))
            backup_seconds = time.perf_counter() - started
        before = _answers(served.port, questions)
    with acting_as(Tenant(TENANT, "bench")):
        persons.erase(Person(subject=ERASED))
    _move(other)
    started = time.perf_counter()
    _opora("restore", str(file), "--erasures", str(home / "erasures.jsonl"))
    restore_seconds = time.perf_counter() - started
    with acting_as(Tenant(TENANT, "bench")):
        verification = search.verify()
        known = {turn.turn_id for turn in search.find(search.TurnQuery(), limit=10_000_000)}
        remains = sum(len(kept) for kept in persons.export(Person(subject=ERASED)).values())
    _move(other)
    with serving(other) as served:
        after = _answers(served.port, questions)
    return Verdict(
        questions=len(questions),
        different=sum(one != another for one, another in zip(before, after, strict=True)),
        acknowledged=len(acknowledged),
        lost=len(set(acknowledged) - known),
        links=verification.links,
        faults=len(verification.faults),
        remains=remains,
        backup_seconds=round(backup_seconds, 2),
        restore_seconds=round(restore_seconds, 2),
        backup_bytes=file.stat().st_size,
    )


def corpus(limit: int) -> tuple[list[SourceDocument], list[str]]:
    """Return a real help centre with its questions, or the demo shop with its own and unknown codes."""
    try:
        (chosen, *_) = vkcloud(DATA, "ru")
        cases = chosen.cases
    except MissingData:
        chosen = fixture()
        cases = (*chosen.cases, *near_miss_codes().cases)
    return list(chosen.corpus.documents()), [case.question for case in cases][:limit]


def _move(folder: Path) -> None:
    """Move this process's installation to that folder."""
    index.close_all()
    claims.close_all()
    database.close_all()
    os.environ["OPORA_DATA_DIR"] = str(folder)
    get_settings.cache_clear()


def _opora(*arguments: str) -> None:
    environment = {"OPORA_MODELS_DIR": str(get_settings().models), "OPORA_FETCH_MODELS": "false"}
    command = [sys.executable, "-m", "cli", *arguments]
    subprocess.run(command, cwd=ROOT, env=os.environ | environment, stdout=subprocess.DEVNULL, check=True)  # noqa: S603


def _client(port: int, subject: str) -> httpx.Client:
    token = issue(get_settings(), TENANT, scopes=SCOPES, subject=subject, ttl_seconds=36_000)
    return httpx.Client(base_url=f"http://127.0.0.1:{port}", headers={"Authorization": f"Bearer {token}"}, timeout=120)


def _answers(port: int, questions: Sequence[str]) -> list[str]:
    with _client(port, "bench") as client:
        answers = [_asked(client, question) for question in questions]
    return [_comparable(answer) for answer in answers]


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


def main() -> int:
    """Restore, judge, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--questions", type=int, default=QUESTIONS)
    arguments = parser.parse_args()
    os.environ["OPORA_MODELS_DIR"] = str(get_settings().models)
    documents, questions = corpus(arguments.questions)
    with TemporaryDirectory() as folder:
        verdict = restore(Path(folder), documents, questions)
    Console(stderr=True).print(asdict(verdict))
    sys.stdout.write(json.dumps({"schema": "restore.v1", **asdict(verdict), "flawless": verdict.is_clean}) + "\n")
    return 0 if verdict.is_clean else 1


if __name__ == "__main__":
    sys.exit(main())
