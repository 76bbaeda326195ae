"""`python -m evaluation.benchmarks.neighbours [ATTACK ...]`: effect of one tenant's attack on another one's questions.

A real service with two tenants. One asks, first alone, then under each attack of `evaluation.benchmarks.attacks` by the
other. A line for each goes to standard error, all as JSON to standard output; exit code 1: the 95th percentile of the
neighbour is more than twice its idle value, or a question failed.
"""

import argparse
import json
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from multiprocessing import get_context
from multiprocessing.synchronize import Event as ProcessEvent
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event
from time import monotonic

import numpy as np

from evaluation.benchmarks.attacks import ATTACKER, ATTACKS, Attack, Target, prepare
from evaluation.benchmarks.load import Client
from evaluation.benchmarks.server import Served, free_port, serving
from settings import get_settings
from tenants.access.tokens import issue
from tenants.accounts.registry import Registry
from tenants.core.context import SCOPES
from tenants.storage import database

SCHEMA = "bench-neighbours.v1"
SECONDS = 15.0
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

_TOKEN_SECONDS = 3_600
_LAST = 10
"""Niceness of the attackers, which run on other machines in reality."""


@dataclass(frozen=True, slots=True)
class Measurement:
    """The neighbour under one attack: questions, failures, and milliseconds."""

    attack: str
    questions: int
    failed: int
    p50: float
    p95: float
    ratio: float

    @property
    def is_tolerable(self) -> bool:
        """Whether the neighbour got all answers in time."""
        return self.ratio <= MOST and not self.failed


def measured(port: int, token: str, seconds: float, least: int = 20) -> tuple[list[float], int]:
    """Measure the neighbour's questions; return the milliseconds and the number of failures."""
    client, spent, failed = Client(port, token), list[float](), 0
    until = monotonic() + seconds
    while monotonic() < until or len(spent) < least:
        reply = client.ask(f"{QUESTION} {len(spent)}")
        spent.append(reply.milliseconds)
        failed += reply.outcome != "answered"
        Event().wait(_PACE_SECONDS)
    client.close()
    return spent, failed


def compare(
    port: int, provider_port: int, seconds: float, attacks: Mapping[str, Attack] = ATTACKS
) -> Iterator[Measurement]:
    """Measure the neighbour alone, then under each attack."""
    tokens = {
        tenant: issue(get_settings(), tenant, scopes=SCOPES, subject="anna", ttl_seconds=_TOKEN_SECONDS)
        for tenant in (ATTACKER, NEIGHBOUR)
    }
    target = Target(port, {"Authorization": f"Bearer {tokens[ATTACKER]}"}, provider_port)
    measured(port, tokens[NEIGHBOUR], 0)
    idle, failed = measured(port, tokens[NEIGHBOUR], seconds)
    yield _measurement("none", idle, failed, idle)
    for name, attack in attacks.items():
        with _elsewhere(attack, target):
            under, failed = measured(port, tokens[NEIGHBOUR], seconds)
        yield _measurement(name, under, failed, idle)


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


def _measurement(name: str, spent: list[float], failed: int, idle: list[float]) -> Measurement:
    p50, p95 = (float(value) for value in np.percentile(spent, (50, 95)))
    return Measurement(
        name, len(spent), failed, round(p50, 1), round(p95, 1), round(p95 / float(np.percentile(idle, 95)), 2)
    )


@contextmanager
def served(provider_port: int) -> Iterator[Served]:
    """Run a service with both tenants, each with one article."""
    with TemporaryDirectory() as folder:
        os.environ |= {"OPORA_DATA_DIR": folder, "OPORA_MODELS_DIR": str(get_settings().models)}
        get_settings.cache_clear()
        for tenant in (ATTACKER, NEIGHBOUR):
            Registry().add(tenant, locale="ru")
        prepare(provider_port)
        limits = {"OPORA_TOOL_NETWORKS": "127.0.0.0/8", "OPORA_QUEUED_BYTES": "50000000"}
        with serving(Path(folder), **limits) as running:
            for tenant in (ATTACKER, NEIGHBOUR):
                token = issue(get_settings(), tenant, scopes=SCOPES, subject="anna", ttl_seconds=_TOKEN_SECONDS)
                with Target(running.port, {"Authorization": f"Bearer {token}"}, provider_port).client() as client:
                    client.post("/ingest/run", json={"documents": [_ARTICLE]}).raise_for_status()
            yield running
        database.close_all()


def main() -> int:
    """Measure and print; 1 when a neighbour suffers."""
    parser = argparse.ArgumentParser(prog="python -m evaluation.benchmarks.neighbours")
    parser.add_argument("attacks", nargs="*", choices=[*ATTACKS, []], metavar="ATTACK", help="default: all, in turn")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="of each attack")
    given = parser.parse_args()
    attacks = {name: ATTACKS[name] for name in given.attacks or ATTACKS}
    provider_port = free_port()
    with served(provider_port) as running:
        results = []
        for one in compare(running.port, provider_port, given.seconds, attacks):
            results.append(one)
            note = "" if one.is_tolerable else "  <-"
            sys.stderr.write(
                f"{one.attack:22}{one.questions:5} questions {one.failed:4} failed"
                f"  p50 {one.p50:7.1f} ms  p95 {one.p95:7.1f} ms  {one.ratio:6.2f} of idle{note}\n"
            )
    sys.stdout.write(json.dumps({"schema": SCHEMA, "results": [asdict(one) for one in results]}, indent=2) + "\n")
    return 1 if any(not one.is_tolerable for one in results) else 0


if __name__ == "__main__":
    sys.exit(main())
