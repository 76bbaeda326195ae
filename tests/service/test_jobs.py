"""Uploads and their jobs over HTTP."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Event

import httpx
import pytest

from settings import Settings
from tenants.access.tokens import issue
from tenants.accounts.registry import Registry
from tenants.core.context import Tenant, acting_as
from tenants.storage import database
from tenants.work import jobs
from tests.service.serving import Server, environment, in_force, problem
from tests.webhooks import wait_until

RETURNS = "# Возврат зонта\n\nЗонт можно вернуть в течение 30 дней после покупки. Сохраните чек.\n"


@pytest.fixture
def client(server: Server, token: Callable[..., str]) -> Iterator[httpx.Client]:
    headers = {"Authorization": f"Bearer {token('acme', 'ask', 'ingest')}"}
    with httpx.Client(base_url=server.url, timeout=60, headers=headers) as client:
        yield client


def events(client: httpx.Client, job_id: str, last: str = "") -> list[tuple[str, int, dict[str, object]]]:
    """Yield (name, id, job) of every event until the stream ends."""
    headers = {"Last-Event-ID": last} if last else {}
    results = []
    with client.stream("GET", f"/jobs/{job_id}/events", headers=headers) as stream:
        assert stream.headers["content-type"].startswith("text/event-stream")
        fields: dict[str, str] = {}
        for line in stream.iter_lines():
            if line:
                key, _, fields[key] = line.partition(": ")
            elif "event" in fields:
                results.append((fields["event"], int(fields["id"]), json.loads(fields["data"])))
                fields = {}
    return results


def stored(settings: Settings) -> set[Path]:
    """Return the files of all uploads; those of a running job may disappear at any moment."""
    return {path for path in (settings.data_dir / "uploads").rglob("*") if path.is_file()}


def test_files_become_answers(client: httpx.Client) -> None:
    files = [
        ("files", ("зонты/возврат.md", RETURNS.encode())),
        ("files", ("зонты/цены.csv", "Зонт,Цена\nАвтомат,900\n".encode())),
        ("files", ("зонты/пусто.md", b"")),
    ]
    accepted = client.post("/documents", files=files)
    assert accepted.status_code == 202
    job = accepted.json()
    assert (job["state"], job["files"][0]) == ("queued", "зонты/возврат.md")

    seen = events(client, job["job_id"])
    numbers = [number for _, number, _ in seen]
    assert numbers == sorted(set(numbers))
    assert {name for name, _, _ in seen[:-1]} <= {"progress"}
    name, last, done = seen[-1]
    assert (name, done["state"], done["progress"]["documents"]) == ("done", "done", 3)  # type: ignore[index]
    assert done["report"]["added"] == 2  # type: ignore[index]
    assert [error["code"] for error in done["report"]["errors"]] == ["file_empty"]  # type: ignore[index]
    assert client.get(f"/jobs/{job['job_id']}").json() == done
    # A client that reconnects after the end learns that at once.
    assert events(client, job["job_id"], str(last)) == [seen[-1]]

    answer = client.post("/ask/run", json={"question": "За сколько дней после покупки можно вернуть зонт?"}).json()
    assert answer["outcome"] == "answered"
    assert answer["citations"][0]["doc_id"] == "зонты/возврат.md"


def test_a_file_may_be_the_body(client: httpx.Client) -> None:
    accepted = client.post("/documents", params={"name": "зонты/сушка.txt"}, content="Сушите зонт открытым.".encode())
    assert accepted.status_code == 202
    assert events(client, accepted.json()["job_id"])[-1][2]["state"] == "done"
    assert client.get("/documents/зонты/сушка.txt").json()["title"] == "сушка"


def test_the_same_request_twice_is_one_job(client: httpx.Client) -> None:
    def send(content: bytes) -> httpx.Response:
        return client.post("/documents?name=key.md", content=content, headers={"Idempotency-Key": "upload-1"})

    first, again = send(b"# Key\n\nTurn it."), send(b"# Key\n\nTurn it.")
    assert (first.status_code, again.status_code) == (202, 202)
    assert first.json()["job_id"] == again.json()["job_id"]
    problem(send(b"# Key\n\nTurn it twice."), 422, "idempotency_key_reused")


@pytest.mark.parametrize("name", ["../x.md", "/etc/x.md", "a/../../x.md", ".env", "x\n.md", "C:\\x.md", "a" * 300])
def test_hostile_names_are_refused(client: httpx.Client, installation: Settings, name: str) -> None:
    before = stored(installation)
    problem(client.post("/documents", params={"name": name}, content=b"x"), 422, "file_name_invalid")
    assert stored(installation) <= before


def multipart(name: bytes, *, end: bytes = b"--x--\r\n") -> bytes:
    return b'--x\r\nContent-Disposition: form-data; name="f"; ' + name + b"\r\n\r\nbody\r\n" + end


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        (multipart(b'filename="../x.md"'), 422, "file_name_invalid"),
        (multipart(b'filename="\xff.md"'), 422, "file_name_invalid"),
        (multipart(b'filename=""'), 422, "file_name_invalid"),
        (multipart(b'value="x"'), 422, "unknown_field"),
        (multipart(b'filename="a.md"', end=multipart(b'filename="a.md"')), 422, "file_name_duplicate"),
        (multipart(b'filename="a.md"', end=b""), 400, "malformed_body"),
        (b"--x--\r\n", 422, "field_missing"),
        (b"nonsense", 400, "malformed_body"),
        (b"", 400, "malformed_body"),
    ],
)
def test_broken_forms_are_refused_and_leave_nothing(
    client: httpx.Client, installation: Settings, body: bytes, status: int, code: str
) -> None:
    before = stored(installation)
    headers = {"Content-Type": "multipart/form-data; boundary=x"}
    problem(client.post("/documents", content=body, headers=headers), status, code)
    assert stored(installation) <= before


def test_a_compressed_body_is_refused(client: httpx.Client) -> None:
    headers = {"Content-Encoding": "gzip"}
    problem(client.post("/documents?name=a.md", content=b"x", headers=headers), 415, "unsupported_media_type")


def test_jobs_are_listed_and_cancelled_by_their_tenant_only(client: httpx.Client, token: Callable[..., str]) -> None:
    job_id = client.post("/documents?name=list.md", content=b"# List\n\nText.").json()["job_id"]
    listed = client.get("/jobs?limit=1").json()["jobs"]
    assert [job["job_id"] for job in listed] == [job_id]
    assert client.get(f"/jobs?before={job_id}&limit=100").json()["jobs"][0]["job_id"] < job_id
    problem(client.get("/jobs?limit=0"), 422, "field_invalid")
    problem(client.get("/jobs?state=lost"), 422, "field_invalid")
    problem(client.get("/jobs?tenant=globex"), 422, "unknown_field")
    foreign = {"Authorization": f"Bearer {token('globex', 'ingest')}"}
    for method, path in (("GET", ""), ("DELETE", ""), ("GET", "/events")):
        problem(client.request(method, f"/jobs/{job_id}{path}", headers=foreign), 404, "not_found")
    events(client, job_id)
    assert client.delete(f"/jobs/{job_id}").json()["state"] == "done"


@pytest.fixture
def own(tmp_path: Path) -> tuple[Settings, str]:
    """A separate installation, and a token of its tenant `acme`."""
    settings = Settings(
        data_dir=tmp_path / "data", watch_dir=tmp_path / "watched", max_files_bytes=100_000, rate_limit_per_minute=0
    )
    Registry(settings).add("acme", locale="ru")
    raw = issue(settings, "acme", scopes=("ask", "ingest"), subject="anna", ttl_seconds=600)
    database.close_all()
    return settings, raw


@pytest.mark.chaos
def test_acknowledged_uploads_survive_a_kill(own: tuple[Settings, str]) -> None:
    settings, raw = own
    headers = {"Authorization": f"Bearer {raw}"}
    first = Server(environment(settings))
    with httpx.Client(base_url=first.url, timeout=60, headers=headers) as client:
        first.wait_until_up()
        article = RETURNS + "\n".join(f"## Раздел {at}\n\n{RETURNS}" for at in range(6))
        uploads = [[("f", (f"{number}/{at}.md", f"{article}{at}")) for at in range(5)] for number in range(4)]
        accepted = [client.post("/documents", files=files) for files in uploads]
        too_large = client.post("/documents?name=large.md", content=b"x" * 100_001)
        problem(too_large, 413, "body_too_large")
        first.process.kill()
        first.stop()
    assert {item.status_code for item in accepted} == {202}

    (settings.data_dir.parent / "watched" / "acme").mkdir(parents=True)
    (settings.data_dir.parent / "watched" / "acme" / "seen.md").write_text(RETURNS)
    second = Server(environment(settings))
    with httpx.Client(base_url=second.url, timeout=60, headers=headers) as client:
        second.wait_until_up()
        for item in accepted:
            assert events(client, item.json()["job_id"])[-1][2]["state"] == "done"
        while (watching := client.get("/jobs?limit=1").json()["jobs"])[0]["kind"] != "watch":
            Event().wait(0.02)
        assert events(client, watching[0]["job_id"])[-1][2]["report"]["added"] == 1  # type: ignore[index]
        listed = client.get("/documents?limit=100").json()["documents"]
        assert second.stop() == 0
    results = {document["doc_id"] for document in listed}
    assert results == {f"{number}/{at}.md" for number in range(4) for at in range(5)} | {"seen.md"}
    assert not stored(settings)
    assert not [line for line in second.log if " ERROR " in line or "Traceback" in line]


@pytest.mark.chaos
def test_a_draining_service_ends_its_streams_and_leaves_its_job(own: tuple[Settings, str]) -> None:
    settings, raw = own
    leaving = Server({**environment(settings), "OPORA_DRAIN_SECONDS": "300"})
    headers, question = {"Authorization": f"Bearer {raw}"}, {"question": "Как вернуть зонт?"}
    with httpx.Client(base_url=leaving.url, timeout=60, headers=headers) as client:
        leaving.wait_until_up()
        assert client.get("/readyz").status_code == 200
        files = [("f", (f"{at}.md", RETURNS)) for at in range(300)]
        job_id = client.post("/documents", files=files).json()["job_id"]
        with client.stream("GET", f"/jobs/{job_id}/events") as stream:
            lines = stream.iter_lines()
            assert next(lines).startswith("event: ")
            with client.stream("POST", "/ask/stream", json=question) as turn:
                leaving.process.terminate()
                wait_until(lambda: client.get("/readyz").status_code != 200)
                problem(client.get("/readyz"), 503, "shutting_down")
                # Balancers need a while to notice; requests that still arrive are answered.
                assert client.post("/ask/run", json=question).status_code == 200
                # The second signal ends the wait.
                leaving.process.terminate()
                assert "event: done" in list(turn.iter_lines())
            # The stream ends by itself, whatever the state of the job.
            list(lines)
        assert leaving.stop() == 0
        with pytest.raises(httpx.ConnectError):
            client.post("/ask/run", json=question)
    with in_force(settings), acting_as(Tenant("acme", "test")):
        assert jobs.get(job_id).state in ("queued", "done")
    assert not [line for line in leaving.log if "Traceback" in line or "graceful" in line]
