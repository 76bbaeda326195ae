"""Prometheus metrics name no person, a token guards them, and dashboard and alerts use existing metrics only."""

import json
import logging
import re

import pytest
import yaml
from fastapi import FastAPI
from fastapi.testclient import TestClient
from prometheus_client.parser import text_string_to_metric_families
from pydantic import SecretStr

from pipelines import metrics_endpoint, problems, turn_counters
from settings import ROOT, Settings
from tenants.accounts import registry
from tenants.accounts.registry import Registry
from tenants.audit import store
from tenants.core.context import Tenant, acting_as
from tenants.core.errors import OporaError
from tenants.insight import traces
from tenants.knowledge import gaps
from tenants.work import jobs
from tests.audits import entry, miss
from tests.pages import PAGES
from ui.api import host

TOKEN = {"Authorization": "Bearer of-the-metrics"}
ELSEWHERE = {"up"}
"""Metrics that Prometheus makes itself."""


@pytest.fixture
def client(installation: Settings) -> TestClient:
    app = FastAPI()
    settings = installation.model_copy(update={"metrics_token": SecretStr("of-the-metrics")})
    app.include_router(metrics_endpoint.router(settings, lambda: 3))
    return TestClient(app)


def scraped(client: TestClient) -> dict[str, dict[tuple[str, ...], float]]:
    """Each metric's values by its labels."""
    answer = client.get("/metrics", headers=TOKEN)
    assert answer.status_code == 200
    families = text_string_to_metric_families(answer.text)
    values: dict[str, dict[tuple[str, ...], float]] = {}
    for family in families:
        for sample in family.samples:
            values.setdefault(sample.name, {})[tuple(sample.labels.values())] = sample.value
    return values


def test_it_is_open_to_its_own_token_alone(client: TestClient) -> None:
    for headers in ({}, {"Authorization": "Bearer other"}, {"Authorization": "Basic of-the-metrics"}):
        with pytest.raises(OporaError, match="token_"):
            client.get("/metrics", headers=headers)


def test_turns_and_steps_are_counted(client: TestClient) -> None:
    before = scraped(client).get("opora_turns_total", {}).get(("refused", "no_relevant_context"), 0.0)
    turn_counters.observe("refused", "no_relevant_context", 0.2, {"verify": 1.0, "verify #2": 7.0}, ["ok", "timeout"])
    after = scraped(client)
    assert after["opora_turns_total"][("refused", "no_relevant_context")] == before + 1
    assert after["opora_step_seconds_count"][("verify",)] >= 2
    assert not [labels for labels in after["opora_step_seconds_count"] if "#" in labels[0]]
    assert after["opora_model_calls_total"][("timeout",)] >= 1


def test_what_is_now_is_counted_over_all_tenants_and_names_none(client: TestClient, installation: Settings) -> None:
    for tenant_id in ("acme-canary", "globex-canary"):
        Registry().add(tenant_id)
        with acting_as(Tenant(tenant_id, "anna-canary")):
            jobs.add(jobs.new_id(), "upload", ["canary.md"])
            store.append([entry("t", tenant_id=tenant_id, misses=[miss("Где canary?", "canary")])], installation)
            assert len(gaps.all()) == 1
    values = scraped(client)
    assert values["opora_questions_waiting"] == {(): 3}
    assert values["opora_database_up"] == {(): 1}
    assert values["opora_jobs"] == {("queued",): 2}
    assert values["opora_gaps"] == {("open",): 2}
    assert values["opora_tenants"] == {("registered",): 2}
    requests, size = values["opora_cache_requests_total"], values["opora_cache_size"]
    assert requests["tenants", "miss"] >= 2
    with acting_as(Tenant("acme-canary", "anna-canary")):
        for _ in range(2):
            registry.current()
    assert scraped(client)["opora_cache_requests_total"]["tenants", "hit"] > requests["tenants", "hit"]
    assert size["tenants",] >= 2
    assert "canary" not in client.get("/metrics", headers=TOKEN).text


def test_dashboard_alerts_and_documentation_ask_for_metrics_that_exist(
    client: TestClient, installation: Settings
) -> None:
    turn_counters.observe("answered", None, 0.2, {"verify": 1.0}, ["ok"])
    exist = {*scraped(client), *ELSEWHERE}
    exist |= {"opora_jobs", "opora_gaps", "opora_deliveries", "opora_chats", "opora_tenants"}
    folder = ROOT / "docs" / "monitoring"
    board = json.loads((folder / "dashboard.json").read_text(encoding="utf-8"))
    asked = [target["expr"] for panel in board["panels"] for target in panel["targets"]]
    alerts = yaml.safe_load((folder / "alerts.yaml").read_text(encoding="utf-8"))
    rules = [rule for group in alerts["groups"] for rule in group["rules"]]
    assert all(rule["annotations"]["summary"] and rule["labels"]["severity"] for rule in rules)
    asked += [rule["expr"] for rule in rules]
    named = {name for expr in asked for name in re.findall(r"\b(?:opora|process)_\w+|\bup\b", expr)}
    assert len(asked) > 15
    assert named <= exist
    listed = set(re.findall(r"`(opora_\w+)`", PAGES["docs/operate/monitor.md"]))
    assert {name for name in listed if not {name, f"{name}_count"} & exist} == set()
    opora_names = {re.sub(r"_(bucket|count|sum|created)$", "", name) for name in exist if name.startswith("opora_")}
    assert opora_names - {name.removesuffix("_total") for name in listed} <= listed


def test_a_line_of_the_log_is_an_object_with_its_request_and_its_trace() -> None:
    try:
        raise ValueError("words of a customer")
    except ValueError as error:
        record = logging.LogRecord(
            "opora.x", logging.ERROR, "x.py", 1, "turn %s\n fails", ("t",), (ValueError, error, None)
        )
    problems.caller.set(problems.Caller("ru", "r1"))
    traces.begin("95958065-8696-4e7d-a1ea-ca5b1f00ef10")
    line = host.JsonFormatter().format(record)
    told = json.loads(line)
    assert "\n" not in line
    assert "customer" not in line
    assert (told["message"], told["level"], told["logger"]) == ("turn t\n fails", "ERROR", "opora.x")
    assert (told["request_id"], told["trace_id"]) == ("r1", "9595806586964e7da1eaca5b1f00ef10")
    assert told["fault"].startswith("ValueError")
