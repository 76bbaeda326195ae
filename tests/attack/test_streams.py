"""Streams of answers that the checks replace: nothing that is shown is taken back, unless the tenant allows it.

Every protocol ends with the text of the result.
"""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing

import pytest

from evaluation.benchmarks.load import Client
from evaluation.benchmarks.streams import read_events, stream_turn
from evaluation.simulator.adapted import adapt
from evaluation.simulator.knobs import Fault, Knobs
from evaluation.simulator.running import simulator_thread
from evaluation.simulator.server import Simulator
from pipelines.ask.contract import TurnAnswer
from pipelines.ask.openai_chat import readable
from settings import Settings
from tenants.access.tokens import issue
from tenants.accounts import policy
from tenants.accounts.registry import Registry
from tenants.core.context import Tenant, acting_as
from tenants.storage import database
from tests.attack.attacking import VICTIM, client_of
from tests.service.serving import ALL_SCOPES, Server, environment, in_force, serving

QUESTIONS = ("Что означает код E20?", "Что делать при E10?", "Можно ли вернуть товар через 20 дней?")
FAULTS = (
    Fault(kind="injected", task="answer"),
    Fault(kind="doubtful"),
    Fault(kind="sloppy", task="answer"),
    Fault(kind="invented"),
    Fault(kind="500"),
)
TENANTS = {"verified": VICTIM, "optimistic": "hopeful"}
"""A tenant for each way of streaming."""


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Server, Mapping[str, str], Simulator]]:
    """A service where a simulated model writes the answers, a token for each way of streaming, and the simulator."""
    folder = tmp_path_factory.mktemp("written")
    with ExitStack() as stack:
        simulator, url = stack.enter_context(simulator_thread())
        settings = Settings(data_dir=folder, pipelines_dir=adapt(folder / "pipelines", url), rate_limit_per_minute=0)
        for streaming, tenant_id in TENANTS.items():
            Registry(settings).add(tenant_id, locale="ru")
            with in_force(settings), acting_as(Tenant(tenant_id, "admin")):
                policy.change(profile="ollama", streaming=streaming)
        tokens = {
            streaming: issue(settings, tenant_id, scopes=ALL_SCOPES, subject="anna", ttl_seconds=3_600)
            for streaming, tenant_id in TENANTS.items()
        }
        server = stack.enter_context(serving(environment(settings)))
        for tenant_id in TENANTS.values():
            stack.enter_context(client_of(server, settings, tenant_id))
        yield server, tokens, simulator
        database.close_all()


def protocol_faults(port: int, token: str, question: str) -> Iterator[str]:
    """Yield where the other protocols show another text than that of the result, or show it twice."""
    completion = {"messages": [{"role": "user", "content": question}], "stream": True, "model": "ask"}
    said = ""
    result: Mapping[str, object] = {}
    with closing(Client(port, token)) as client:
        for event in read_events(client.send("POST", "/v1/chat/completions", completion)):
            for choice in event.data.get("choices", ()):
                said += choice["delta"].get("content") or ""
            result = event.data.get("opora") or result
        yield from _differences("/v1/chat/completions", said, result, footnotes=True)
        message = {"messages": [{"role": "user", "parts": [{"type": "text", "text": question}]}]}
        said, result = "", {}
        for event in read_events(client.send("POST", "/ask/ui-messages", message)):
            said += event.data["delta"] if event.data["type"] == "text-delta" else ""
            result = event.data["data"] if event.data["type"] == "data-turn" else result
        yield from _differences("/ask/ui-messages", said, result, footnotes=False)


def _differences(path: str, said: str, result: Mapping[str, object], *, footnotes: bool) -> Iterator[str]:
    if not result:
        yield f"{path}: no result"
        return
    answer = TurnAnswer.model_validate(result)
    if said != readable(answer, footnotes=footnotes):
        yield f"{path}: text and result differ"
    if said.count(answer.answer.text) != 1:
        yield f"{path}: the answer is not shown once"


@pytest.mark.parametrize("fault", [None, *FAULTS], ids=["well", *(fault.kind for fault in FAULTS)])
@pytest.mark.parametrize("streaming", TENANTS)
def test_every_protocol_ends_with_the_text_of_the_result(
    written: tuple[Server, Mapping[str, str], Simulator], streaming: str, fault: Fault | None
) -> None:
    server, tokens, simulator = written
    simulator.set_knobs(Knobs(faults=(fault,) if fault else ()))
    for question in QUESTIONS:
        turn = stream_turn(server.port, tokens[streaming], question)
        assert turn.faults == []
        names = [event.name for event in turn.events]
        if streaming == "verified":
            assert "revise" not in names
            assert "retract" not in names or "token" not in names
        elif fault is None:
            assert any(event.data.get("provisional") for event in turn.events if event.name == "token")
        assert list(protocol_faults(server.port, tokens[streaming], question)) == []
    assert simulator.calls
