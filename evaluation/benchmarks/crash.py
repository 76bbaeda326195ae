"""`python -m evaluation.benchmarks.crash`: a real service killed at random moments while it takes and ingests files.

Each round starts the service, sends uploads for several tenants (new documents, and new versions of earlier ones), and
kills it with SIGKILL at a random moment. After the last round the service works off what is left. Then every upload
that was acknowledged must be there: each document once, whole, in the version acknowledged last, and nothing else. A
table goes to standard error, the same as JSON to standard output; the exit code is 1 when anything was lost.
"""

import argparse
import json
import os
import random
import signal
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread

import httpx
from rich.console import Console
from rich.table import Table

from components.ingest.reconcile import compare
from evaluation.benchmarks.server import serving
from evaluation.datasets.fixture import DEMO
from evaluation.datasets.public import vkcloud
from evaluation.datasets.rows import DATA, MissingData
from pipelines.ingest.usecase import Ingest
from settings import get_settings
from tenants import index
from tenants.access.tokens import issue
from tenants.accounts.registry import Registry
from tenants.core.context import SCOPES, Tenant, acting_as
from tenants.index import open_collection
from tenants.knowledge import documents, versions
from tenants.storage import database
from tenants.work import claims, jobs

TENANTS = ("first", "second", "third")
FILES_PER_UPLOAD = 12
UPLOADS_PER_ROUND = 2
LONGEST_ROUND_SECONDS = 4.0
PATIENCE_SECONDS = 900


@dataclass(slots=True)
class Upload:
    """Uploads of one document: the last acknowledged text, and later ones without a response."""

    acknowledged: str | None = None
    unknown: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Round:
    """A life of the service: time of the kill, accepted jobs and unfinished jobs."""

    killed_after_ms: int
    accepted: int
    cut_off: int
    jobs_left: int


@dataclass(frozen=True, slots=True)
class Verdict:
    """Final defects over all tenants. All numbers except the first two must be 0."""

    documents: int
    chunks: int
    lost: int
    wrong_version: int
    unasked: int
    chunks_that_differ: int
    inconsistencies: int
    jobs_not_done: int
    files_left: int

    @property
    def is_clean(self) -> bool:
        """Whether no document was lost, duplicated or left over."""
        return not any(list(asdict(self).values())[2:])


class Sender:
    """A client of one tenant that uploads until the service is down."""

    def __init__(self, tenant_id: str, texts: Sequence[str], chance: random.Random) -> None:
        self.tenant_id = tenant_id
        self.sent: dict[str, Upload] = {}
        self.accepted = self.cut_off = 0
        self._texts = texts
        self._chance = chance
        self._token = issue(get_settings(), tenant_id, scopes=SCOPES, subject="crash", ttl_seconds=36_000)

    def send(self, port: int) -> None:
        """Upload a round's files, one upload after another."""
        headers = {"Authorization": f"Bearer {self._token}"}
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", headers=headers, timeout=60) as client:
            for _ in range(UPLOADS_PER_ROUND):
                batch = self._batch()
                for name, text in batch.items():
                    self.sent.setdefault(name, Upload()).unknown.append(text)
                try:
                    reply = client.post(
                        "/documents", files=[("files", (name, text.encode())) for name, text in batch.items()]
                    )
                except httpx.TransportError:
                    self.cut_off += 1
                    return
                if reply.status_code != httpx.codes.ACCEPTED:
                    raise RuntimeError(reply.text)
                self.accepted += 1
                for name, text in batch.items():
                    self.sent[name] = Upload(text)

    def _batch(self) -> dict[str, str]:
        """Return a batch of files; a third of them are new versions of earlier ones."""
        old = self._chance.sample(sorted(self.sent), min(len(self.sent), FILES_PER_UPLOAD // 3))
        new = [f"articles/{len(self.sent) + at}.md" for at in range(FILES_PER_UPLOAD - len(old))]
        return {name: f"{self._chance.choice(self._texts)}\n\n{self._chance.random()}\n" for name in (*old, *new)}


def crash(folder: Path, texts: Sequence[str], *, rounds: int, seed: int) -> tuple[list[Round], Verdict]:
    """Kill the service `rounds` times, let it finish, and check its data.

    :param folder: an empty data folder, which the settings in force point to.
    :param texts: texts for the documents.
    """
    for tenant_id in TENANTS:
        Registry().add(tenant_id)
    chance = random.Random(seed)  # noqa: S311 - reproducible, not a secret
    senders = [Sender(tenant_id, texts, random.Random(chance.random())) for tenant_id in TENANTS]  # noqa: S311
    _close_stores()
    killed = [_run_round(folder, senders, chance.uniform(0.0, LONGEST_ROUND_SECONDS)) for _ in range(rounds)]
    with serving(folder):
        _await_jobs()
    return killed, _verdict(folder, senders)


def _run_round(folder: Path, senders: Sequence[Sender], seconds: float) -> Round:
    accepted, cut_off = sum(sender.accepted for sender in senders), sum(sender.cut_off for sender in senders)
    with serving(folder) as served:
        threads = [Thread(target=sender.send, args=(served.port,)) for sender in senders]
        for thread in threads:
            thread.start()
        time.sleep(seconds)
        os.kill(served.pid, signal.SIGKILL)
        for thread in threads:
            thread.join()
    open_jobs = len(_open_jobs())
    _close_stores()
    return Round(
        killed_after_ms=round(seconds * 1_000),
        accepted=sum(sender.accepted for sender in senders) - accepted,
        cut_off=sum(sender.cut_off for sender in senders) - cut_off,
        jobs_left=open_jobs,
    )


def _await_jobs() -> None:
    until = time.monotonic() + PATIENCE_SECONDS
    while _open_jobs() and time.monotonic() < until:
        time.sleep(0.2)
    _close_stores()


def _open_jobs() -> list[str]:
    return [job.job_id for tenant_id in TENANTS for job in _jobs_of(tenant_id)]


def _jobs_of(tenant_id: str) -> tuple[jobs.Job, ...]:
    with acting_as(Tenant(tenant_id, "crash")):
        return jobs.open_jobs()


def _verdict(folder: Path, senders: Sequence[Sender]) -> Verdict:
    findings = [_inspect(sender) for sender in senders]
    leftover_files = sum(1 for path in (folder / "uploads").rglob("*") if path.is_file())
    _close_stores()
    sums = {name: sum(asdict(finding)[name] for finding in findings) for name in asdict(findings[0])}
    return Verdict(**{**sums, "files_left": leftover_files})


def _inspect(sender: Sender) -> Verdict:
    with acting_as(Tenant(sender.tenant_id, "crash")):
        findings = compare(count=True)
        records = {record.doc_id: record for record in documents.all()}
        texts_in_force = {version.doc_id: version.text for version in versions.in_force(list(records))}
        stored = sorted(hit.id for hit in open_collection().scan())
        not_done = sum(job.state != "done" for job in jobs.latest(limit=1_000_000))
    expected = {
        name: upload
        for name, upload in sender.sent.items()
        if upload.acknowledged is not None or texts_in_force.get(name) in upload.unknown
    }
    return Verdict(
        documents=len(records),
        chunks=len(stored),
        lost=sum(name not in records for name in expected),
        wrong_version=sum(
            texts_in_force.get(name) not in (upload.acknowledged, *upload.unknown) for name, upload in expected.items()
        ),
        unasked=sum(name not in expected for name in records),
        chunks_that_differ=len(set(stored) ^ set(_undisturbed(sender.tenant_id, texts_in_force))),
        inconsistencies=0 if findings.clean else 1,
        jobs_not_done=not_done,
        files_left=0,
    )


def _undisturbed(tenant_id: str, texts: dict[str, str]) -> list[str]:
    """Return the chunks of the same files after an undisturbed run."""
    twin = f"{tenant_id}-undisturbed"
    Registry().add(twin)
    with TemporaryDirectory() as folder, acting_as(Tenant(twin, "crash")):
        for name, text in texts.items():
            path = Path(folder, name)
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
        Ingest().run_path(folder)
        return [chunk_id for record in documents.all() for chunk_id in record.chunk_ids]


def _close_stores() -> None:
    claims.close_all()
    index.close_all()
    database.close_all()


def texts() -> list[str]:
    """Return real articles, by default those of the demo shop."""
    try:
        (corpus, *_) = vkcloud(DATA, "ru")
        return [f"# {article.title}\n\n{article.text}" for article in corpus.corpus.documents()]
    except MissingData:
        return [path.read_text(encoding="utf-8") for path in sorted((DEMO / "ru").glob("*.md"))]


def main() -> int:
    """Crash, judge, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--seed", type=int, default=20)
    arguments = parser.parse_args()
    with TemporaryDirectory() as folder:
        os.environ |= {"OPORA_DATA_DIR": folder, "OPORA_MODELS_DIR": str(get_settings().models)}
        get_settings.cache_clear()
        rounds, verdict = crash(Path(folder), texts(), rounds=arguments.rounds, seed=arguments.seed)
    console = Console(stderr=True)
    table = Table(*asdict(rounds[0]))
    for one in rounds:
        table.add_row(*(str(value) for value in asdict(one).values()))
    console.print(table)
    console.print(asdict(verdict))
    result = {"schema": "crash.v1", "rounds": [asdict(one) for one in rounds], "verdict": asdict(verdict)}
    sys.stdout.write(json.dumps({**result, "flawless": verdict.is_clean}, indent=2) + "\n")
    return 0 if verdict.is_clean else 1


if __name__ == "__main__":
    sys.exit(main())
