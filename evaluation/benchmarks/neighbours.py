"""`python -m evaluation.benchmarks.neighbours [ATTACK ...]`: effect of one tenant's attack on another one's questions.

A real service with two tenants. One asks, alone and under each attack of `evaluation.benchmarks.attacks` by the other,
in turn, so that both are measured on the same machine. A line for each goes to standard error, all as JSON to standard
output; exit code 1: the 95th percentile of the neighbour is more than twice its idle value, in the median of the
rounds, or a question failed.
"""

import os
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass
from multiprocessing import get_context
from multiprocessing.synchronize import Event as ProcessEvent
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from threading import Event
from time import monotonic
from typing import Annotated

import typer

from evaluation.benchmarks import results
from evaluation.benchmarks.attacks import ATTACKER, ATTACKS, Attack, Target, prepare
from evaluation.benchmarks.load import Client, percentile
from evaluation.benchmarks.server import Served, free_port, installation, serving, token_for
from tenants.accounts.registry import Registry
from tenants.core.context import SCOPES

SCHEMA = "bench-neighbours.v2"
SECONDS = 15.0
ROUNDS = 3
MOST = 2.0
"""Upper limit of a neighbour's 95th percentile under attack, as a multiple of the idle one."""

NEIGHBOUR = "acme"
QUESTION = "Что значит код E20?"
_ARTICLE = {
    "doc_id": "errors.md",
    "title": "Коды ошибок стиральной машины",
    "text": "## E20\n\nКод E20 означает, что вода не сливается. Очистите фильтр сливного насоса и проверьте шланг.\n",
}
_PACE_SECONDS = 0.05
"""Pause between two questions of the neighbour, as of a person who reads."""

_SETTLE_SECONDS = 3.0
"""Pause after an attack, whose last requests may still be at work."""

_LAST = 10
"""Niceness of the attackers, which run on other machines in reality."""


@dataclass(frozen=True, slots=True)
class Measurement:
    """The neighbour under one attack: questions, failures, and milliseconds; `idle_p95` without it.

    `ratio` is the median of the rounds, `ratios` has all.
    """

    attack: str
    questions: int
    failed: int
    idle_p95: float
    p50: float
    p95: float
    ratio: float
    ratios: tuple[float, ...]

    @property
    def is_tolerable(self) -> bool:
        return self.ratio <= MOST and not self.failed


def measured(port: int, token: str, seconds: float, least: int = 20) -> tuple[list[float], int]:
    spent, failed = list[float](), 0
    until = monotonic() + seconds
    with closing(Client(port, token)) as client:
        while monotonic() < until or len(spent) < least:
            reply = client.ask(f"{QUESTION} {len(spent)}")
            spent.append(reply.milliseconds)
            failed += reply.outcome != "answered"
            Event().wait(_PACE_SECONDS)
    return spent, failed


def compare(
    port: int, provider_port: int, seconds: float, rounds: int, attacks: Mapping[str, Attack] = ATTACKS
) -> Iterator[Measurement]:
    attacker, neighbour = (token_for(tenant, *SCOPES) for tenant in (ATTACKER, NEIGHBOUR))
    target = Target(port, {"Authorization": f"Bearer {attacker}"}, provider_port)
    measured(port, neighbour, 0)
    for name, attack in attacks.items():
        idle, under, failures = list[list[float]](), list[list[float]](), 0
        for _ in range(rounds):
            spent, failed = measured(port, neighbour, seconds)
            idle.append(spent)
            with _elsewhere(attack, target):
                spent, failed_under = measured(port, neighbour, seconds)
            under.append(spent)
            failures += failed + failed_under
            Event().wait(_SETTLE_SECONDS)
        yield _measurement(name, idle, under, failures)


@contextmanager
def _elsewhere(attack: Attack, target: Target) -> Iterator[None]:
    """Run the attack in another process, as if on another machine, so that the service keeps its processors."""
    processes = get_context("spawn")
    under_way, over = processes.Event(), processes.Event()
    attacker = processes.Process(target=_attack, args=(attack, target, under_way, over))
    attacker.start()
    try:
        while not under_way.wait(1):
            if not attacker.is_alive():
                raise RuntimeError("the attack did not begin")
        yield
    finally:
        over.set()
        attacker.join()
    if attacker.exitcode:
        raise RuntimeError("the attack broke off")


def _attack(attack: Attack, target: Target, under_way: ProcessEvent, over: ProcessEvent) -> None:
    os.nice(_LAST)
    with attack(target):
        under_way.set()
        over.wait()


def _measurement(name: str, idle: list[list[float]], under: list[list[float]], failed: int) -> Measurement:
    spent = [one for window in under for one in window]
    of_idle = percentile([one for window in idle for one in window], 95)
    pairs = zip(idle, under, strict=True)
    ratios = tuple(round(percentile(later, 95) / percentile(earlier, 95), 2) for earlier, later in pairs)
    p50, p95 = percentile(spent, 50), percentile(spent, 95)
    return Measurement(
        name, len(spent), failed, round(of_idle, 1), round(p50, 1), round(p95, 1), median(ratios), ratios
    )


@contextmanager
def served(provider_port: int) -> Iterator[Served]:
    with TemporaryDirectory() as folder, installation(Path(folder)):
        for tenant in (ATTACKER, NEIGHBOUR):
            Registry().add(tenant, locale="ru")
        prepare(provider_port)
        with serving(Path(folder), OPORA_TOOL_NETWORKS="127.0.0.0/8", OPORA_QUEUED_BYTES="50000000") as running:
            for tenant in (ATTACKER, NEIGHBOUR):
                with running.client(token_for(tenant, *SCOPES)) as client:
                    client.post("/ingest/run", json={"documents": [_ARTICLE]}).raise_for_status()
            yield running


def main(
    attacks: Annotated[list[str] | None, typer.Argument(help=f"Of {', '.join(ATTACKS)}; all if none is named.")] = None,
    seconds: Annotated[float, typer.Option(help="Of each measurement, alone and under an attack.")] = SECONDS,
    rounds: Annotated[int, typer.Option(min=1, help="Measurements of each attack.")] = ROUNDS,
) -> None:
    """Measure and print; exit code 1 when a neighbour suffers."""
    if unknown := set(attacks or ()) - set(ATTACKS):
        raise typer.BadParameter(f"{', '.join(unknown)}: none of {', '.join(ATTACKS)}")
    chosen = {name: ATTACKS[name] for name in attacks or ATTACKS}
    provider_port, measurements = free_port(), list[Measurement]()
    with served(provider_port) as running:
        for measurement in compare(running.port, provider_port, seconds, rounds, chosen):
            of_rounds = ", ".join(map(str, measurement.ratios))
            results.console.print(
                f"{measurement.attack}: {measurement.ratio:.2f} of idle ({of_rounds})", highlight=False
            )
            measurements.append(measurement)
    suffered = [one.attack for one in measurements if not one.is_tolerable]
    columns = ("attack", "questions", "failed", "idle p95 ms", "p50 ms", "p95 ms", "of idle")
    rows = [tuple(asdict(measurement).values())[: len(columns)] for measurement in measurements]
    results.print_table("A neighbour under attack", columns, rows, suffered)
    results.end({"schema": SCHEMA, "results": [asdict(one) for one in measurements]}, bool(suffered))


if __name__ == "__main__":
    typer.run(main)
