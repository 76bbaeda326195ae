"""`python -m evaluation.bench_replay`: does replay list exactly the turns whose outcome a change changes?

The demo shop loses a third of its articles, so that many questions are only nearly answered. 200 of its headings and
of the benchmark's refused questions are asked and recorded, then replayed against a pipeline with a lowered threshold,
and against brute force: each question simply asked of both pipelines. Then one article is changed, and `--document`
is compared with asking everything again.

A table goes to standard error, the same as JSON to standard output; the exit code is 1 when the lists differ.
"""

import json
import os
import random
import sys
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

import yaml
from rich.console import Console
from rich.table import Table

from components.ingest.document import SourceDocument
from evaluation.fixture import DEMO, questions
from pipelines.ask.contract import AskRequest
from pipelines.ask.engine import YAML, AskEngine
from pipelines.ask.replay import Replay, Replayed, Trial
from pipelines.ask.usecase import Ask
from pipelines.ingest.usecase import Ingest, read_path
from settings import get_settings
from tenants import database, index
from tenants.audit import search
from tenants.audit.search import Record, Wanted
from tenants.context import SCOPES, Tenant, acting_as
from tenants.registry import Registry

TURNS = 200
LOWERED = 0.15
SHOP = Tenant("shop", "bench", SCOPES)
EDITED = "returns.md"
_HEADING_LENGTH = 80


@dataclass(frozen=True, slots=True)
class Result:
    """Of `turns` recorded ones, how many change; `wrong` are listed and do not, or do and are not listed.

    `found` turns had found the edited document and were asked again; `beyond` are turns that it changes although they
    had not found it, which only a replay of everything shows.
    """

    turns: int
    outcomes_changed: int
    outcomes_wrong: int
    milliseconds_a_turn: float
    found: int
    edited_changed: int
    edited_wrong: int
    beyond: int


def measure(folder: Path) -> Result:
    """Record, try a lowered threshold, change an article."""
    articles = list(read_path(DEMO / "ru"))
    kept = [one for number, one in enumerate(articles) if number % 3 or one.doc_id == EDITED]
    Ingest().run(kept)
    _record(articles)
    records = search.find(Wanted(), limit=TURNS)
    lowered = _lowered(folder)
    started = perf_counter()
    listed = {turn.record.turn_id for turn in _replayed(Trial(pipeline=lowered), records) if "outcome" in turn.changes}
    spent = perf_counter() - started
    before, after = _outcomes(AskEngine(), records), _outcomes(AskEngine(lowered), records)
    changed = {turn_id for turn_id in before if before[turn_id] != after[turn_id]}

    Ingest().run([_edited(one) for one in kept if one.doc_id == EDITED])
    found = search.find(Wanted(document=EDITED), limit=TURNS)
    quick = {turn.record.turn_id for turn in _replayed(Trial(), found) if turn.changes}
    whole = {turn.record.turn_id for turn in _replayed(Trial(), records) if turn.changes}
    had_found = {record.turn_id for record in found}
    return Result(
        turns=len(records),
        outcomes_changed=len(changed),
        outcomes_wrong=len(changed ^ listed),
        milliseconds_a_turn=round(spent / len(records) * 1_000, 1),
        found=len(found),
        edited_changed=len(quick),
        edited_wrong=len((whole & had_found) ^ quick),
        beyond=len(whole - had_found),
    )


def _record(articles: Iterable[SourceDocument]) -> None:
    lines = {line.strip("# \n") for article in articles for line in article.text.splitlines()}
    headings = sorted(line for line in lines if 0 < len(line) < _HEADING_LENGTH)
    refused = list(questions().refused)
    asked = [*random.Random(7).sample(headings, TURNS - len(refused)), *refused]  # noqa: S311 - reproducible
    ask = Ask()
    ask.warm_up()
    for question in asked:
        ask.answer(AskRequest(question=question))
    ask.close()


def _lowered(folder: Path) -> Path:
    content = yaml.safe_load(YAML.read_text(encoding="utf-8"))
    content["components"]["evaluate_retrieval"]["init_parameters"]["threshold"] = LOWERED
    path = folder / "lowered.yaml"
    path.write_text(yaml.safe_dump(content), encoding="utf-8")
    return path


def _edited(article: SourceDocument) -> SourceDocument:
    return replace(article, text=article.text.replace("14 дней", "45 дней").replace("7 дней", "30 дней"))


def _replayed(trial: Trial, records: Iterable[Record]) -> list[Replayed]:
    replay = Replay(trial)
    turns = list(replay.run(records, lambda _done: None))
    replay.close()
    return turns


def _outcomes(engine: AskEngine, records: Iterable[Record]) -> dict[str, str]:
    """Brute force: what each question comes to when it is simply asked."""
    ask = Ask(engine)
    return {one.turn_id: str(ask.turn(AskRequest(question=one.question or "")).outcome) for one in records}


def main() -> None:
    """Measure, print, judge."""
    with TemporaryDirectory() as place:
        os.environ["OPORA_DATA_DIR"] = str(Path(place, "data"))
        get_settings.cache_clear()
        Registry().add(SHOP.tenant_id)
        with acting_as(SHOP):
            result = measure(Path(place))
        index.close_all()
        database.close_all()
    table = Table("what", "found", show_header=False)
    for name, value in asdict(result).items():
        table.add_row(name, str(value))
    Console(stderr=True).print(table)
    sys.stdout.write(json.dumps({"schema": "bench_replay.v1", **asdict(result)}, indent=2) + "\n")
    sys.exit(1 if result.outcomes_wrong or result.edited_wrong or not result.outcomes_changed else 0)


if __name__ == "__main__":
    main()
