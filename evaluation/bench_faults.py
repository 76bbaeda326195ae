"""`python -m evaluation.bench_faults`: every way in which a model or a tool fails, at every task, on both passes.

A real service, a simulator that fails as told, over HTTP. Every trial has to end as declared in `evaluation/faults.py`:
status 200, within the turn's time, nothing shown that the cited passages do not support, no link elsewhere, no prompt.
Then one model is down altogether: the circuit has to open, so that turns are quick and nobody calls it, and to close
when it is back. A table of what went otherwise goes to standard error, JSON to standard output; the exit code is 1 when
anything did.
"""

import json
import sys
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from tempfile import TemporaryDirectory

from rich.console import Console
from rich.progress import track
from rich.table import Table

from components.turn import Passage
from evaluation import workspace
from evaluation.faults import QUESTION, SEARCHING, TASKS, Trial, trials
from evaluation.fixture import fixture
from evaluation.server import serving
from evaluation.shown import foreign_links, passages, told_prompts, unentailed
from evaluation.simulator.adapted import adapt, equip, tool
from evaluation.simulator.knobs import Fault, Knobs
from evaluation.simulator.running import Remote, simulating
from pipelines.ask.contract import TurnAnswer
from pipelines.ingest.usecase import Ingest
from settings import get_settings
from tenants import database, index, tools
from tenants.context import Tenant, acting_as
from tenants.tokens import issue

SCHEMA = "faults.v1"
PROFILES = ("ollama", "openai")
TURN_SECONDS = 4.0
"""The time of a turn, far below the 30 s of a call: a model that hangs takes all of it."""
FAILURES = 5
PAUSE_SECONDS = 2.0
_SLACK_SECONDS = 0.25
_TOKEN_SECONDS = 36_000


@dataclass(frozen=True, slots=True)
class Asked:
    """An answer and the seconds it took; `status` is that of HTTP."""

    status: int
    seconds: float
    answer: TurnAnswer | None


class Visitor:
    """Asks over one connection."""

    def __init__(self, port: int, tenant_id: str) -> None:
        token = issue(get_settings(), tenant_id, scopes=frozenset({"ask"}), subject="bench", ttl_seconds=_TOKEN_SECONDS)
        self._headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        self._connection = HTTPConnection("127.0.0.1", port, timeout=60)

    def ask(self, question: str) -> Asked:
        """Put a question."""
        started = time.monotonic()
        self._connection.request("POST", "/ask/run", json.dumps({"question": question}), self._headers)
        response = self._connection.getresponse()
        body = response.read()
        spent = time.monotonic() - started
        return Asked(response.status, spent, TurnAnswer.model_validate_json(body) if response.status == 200 else None)


def main() -> int:
    """Try everything and print."""
    console = Console(stderr=True)
    folder = workspace.enter(get_settings().data_dir.resolve() / "faults")
    tenant = workspace.tenant_for(fixture().corpus, lambda *_: None)
    wrong: dict[str, list[str]] = {}
    outcomes: Counter[str] = Counter()
    slowest = 0.0
    for profile in PROFILES:
        with TemporaryDirectory() as temporary, simulating() as simulator:
            pipelines = adapt(Path(temporary), simulator.url, profile, concurrent=10_000, failures=10_000)
            known = _equipped(equip(pipelines, simulator.url, profile), simulator.url, tenant)
            with serving(folder, **_environment(profile, pipelines)) as served:
                visitor = Visitor(served.port, tenant.tenant_id)
                for trial in track(list(trials()), profile, console=console, transient=True):
                    simulator.turn_to(trial.knobs)
                    asked = visitor.ask(trial.question)
                    slowest = max(slowest, asked.seconds)
                    outcomes[asked.answer.outcome if asked.answer else str(asked.status)] += 1
                    if found := _faults(trial, asked, known):
                        wrong[f"{profile}/{trial.name}"] = found
            pipelines = adapt(Path(temporary), simulator.url, profile, failures=FAILURES, pause=PAUSE_SECONDS)
            with serving(folder, **_environment(profile, pipelines)) as served:
                if found := _circuit(Visitor(served.port, tenant.tenant_id), simulator):
                    wrong[f"{profile}/circuit"] = found
    _print(console, wrong, outcomes, slowest)
    return 1 if wrong else 0


def _equipped(pipelines: Path, url: str, tenant: Tenant) -> Mapping[str, Passage]:
    """Give the tenant vectors and a tool of the simulator; its passages, by chunk id."""
    with acting_as(tenant):
        Ingest(pipelines / "ingest" / "ingest.yaml").rebuild().finish()
        tools.put(tools.parsed(tool(url, timeout=TURN_SECONDS / 4)))
        known = passages()
    index.close_all()
    database.close_all()
    return known


def _environment(profile: str, pipelines: Path) -> dict[str, str]:
    return {
        "OPORA_PROFILE": profile,
        "OPORA_PIPELINES_DIR": str(pipelines),
        "OPORA_TURN_TIMEOUT_SECONDS": str(TURN_SECONDS),
        "OPENAI_API_KEY": "none",
        "OPORA_TOOL_NETWORKS": "127.0.0.0/8",
    }


def _faults(trial: Trial, asked: Asked, known: Mapping[str, Passage]) -> list[str]:
    """What went otherwise than declared."""
    if asked.answer is None:
        return [f"status {asked.status}"]
    answer = asked.answer
    found = [*unentailed(answer, known), *foreign_links(answer, ()), *told_prompts(answer)]
    if asked.seconds > TURN_SECONDS + _SLACK_SECONDS:
        found.append(f"took {asked.seconds:.1f} s")
    if answer.outcome != trial.outcome:
        found.append(f"{answer.outcome} instead of {trial.outcome}")
    if trial.degraded not in (answer.meta.degraded or ("",)) or (answer.meta.degraded and not trial.degraded):
        found.append(f"degraded {list(answer.meta.degraded)} instead of {trial.degraded or 'nothing'}")
    return found


def _circuit(visitor: Visitor, simulator: Remote) -> list[str]:
    """What is wrong with the breaker: it opens when a model is down, and closes when it is back."""
    down = Knobs(faults=tuple(Fault(kind="500", task=task) for task in TASKS if task not in SEARCHING))
    found = []
    simulator.turn_to(down)
    for _ in range(FAILURES):
        visitor.ask(QUESTION)
    simulator.turn_to(down)
    visitor.ask(QUESTION)
    if any(call.task not in SEARCHING for call in simulator.calls()):
        found.append("a model that is down is called again and again")
    simulator.turn_to(Knobs())
    time.sleep(PAUSE_SECONDS)
    answers = [visitor.ask(QUESTION).answer for _ in range(3)]
    if answers[-1] is None or answers[-1].meta.degraded:
        found.append("the circuit stays open when the model is back")
    return found


def _print(console: Console, wrong: Mapping[str, list[str]], outcomes: Mapping[str, int], slowest: float) -> None:
    table = Table("trial", "otherwise than declared", title="Faults of models", title_justify="left")
    for name, found in wrong.items():
        table.add_row(name, "\n".join(found))
    console.print(table)
    total = sum(outcomes.values())
    console.print(
        f"{total} trials, {total - sum('circuit' not in name for name in wrong)} as declared", highlight=False
    )
    result = {"schema": SCHEMA, "trials": total, "outcomes": dict(outcomes), "slowest_seconds": slowest, "wrong": wrong}
    sys.stdout.write(json.dumps(result, ensure_ascii=False, indent=2) + "\n")


if __name__ == "__main__":
    sys.exit(main())
