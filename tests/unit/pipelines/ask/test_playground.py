"""The playground: trials with settings that are not in force."""

import pytest

from pipelines.ask import playground
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
