"""The playground: trials with settings that are not in force."""

import asyncio

import pytest

from components.turn import Turn
from pipelines.ask import playground
from pipelines.ask.answering import answer_of
from pipelines.ask.contract import TurnAnswer
from pipelines.ask.playground import PlaygroundRequest, Trial
from pipelines.ask.runner import Runner
from pipelines.ask.usecase import Ask
from tenants.core.context import Tenant
from tenants.core.errors import RateLimited


async def test_a_trial_beyond_the_rate_limit_builds_no_pipeline(shop: Tenant, monkeypatch: pytest.MonkeyPatch) -> None:
    async def refuse(_: Runner) -> None:
        raise RateLimited(60)

    built: list[object] = []
    monkeypatch.setattr(Runner, "_admit", refuse)
    monkeypatch.setattr(playground, "_engine", built.append)
    runner = Runner(Ask(), workers=1, budget=30)
    asked = PlaygroundRequest(question="Сколько стоит доставка?", trials=(Trial(enough=0.3),))
    with pytest.raises(RateLimited):
        await playground.try_out(runner, asked)
    runner.close()
    assert built == []


async def test_a_tenant_tries_one_question_at_a_time(shop: Tenant, monkeypatch: pytest.MonkeyPatch) -> None:
    at_once: list[int] = [0]

    async def counted(*_: object) -> TurnAnswer:
        at_once.append(at_once[-1] + 1)
        await asyncio.sleep(0)
        at_once.append(at_once[-1] - 1)
        return answer_of(Turn(turn_id="t-1", question="?", outcome="refused"))

    monkeypatch.setattr(playground, "_answer", counted)
    runner = Runner(Ask(), workers=1, budget=30)
    asked = PlaygroundRequest(question="Сколько стоит доставка?")
    await asyncio.gather(*(playground.try_out(runner, asked) for _ in range(4)))
    runner.close()
    assert (max(at_once), len(at_once)) == (1, 9)
