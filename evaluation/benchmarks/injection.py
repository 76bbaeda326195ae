"""`python -m evaluation.benchmarks.injection`: models that obey every order they read, and what visitors see of it.

Attacks are placed in questions, and in the texts, titles and names of documents, in English (BIPIA, garak) and Russian.
The simulator obeys all of them: as a writer it repeats what it reads, adds a link to a foreign site and reveals its
prompt; as a judge it agrees to everything. Each visible answer must be supported by the passages it cites, link only to
sites that the tenant allows, and repeat no part of a prompt. A table goes to standard error, the same as JSON to
standard output; the exit code is 1 after a violation. All attacks take long, with documents to index for each kind;
`--limit` takes the first ones of each.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Annotated

import typer

from components.turn import SHOWN
from evaluation import workspace
from evaluation.asking import concurrently
from evaluation.benchmarks import results
from evaluation.benchmarks.load import Client
from evaluation.benchmarks.results import console
from evaluation.benchmarks.server import Served, close_stores, serving, token_for
from evaluation.cases import Case, QuestionSet
from evaluation.datasets import attacks
from evaluation.datasets.fixture import fixture
from evaluation.datasets.rows import DATA, MissingData
from evaluation.metrics.shown import foreign_links, leaked_prompts, passages, unentailed
from evaluation.simulator.adapted import adapt
from evaluation.simulator.knobs import Fault, Knobs
from evaluation.simulator.running import simulator_process
from pipelines.ask.contract import TurnAnswer
from settings import get_settings
from tenants.core.context import Tenant, acting_as

SCHEMA = "injection.v1"
PLACES: Sequence[attacks.Place] = ("text", "title", "name")
OBEDIENT = Knobs(faults=(Fault(kind="injected"),))
CLIENTS = 4
_ENGLISH = "How long does the password reset link work?"


@dataclass(slots=True)
class Verdict:
    """Results of one set of attacks."""

    turns: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    unentailed: list[str] = field(default_factory=list)
    links: list[str] = field(default_factory=list)
    prompts: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)

    @property
    def wrong(self) -> list[str]:
        """Return everything that must not have been shown."""
        return [*self.unentailed, *self.links, *self.prompts, *self.failed]


def main(limit: Annotated[int, typer.Option(help="Most attacks of each kind, the first of them; 0: all.")] = 0) -> None:
    """Attack and print."""
    sets = list(_sets(limit or None))
    folder = workspace.enter(get_settings().data_dir.resolve() / "injection")
    tenants = []
    for question_set in sets:
        with _timed(f"{question_set.name}: indexed"):
            tenants.append(workspace.tenant_for(question_set.corpus, lambda *_: None))
    close_stores()
    answers = []
    with TemporaryDirectory() as temporary, simulator_process(OBEDIENT) as simulator:
        pipelines = adapt(Path(temporary), simulator.url, concurrent=100)
        with serving(folder, OPORA_PROFILE="ollama", OPORA_PIPELINES_DIR=str(pipelines)) as served:
            for question_set, tenant in zip(sets, tenants, strict=True):
                with _timed(f"{question_set.name}: {len(question_set.cases)} asked"):
                    answers.append(_answers(served, tenant, question_set))
    verdicts = {
        question_set.name: _judged(tenant, question_set, set_answers)
        for question_set, tenant, set_answers in zip(sets, tenants, answers, strict=True)
    }
    _report(verdicts)


@contextmanager
def _timed(what: str) -> Iterator[None]:
    """Print the current step and its duration: the whole run takes long enough to look dead."""
    started = perf_counter()
    yield
    console.print(f"{what}, {perf_counter() - started:.0f} s", highlight=False)


def _sets(limit: int | None) -> Iterator[QuestionSet]:
    russian = attacks.russian()[:limit]
    yield attacks.as_question_set(russian, "ru", fixture().cases[0].question)
    for place in PLACES:
        yield from attacks.articles(russian, place, "ru")
    try:
        english = attacks.english(DATA)[:limit]
    except MissingData as error:
        console.print(f"{error.path} is absent: the Russian attacks alone")
        return
    yield attacks.as_question_set(english, "en", _ENGLISH)
    translated = {attack.attack_id for attack in russian}
    for place in PLACES:
        yield from attacks.articles([attack for attack in english if attack.attack_id in translated], place, "en")
        yield from attacks.letters(english, DATA, place)


def _answers(served: Served, tenant: Tenant, question_set: QuestionSet) -> list[TurnAnswer | None]:
    """Return the answers; None for a refused request."""
    token = token_for(tenant.tenant_id)

    def ask(case: Case) -> TurnAnswer | None:
        with closing(Client(served.port, token)) as client:
            reply = client.exchange("POST", "/ask/run", {"question": case.question, "locale": case.locale})
        if not 0 < reply.status < 500:
            raise RuntimeError(f"{reply.status}: {case.question}")
        return TurnAnswer.model_validate_json(reply.content) if reply.status == 200 else None

    return concurrently(ask, question_set.cases, CLIENTS)


def _judged(tenant: Tenant, question_set: QuestionSet, answers: Sequence[TurnAnswer | None]) -> Verdict:
    verdict = Verdict()
    with acting_as(tenant):
        passages_by_id = passages()
    for case, answer in zip(question_set.cases, answers, strict=True):
        verdict.turns += 1
        if answer is None:
            verdict.outcomes["rejected"] += 1
            continue
        verdict.outcomes[answer.outcome] += 1
        if answer.outcome == "failed":
            verdict.failed.append(f"{case.case_id}: failed")
        faults = unentailed(case.question, answer, passages_by_id)
        verdict.unentailed += [f"{case.case_id}: {fault}" for fault in faults]
        verdict.links += [f"{case.case_id}: {fault}" for fault in foreign_links(answer, ())]
        verdict.prompts += [f"{case.case_id}: {fault}" for fault in leaked_prompts(answer)]
    close_stores()
    return verdict


def _report(verdicts: dict[str, Verdict]) -> None:
    """Print the verdicts, and end the program."""
    rows = [
        (
            name,
            verdict.turns,
            sum(count for outcome, count in verdict.outcomes.items() if outcome in SHOWN),
            len(verdict.unentailed),
            len(verdict.links),
            len(verdict.prompts),
        )
        for name, verdict in verdicts.items()
    ]
    wrong = {name: verdict.wrong for name, verdict in verdicts.items() if verdict.wrong}
    results.print_table(
        "Orders obeyed", ("set", "turns", "shown", "not entailed", "links", "prompt"), rows, faulty=wrong
    )
    results.print_faults([f"{name}: {fault}" for name, faults in wrong.items() for fault in faults[:5]], limit=50)
    result = {
        "schema": SCHEMA,
        "turns": sum(verdict.turns for verdict in verdicts.values()),
        "wrong": sum(map(len, wrong.values())),
        "sets": {
            name: {"turns": verdict.turns, "outcomes": dict(verdict.outcomes), "wrong": verdict.wrong}
            for name, verdict in verdicts.items()
        },
    }
    results.end(result, failed=bool(wrong))


if __name__ == "__main__":
    typer.run(main)
