"""Traces of a tenant: their names, and finding and erasing a person's traces in Phoenix."""

import json
from collections.abc import Iterator
from urllib.parse import parse_qs, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from settings import get_settings
from tenants.core.context import Tenant, acting_as
from tenants.core.errors import TryAgain
from tenants.insight import traces
from tests.receiving import Receiver, receiving

PROJECTS = {
    "data": [{"id": "P1", "name": "opora:acme2", "description": None}, {"id": "P2", "name": "opora:acme"}],
    "next_cursor": None,
}
SPANS = {"data": [{"context": {"trace_id": "a" * 32}}, {"context": {"trace_id": "b" * 32}}], "next_cursor": None}


@pytest.fixture
def phoenix(monkeypatch: pytest.MonkeyPatch) -> Iterator[Receiver]:
    bodies = {"/v1/projects/": json.dumps(SPANS).encode(), "/v1/projects": json.dumps(PROJECTS).encode()}
    with receiving(bodies=bodies) as receiver:
        monkeypatch.setenv("OPORA_PHOENIX_URL", receiver.url)
        get_settings.cache_clear()
        yield receiver
    get_settings.cache_clear()


@pytest.fixture(autouse=True)
def _acme() -> Iterator[None]:
    with acting_as(Tenant("acme", "anna")):
        yield


@given(st.one_of(st.uuids().map(str), st.text(max_size=40)))
def test_every_turn_has_one_trace(turn_id: str) -> None:
    result = traces.trace_id(turn_id)
    assert (len(result), result) == (32, traces.trace_id(turn_id))
    assert int(result, 16) >= 0


def test_a_turn_with_a_uuid_is_found_by_it() -> None:
    assert traces.trace_id("12345678-1234-5678-1234-567812345678") == "12345678123456781234567812345678"


def test_without_phoenix_there_is_nothing_to_erase() -> None:
    assert traces.of_person("digest", "") == ()
    assert traces.erase("digest", "s-1") == 0


def test_a_persons_traces_are_looked_for_in_the_tenants_project_alone(phoenix: Receiver) -> None:
    assert traces.of_person("digest", "17") == ("a" * 32, "b" * 32)
    assert phoenix.next().what == "GET /v1/projects"
    request = urlsplit(phoenix.next().what.removeprefix("GET "))
    assert request.path == "/v1/projects/P2/spans"
    assert parse_qs(request.query)["attribute"] == ['user.id:"digest"', 'metadata.session:"17"']


def test_each_is_erased_and_one_that_has_gone_is_no_fault(phoenix: Receiver) -> None:
    phoenix.statuses = [200, 200, 404, 204]
    assert traces.erase("digest", "") == 2
    requests = [phoenix.next().what for _ in range(4)]
    assert requests[2:] == [f"DELETE /v1/traces/{item * 32}" for item in "ab"]


@pytest.mark.parametrize("status", [401, 500])
def test_a_phoenix_that_fails_is_asked_again_later(phoenix: Receiver, status: int) -> None:
    phoenix.statuses = [status]
    with pytest.raises(TryAgain):
        traces.erase("digest", "")


def test_a_tenant_without_a_project_has_no_traces(phoenix: Receiver) -> None:
    with acting_as(Tenant("globex", "anna")):
        assert traces.of_person("digest", "") == ()
