"""`python -m evaluation.benchmarks.hostile`: what hostile files do to a real service that answers questions meanwhile.

Every generated bomb in full size and every public parser breaker is uploaded over HTTP as a separate job. Measured: the
time until each ends in text or in a typed error, the memory of its reader, and the median time of a question before,
during and after. A table goes to standard error, the same as JSON to standard output.
"""

import json
import os
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import quote

import numpy as np
from rich.console import Console
from rich.table import Table

from components.ingest.sandbox import MEMORY, SECONDS
from components.language.texts import terminal_locale, text
from evaluation import workspace
from evaluation.benchmarks.bombs import Bomb, bombs
from evaluation.benchmarks.load import Client, Reply
from evaluation.benchmarks.server import Served, serving
from evaluation.datasets.public import vkcloud
from evaluation.datasets.rows import DATA, MissingData, present
from settings import get_settings
from tenants import index
from tenants.access.tokens import issue
from tenants.accounts.registry import Registry
from tenants.core.context import Tenant
from tenants.storage import database

SCHEMA = "bench_hostile.v1"
IDLE_QUESTIONS = 300
WARM_UP = 40
_UPLOADER = "hostile"
_GRACE_SECONDS = 2.0
"""For the job around the file: the upload, its place in the queue, and our looking for its end."""


@dataclass(frozen=True, slots=True)
class FileOutcome:
    """Result of a file. `outcome` is `text`, or the code of the refusal."""

    kind: str
    name: str
    size: int
    outcome: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Measurement:
    """Response times of questions in milliseconds, and the results of the files."""

    figures: Mapping[str, float]
    files: Sequence[FileOutcome]
    files_outside: Sequence[str]


def main() -> int:
    """Measure and print. The exit code is 1 when a promise was broken or the public sets are absent."""
    console = Console(stderr=True)
    try:
        folder, asker, uploader, questions = prepare()
    except MissingData as error:
        console.print(text("evaluation.skipped", terminal_locale(), name="bench_hostile", path=str(error.path)))
        return 1
    with tempfile.TemporaryDirectory() as outside:
        # Whatever the service or its workers keep in passing would land here.
        os.environ |= {"TMPDIR": outside, "HOME": outside}
        # Made beforehand: making them takes the processor from who asks.
        files = list(_files())
        with serving(folder) as served:
            measured = measure(served, asker, uploader, questions, files)
        files_outside = [str(path) for path in (*Path(outside).rglob("*"), *Path("/tmp").glob("opora-slip*"))]  # noqa: S108
    measured = Measurement(measured.figures, measured.files, files_outside)
    violations = _violations(measured)
    _print(console, measured, violations)
    result = {"schema": SCHEMA, "figures": measured.figures, "files": [asdict(file) for file in measured.files]}
    sys.stdout.write(json.dumps({**result, "broken": violations}, ensure_ascii=False, indent=2) + "\n")
    return 1 if violations else 0


def prepare() -> tuple[Path, str, str, tuple[str, ...]]:
    """A data folder with a large tenant, a token to ask it with, one to upload with, and questions. Raises
    `MissingData`.
    """
    question_set = vkcloud(DATA, "ru")[0]
    present(DATA / "parser_files" / "dev" / "manifest.jsonl")
    folder = workspace.enter(get_settings().data_dir.resolve() / "bench-hostile")
    tenant = workspace.tenant_for(question_set.corpus, lambda *_: None)
    # Each run starts with nothing uploaded, so that no file is known from before.
    uploader = Tenant(f"{_UPLOADER}-{time.time_ns()}", subject="bench")
    Registry().add(uploader.tenant_id)
    tokens = [
        issue(get_settings(), token_tenant.tenant_id, scopes=frozenset({scope}), subject="bench", ttl_seconds=7_200)
        for token_tenant, scope in ((tenant, "ask"), (uploader, "ingest"))
    ]
    index.close_all()
    database.close_all()
    return folder, tokens[0], tokens[1], tuple(case.question for case in question_set.cases)


def measure(served: Served, asker: str, uploader: str, questions: Sequence[str], files: Sequence[Bomb]) -> Measurement:
    """Measure questions before, while and after the files are read."""
    client = Client(served.port, asker)
    for at in range(WARM_UP):
        client.ask(questions[at % len(questions)])
    idle = [client.ask(questions[at % len(questions)]) for at in range(IDLE_QUESTIONS)]
    reading = _Uploads(served, uploader, files)
    reading.start()
    during: list[Reply] = []
    while reading.is_alive():
        during.append(client.ask(questions[len(during) % len(questions)]))
    idle += [client.ask(questions[at % len(questions)]) for at in range(IDLE_QUESTIONS)]
    client.close()
    alone, busy = _median(idle), _median(during)
    figures = {
        "idle_ms_p50": alone,
        "during_ms_p50": busy,
        "slowdown": busy / alone,
        "questions_during": float(len(during)),
        "errors": float(sum(reply.failed for reply in (*idle, *during))),
        "files": float(len(reading.outcomes)),
        "slowest_seconds": max(file.seconds for file in reading.outcomes),
        "reader_highest_mb": reading.highest_mb,
        "service_highest_mb": served.memory_mb("VmHWM"),
    }
    return Measurement(figures, reading.outcomes, ())


class _Uploads(threading.Thread):
    """Uploads one file after the other and waits for the end of each."""

    def __init__(self, served: Served, token: str, files: Sequence[Bomb]) -> None:
        super().__init__(daemon=True)
        self.outcomes: list[FileOutcome] = []
        self.highest_mb = 0.0
        self._served = served
        self._files = files
        self._headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/octet-stream"}

    def run(self) -> None:
        for bomb in self._files:
            started_at = time.perf_counter()
            job = self._call("POST", f"/documents?name={quote(bomb.name)}", bomb.data)
            while job.get("finished_at") is None and "job_id" in job:
                time.sleep(0.05)
                self._sample_reader_memory()
                job = self._call("GET", f"/jobs/{job['job_id']}", b"")
            spent = time.perf_counter() - started_at
            self.outcomes.append(FileOutcome(bomb.kind, bomb.name, len(bomb.data), _outcome(job), round(spent, 2)))

    def _call(self, method: str, path: str, body: bytes) -> dict[str, object]:
        connection = HTTPConnection("127.0.0.1", self._served.port, timeout=60)
        try:
            connection.request(method, path, body, self._headers)
            answer = json.loads(connection.getresponse().read())
        finally:
            connection.close()
        return dict(answer)

    def _sample_reader_memory(self) -> None:
        for children in Path(f"/proc/{self._served.pid}/task").glob("*/children"):
            with suppress(OSError, KeyError):
                for pid in children.read_text(encoding="ascii").split():
                    self.highest_mb = max(self.highest_mb, Served(0, int(pid)).memory_mb("VmHWM"))


def _files() -> Iterator[Bomb]:
    yield from bombs()
    folder = DATA / "parser_files" / "dev"
    for line in (folder / "manifest.jsonl").read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        yield Bomb(f"public: {row['kind']}", row["file"], (folder / "files" / row["file"]).read_bytes())


def _outcome(job: Mapping[str, object]) -> str:
    report = job.get("report")
    if not isinstance(report, dict):
        return str(job.get("error") or job.get("code") or "lost")
    errors = report["errors"]
    return str(errors[0]["code"]) if errors else "text"


def _median(replies: Sequence[Reply]) -> float:
    return float(np.percentile([reply.milliseconds for reply in replies], 50)) if replies else float("nan")


def _violations(measured: Measurement) -> list[str]:
    """Return the broken promises."""
    figures = measured.figures
    overdue = [file for file in measured.files if file.seconds > SECONDS + _GRACE_SECONDS]
    faults = [f"{file.name}: {file.seconds} s" for file in overdue]
    faults += [f"{file.name}: {file.outcome}" for file in measured.files if file.outcome in {"lost", "internal_error"}]
    faults += [f"written outside: {path}" for path in measured.files_outside]
    if not figures["slowdown"] <= 2:
        faults.append(f"questions {figures['slowdown']:.2f} times slower")
    if figures["reader_highest_mb"] > MEMORY / 1e6:
        faults.append(f"a reader took {figures['reader_highest_mb']:.0f} MB")
    if figures["errors"]:
        faults.append(f"{figures['errors']:.0f} questions failed")
    return faults


def _print(console: Console, measured: Measurement, violations: Sequence[str]) -> None:
    table = Table()
    for column in ("kind", "file", "MB", "outcome", "seconds"):
        table.add_column(column)
    for file in measured.files:
        table.add_row(file.kind, file.name[-40:], f"{file.size / 1e6:.2f}", file.outcome, f"{file.seconds:.2f}")
    console.print(table)
    for name, value in measured.figures.items():
        console.print(f"{name}: {value:.2f}", highlight=False)
    console.print("broken: " + ("; ".join(violations) or "nothing"), highlight=False)


if __name__ == "__main__":
    sys.exit(main())
