"""Streams of answers that the checks replace: a client is shown nothing that is taken back."""

from collections.abc import Iterator

import pytest

from evaluation.benchmarks.streams import protocol_faults, stream_turn
from evaluation.simulator.adapted import adapt
from evaluation.simulator.knobs import Fault, Knobs
from evaluation.simulator.running import simulator_thread
from evaluation.simulator.server import Simulator
from settings import Settings
from tenants.access.tokens import issue
from tenants.accounts import policy
from tenants.accounts.registry import Registry
from tenants.core.context import Tenant, acting_as
from tenants.storage import database
from tests.attack.attacking import VICTIM, client_of
from tests.service.serving import ALL_SCOPES, Server, environment, in_force, serving

QUESTIONS = ("Что означает код E20?", "Что делать при E10?", "Можно ли вернуть товар через 20 дней?")
FAULTS = (Fault(kind="injected", task="answer"), Fault(kind="doubtful"), Fault(kind="sloppy", task="answer"))


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Server, str, Simulator]]:
    """A service where a simulated model writes the answers, a token for it, and the simulator."""
    folder = tmp_path_factory.mktemp("written")
    with simulator_thread() as (simulator, url):
        settings = Settings(data_dir=folder, pipelines_dir=adapt(folder / "pipelines", url), rate_limit_per_minute=0)
        Registry(settings).add(VICTIM, locale="ru")
        with in_force(settings), acting_as(Tenant(VICTIM, "admin")):
            policy.change(profile="ollama")
        token = issue(settings, VICTIM, scopes=ALL_SCOPES, subject="anna", ttl_seconds=3_600)
        with serving(environment(settings)) as server, client_of(server, settings, VICTIM):
            yield server, token, simulator
        database.close_all()


@pytest.mark.parametrize("fault", FAULTS, ids=[fault.kind for fault in FAULTS])
def test_what_is_streamed_is_final_in_every_protocol(written: tuple[Server, str, Simulator], fault: Fault) -> None:
    server, token, simulator = written
    simulator.set_knobs(Knobs(faults=(fault,)))
    for question in QUESTIONS:
        turn = stream_turn(server.port, token, question)
        assert turn.faults == []
        assert "revise" not in (names := [event.name for event in turn.events])
        assert "retract" not in names or "token" not in names
        assert list(protocol_faults(server.port, token, question)) == []
    assert simulator.calls
