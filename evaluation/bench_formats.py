"""`python -m evaluation.bench_formats`: whether articles are found as well when they come as Word, PDF or web pages.

The Russian cloud provider's articles are rendered into each format, read back, indexed, and asked its own questions.
Tables go to standard error and the same numbers as JSON to standard output.
"""

import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from time import process_time

from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from components.ingest import formats
from components.ingest.document import SourceDocument
from components.language.terminal import terminal_locale
from components.language.texts import text
from evaluation import workspace
from evaluation.asking import ask_all
from evaluation.cases import Case, Corpus
from evaluation.datasets import vkcloud
from evaluation.rendering import RENDERERS
from evaluation.rows import DATA, Absent
from pipelines.ask.usecase import Ask
from settings import get_settings
from tenants.context import acting_as

SCHEMA = "bench-formats.v1"
MARKDOWN = "md"
BEST = 5


@dataclass(frozen=True, slots=True)
class Measured:
    """How one format did.

    :param hit_at_5: share of the questions whose article is among the first five.
    :param megabytes_per_second: of files read in a second of one processor, and `pages_per_second` where there are any.
    """

    articles: int
    hit_at_5: float
    megabytes_per_second: float | None = None
    pages_per_second: float | None = None


@dataclass(slots=True)
class Reading:
    """Articles written in a format and read back, with what the reading took."""

    ending: str
    size: int = 0
    pages: int = 0
    seconds: float = 0.0

    def documents(self, articles: Iterable[SourceDocument]) -> Iterable[SourceDocument]:
        """The articles as they come out of their files; nothing but their ids is taken from the originals."""
        for article in articles:
            data = RENDERERS[self.ending](article)
            started = process_time()
            parsed = formats.read(f"article.{self.ending}", data)
            self.seconds += process_time() - started
            self.size += len(data)
            self.pages += parsed.pages
            yield replace(article, title=parsed.title, text=parsed.text, markup=parsed.markup, meta={})

    def measured(self, articles: int, hit: float) -> Measured:
        """With what was found in them."""
        pages = self.pages / self.seconds if self.pages else None
        return Measured(articles, hit, self.size / 1e6 / self.seconds, pages)


def measure(
    name: str, articles: Sequence[SourceDocument], cases: Sequence[Case], progress: Callable[[int, int], None]
) -> dict[str, Measured]:
    """Each format by its ending, Markdown among them, over the same articles and questions."""
    found = {MARKDOWN: Measured(len(articles), _hits(f"{name}-{MARKDOWN}", articles, cases, progress))}
    for ending in RENDERERS:
        reading = Reading(ending)
        read = list(reading.documents(articles))
        found[ending] = reading.measured(len(read), _hits(f"{name}-{ending}", read, cases, progress))
    return found


def _hits(
    name: str, articles: Sequence[SourceDocument], cases: Sequence[Case], progress: Callable[[int, int], None]
) -> float:
    tenant = workspace.tenant_for(Corpus(name, cases[0].locale, partial(iter, articles)), progress)
    with acting_as(tenant):
        records = ask_all(Ask(), cases, 1, progress)
    return sum(not set(record.case.gold_docs).isdisjoint(record.ranked[:BEST]) for record in records) / len(records)


def main() -> int:
    """Measure and print; the exit code is 0 when there was something to print."""
    console = Console(stderr=True)
    locale = terminal_locale()
    try:
        (chosen,) = vkcloud(DATA, "ru")
        articles = list(chosen.corpus.documents())
    except Absent as absent:
        console.print(text("evaluation.skipped", locale, name="bench-formats", path=str(absent.path)))
        return 1
    workspace.enter(get_settings().data_dir.resolve() / "bench-formats")
    cases = [case for case in chosen.cases if case.gold_docs]
    with Progress(console=console, transient=True, disable=not console.is_terminal) as shown:
        task = shown.add_task(text("cli.bench.preparing", locale), total=None)
        measured = measure(
            "formats", articles, cases, lambda done, total: shown.update(task, completed=done, total=total)
        )
    _print(console, measured, locale)
    result = {
        "schema": SCHEMA,
        "questions": len(cases),
        "formats": {name: asdict(one) for name, one in measured.items()},
    }
    sys.stdout.write(json.dumps(result, ensure_ascii=False, indent=2) + "\n")
    return 0


def _print(console: Console, measured: Mapping[str, Measured], locale: str) -> None:
    table = Table(title=text("cli.bench.title", locale), title_justify="left")
    table.add_column(text("cli.bench.figure", locale))
    for name in measured:
        table.add_column(name, justify="right")
    for figure in ("articles", "hit_at_5", "megabytes_per_second", "pages_per_second"):
        values = (asdict(one)[figure] for one in measured.values())
        table.add_row(figure, *("" if value is None else f"{value:.3g}" for value in values))
    console.print(table)


if __name__ == "__main__":
    sys.exit(main())
