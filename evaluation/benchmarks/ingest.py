"""`python -m evaluation.benchmarks.ingest`: how fast documents are taken in, and in how much memory, by `opora ingest`.

The cloud provider's articles, Russian and English, are repeated with edits until there are enough; each load runs in a
separate process. A quarter of them shows whether memory grows with the batch, and the same load again the cost of
unchanged documents. A table goes to standard error, the same as JSON to standard output.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, count, islice
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from tempfile import TemporaryDirectory, TemporaryFile
from time import sleep
from typing import Annotated

import typer

from components.ingest.document import SourceDocument
from evaluation.benchmarks import results
from evaluation.benchmarks.server import resident_mb
from evaluation.datasets.rows import DATA, present
from pipelines.ingest.usecase import read_path
from settings import ROOT, get_settings

SCHEMA = "bench-ingest.v1"
ARTICLES = 6_000
_POLL_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class Load:
    """A run of `opora ingest`.

    :param seconds: duration of the run from its report. `cpu_seconds` and `peak_mb` cover the process and its workers,
        including startup and the final compaction; memory is sampled ten times a second.
    """

    chunks: int
    seconds: float
    cpu_seconds: float
    peak_mb: float


def main(articles: Annotated[int, typer.Option(min=4, help="How many to load.")] = ARTICLES) -> None:
    """Load everything, measure and print. `_quarter` is the load of a quarter of the articles."""
    with TemporaryDirectory(prefix="opora-bench-") as place:
        folder = Path(place)
        all_articles, quarter = folder / "all.jsonl", folder / "quarter.jsonl"
        _write(all_articles, articles)
        _write(quarter, articles // 4)
        small = _load(folder / "small", quarter)
        first = _load(folder / "data", all_articles)
        again = _load(folder / "data", all_articles)
    figures: dict[str, results.Value] = {
        "articles": articles,
        "chunks": first.chunks,
        "chunks_per_second": first.chunks / first.seconds,
        "chunks_per_cpu_second": first.chunks / first.cpu_seconds,
        "peak_mb": first.peak_mb,
        "peak_mb_quarter": small.peak_mb,
        "unchanged_seconds": again.seconds,
        "unchanged_times_faster": first.seconds / again.seconds,
    }
    results.finish(SCHEMA, figures, title="opora ingest")


def _load(data: Path, source: Path) -> Load:
    command = [sys.executable, "-m", "cli", "ingest", str(source), "--json"]
    environment = os.environ | {"OPORA_DATA_DIR": str(data), "OPORA_MODELS_DIR": str(get_settings().models)}
    before, peak = getrusage(RUSAGE_CHILDREN), 0.0
    with TemporaryFile() as output:
        with subprocess.Popen(command, cwd=ROOT, env=environment, stdout=output) as process:  # noqa: S603
            while process.poll() is None:
                peak = max(peak, resident_mb(process.pid))
                sleep(_POLL_SECONDS)
        output.seek(0)
        report = json.load(output)
    used = getrusage(RUSAGE_CHILDREN)
    cpu_seconds = used.ru_utime + used.ru_stime - before.ru_utime - before.ru_stime
    return Load(report["chunks_written"], report["seconds"], cpu_seconds, peak)


def _repeated() -> Iterator[SourceDocument]:
    """Repeat the articles under other names, each time with some changed words."""
    files = [present(DATA / "vkcloud" / "corpus" / f"corpus_{language}.jsonl") for language in ("ru", "en")]
    documents = [document for file in files for document in read_path(file)]
    return chain.from_iterable((_edited(document, edition) for document in documents) for edition in count())


def _edited(document: SourceDocument, edition: int) -> SourceDocument:
    edited = document.text.replace(". ", f" (редакция {edition}). ") if edition else document.text
    return SourceDocument(f"{document.doc_id}#{edition}", document.title, edited, lang=document.lang)


def _write(path: Path, articles: int) -> None:
    with path.open("w", encoding="utf-8") as lines:
        for document in islice(_repeated(), articles):
            row = {"doc_id": document.doc_id, "title": document.title, "text": document.text, "lang": document.lang}
            lines.write(json.dumps(row, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    results.run(main)
