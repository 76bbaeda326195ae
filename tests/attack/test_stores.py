"""Attacks on stored data: in files, and in production servers (PostgreSQL and Redis)."""

import json
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from time import monotonic

import httpx
import jwt
import pytest
from sqlalchemy import text

from settings import Settings
from tenants.access.tokens import issue
from tenants.accounts.registry import Registry
from tenants.all_tables import Base
from tenants.audit import search
from tenants.core.context import Tenant, acting_as
from tenants.privacy import persons
from tenants.privacy.persons import Person
from tenants.storage import database
from tenants.work import locks
from tests.attack.attacking import ATTACKER, PATIENCE_SECONDS, QUESTION, VICTIM, ZONE, Attacked, client_of, eventually
from tests.chats import all_tickets
from tests.servers import own_database
from tests.service.serving import environment, in_force, problem, serving
from tests.webhooks import wait_until
from ui.api.job import MOST_FOLLOWED

PATCHES = 80
ONCE = {"Idempotency-Key": "once"}
SENT = "+7 916 555-12-34"
FORMS = (SENT, "916 555-12-34", "79165551234")


@pytest.fixture(scope="module", params=["files", "servers"])
def attacked(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Attacked]:
    """Run two services: one on files, shared with the other attacks, and one on servers."""
    with ExitStack() as stack:
        stack.callback(locks.close_all)
        if request.param == "files":
            installation = request.getfixturevalue("installation")
            stack.enter_context(in_force(installation))
            attacker, victim = (request.getfixturevalue(name) for name in ("attacker", "victim"))
        else:
            url = stack.enter_context(own_database(request.getfixturevalue("postgres_url")))
            installation = Settings(
                data_dir=tmp_path_factory.mktemp("servers"),
                database_url=url.render_as_string(hide_password=False),
                rate_limit_per_minute=1_000_000,
                rate_limit_per_day=0,
            )
            stack.enter_context(in_force(installation))
            for tenant_id in (ATTACKER, VICTIM):
                Registry().add(tenant_id)
            redis = {"OPORA_REDIS_URL": request.getfixturevalue("redis_url"), "TZ": ZONE}
            server = stack.enter_context(serving(environment(installation) | redis))
            attacker, victim = (
                stack.enter_context(client_of(server, installation, tenant_id)) for tenant_id in (ATTACKER, VICTIM)
            )
        yield Attacked(installation, attacker, victim)


@contextmanager
def ingesting_elsewhere() -> Iterator[None]:
    """Ingest for the attacker in another process, so that its changes have to wait."""
    with acting_as(Tenant(ATTACKER, "elsewhere")), locks.ingesting(PATIENCE_SECONDS):
        yield


def count_found(attacked: Attacked, **query: str) -> int:
    """Count the turns that the attacker's audit finds."""
    return len(attacked.attacker.get("/audit", params=query).json()["records"])


def test_waiting_changes_hold_nobody_elses_request(attacked: Attacked) -> None:
    def change(_: int) -> httpx.Response:
        return attacked.attacker.patch("/documents/errors.md", json={"priority": 1})

    with ThreadPoolExecutor(PATCHES) as pool, ingesting_elsewhere():
        sent: list[Future[httpx.Response]] = [pool.submit(change, number) for number in range(PATCHES)]
        # The line is full: those in it wait ten seconds, all others are turned away at once.
        first, _ = wait(sent, PATIENCE_SECONDS, FIRST_COMPLETED)
        problem(next(iter(first)).result(), 503, "documents_busy")
        assert attacked.victim.get("/documents/errors.md").is_success
        assert not all(one.done() for one in sent)
    assert {one.result().status_code for one in sent} <= {200, 503}


def test_a_tenant_follows_so_many_jobs_at_once(attacked: Attacked) -> None:
    def events(client: httpx.Client, path: str) -> httpx.Response:
        return client.send(client.build_request("GET", path), stream=True)

    def upload(client: httpx.Client) -> str:
        sent = client.post("/documents", files=[("files", ("job.md", "# Файл\n\nТекст.\n".encode()))])
        return f"/jobs/{sent.json()['job_id']}/events"

    with ingesting_elsewhere(), ExitStack() as streams:
        path = upload(attacked.attacker)
        for _ in range(MOST_FOLLOWED):
            stream = events(attacked.attacker, path)
            streams.callback(stream.close)
            assert stream.status_code == 200
        problem(attacked.attacker.get(path), 429, "rate_limited")
        stream = events(attacked.victim, upload(attacked.victim))
        streams.callback(stream.close)
        assert any(line == "event: done" for line in stream.iter_lines())
    # A disconnected client is no longer counted, and the job goes on.
    assert eventually(lambda: attacked.attacker.get(path).status_code == 200)


def test_a_key_is_one_turn_however_often_it_is_sent(attacked: Attacked) -> None:
    question = "Что значит код E10, если спросить много раз?"

    def ask(_: int) -> bytes:
        deadline = monotonic() + PATIENCE_SECONDS
        while True:
            reply = attacked.attacker.post("/ask/run", json={"question": question}, headers=ONCE)
            if reply.is_success:
                return reply.content
            problem(reply, 503, "request_in_progress")
            assert monotonic() < deadline

    with ThreadPoolExecutor(8) as pool:
        assert len(set(pool.map(ask, range(16)))) == 1
    # Records arrive in their order: with that of a later turn, all of them are there.
    last = attacked.attacker.post("/ask/run", json=QUESTION).json()["turn_id"]
    assert eventually(lambda: attacked.attacker.get(f"/audit/{last}").is_success)
    assert count_found(attacked, text=question) == 1


def test_a_key_stands_for_the_conversation_too(attacked: Attacked) -> None:
    headers = {"Idempotency-Key": "conversation"}

    def complete(*earlier: str) -> httpx.Response:
        said = [{"role": "user" if at % 2 == 0 else "assistant", "content": text} for at, text in enumerate(earlier)]
        messages = [*said, {"role": "user", "content": QUESTION["question"]}]
        return attacked.attacker.post(
            "/v1/chat/completions", json={"model": "ask", "messages": messages}, headers=headers
        )

    assert complete("Где мой заказ?", "В пути.").is_success
    assert complete("Где мой заказ?", "В пути.").is_success
    refused = complete()
    assert refused.status_code == 422
    assert "idempotency_key_reused" in refused.text


def test_a_person_is_erased_while_they_ask_and_judge(attacked: Attacked) -> None:
    token = issue(attacked.installation, ATTACKER, scopes=("ask",), subject="zoe", ttl_seconds=600)
    with httpx.Client(base_url=attacked.attacker.base_url, timeout=PATIENCE_SECONDS) as client:
        client.headers["Authorization"] = f"Bearer {token}"

        def ask(number: int) -> None:
            question = {"question": f"Отмените мой заказ {number}!", "session_id": f"s{number}"}
            answer = client.post("/ask/run", json=question, headers={"Idempotency-Key": f"zoe-{number}"})
            assert answer.status_code == 200, answer.text
            verdict = client.post("/feedback", json={"turn_id": answer.json()["turn_id"], "thumb": "down"})
            # Erased in between, or not yet stored: it is not there; never a deadlock.
            assert verdict.status_code in {200, 404}, verdict.text

        with acting_as(Tenant(ATTACKER, "admin")), ThreadPoolExecutor(4) as pool:
            asked = [pool.submit(ask, number) for number in range(24)]
            while not all(one.done() for one in asked):
                persons.erase(Person(subject="zoe"))
            for one in asked:
                one.result()

            def nothing_is_left() -> bool:
                # Records on their way to the audit arrive a moment later.
                persons.erase(Person(subject="zoe"))
                return not any(persons.export(Person(subject="zoe")).values())

            assert eventually(nothing_is_left)
            assert search.verify().faults == ()


def test_nothing_personal_is_stored_as_it_was_sent(attacked: Attacked) -> None:
    turns = []
    for anonymous in (False, True):
        question = {
            "question": f"Отмените мой заказ, телефон {SENT}!",
            "filters": {"tags": [SENT]},
            "anonymous": anonymous,
        }
        headers = {"Idempotency-Key": f"anonymous-{anonymous}"}
        turns.append(attacked.attacker.post("/ask/run", json=question, headers=headers).json()["turn_id"])
    paths = [f"/audit/{turn}" for turn in turns]
    assert eventually(lambda: all(attacked.attacker.get(path).is_success for path in paths))
    records = "".join(attacked.attacker.get(path).text for path in paths)
    assert "[phone]" in records
    with database.across_tenants() as session:
        tables = [table.name for table in Base.metadata.sorted_tables]
        rows = [repr(row) for name in tables for row in session.execute(text(f"SELECT * FROM {name}"))]
    assert not [form for form in FORMS for row in (*rows, records) if form in row]
    with acting_as(Tenant(ATTACKER, "olga")):
        # An operator has to call back.
        assert SENT in json.dumps([ticket.question for ticket in all_tickets()])


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/audit?before=9223372036854775808", 422),
        ("/audit?before=9223372036854775807", 200),
        ("/audit?since=0001-01-01", 200),
        ("/audit?since=0001-01-01T00:00:00%2B14:00", 422),
        ("/audit?until=9999-12-31T23:59:59-14:00", 422),
        ("/audit/export?since=0001-01-01", 200),
    ],
)
def test_a_date_or_number_out_of_range_is_no_fault_of_ours(attacked: Attacked, path: str, status: int) -> None:
    assert attacked.attacker.get(path).status_code == status


def test_a_time_without_a_zone_is_utc(attacked: Attacked) -> None:
    question = "Что значит код E20 в этот час?"
    assert attacked.attacker.post("/ask/run", json={"question": question}).is_success
    assert eventually(lambda: count_found(attacked, text=question) == 1)
    now = datetime.now(UTC).replace(tzinfo=None)
    before, after = ((now + shift).isoformat() for shift in (-timedelta(hours=1), timedelta(hours=1)))
    assert count_found(attacked, text=question, since=before, until=after) == 1
    assert count_found(attacked, text=question, since=after) == count_found(attacked, text=question, until=before) == 0


@pytest.mark.parametrize("name", ["\0", "a\0b", "\ud800", "\n", "x" * 3_000])
def test_a_token_of_a_site_that_cannot_be_is_refused(attacked: Attacked, name: str) -> None:
    token = jwt.encode({}, "a key that is long enough for everybody", headers={"kid": f"site:{name}"})
    problem(attacked.attacker.get("/chats", headers={"Authorization": f"Bearer {token}"}), 401, "token_invalid")


def test_tenants_take_turns_at_the_write_lock(tmp_path: Path) -> None:
    settings = Settings(data_dir=tmp_path, database_url="")
    for tenant_id in (ATTACKER, VICTIM):
        Registry(settings).add(tenant_id)
    written: list[str] = []

    def write(tenant_id: str) -> None:
        with acting_as(Tenant(tenant_id, "anna")), database.writing(settings):
            written.append(tenant_id)

    with ThreadPoolExecutor(8) as pool:
        with database.across_tenants(settings, write=True):
            writers = [pool.submit(write, ATTACKER) for _ in range(6)]
            wait_until(lambda: len(database._WRITERS._lines.get((ATTACKER, ""), ())) == 6)
            writers.append(pool.submit(write, VICTIM))
            wait_until(lambda: (VICTIM, "") in database._WRITERS._lines)
        for one in writers:
            one.result()
    assert VICTIM in written[:2]
