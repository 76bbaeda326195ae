"""The tutorial and the quickstart, followed command by command in an empty folder."""

import json
import os
import subprocess
import sys
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from evaluation.simulator.knobs import Knobs
from evaluation.simulator.running import simulator_thread
from settings import ROOT
from tests.forks import opora_in
from tests.pages import PAGES, blocks, script
from tests.receiving import Receiver, receiving
from tests.service.serving import free_port

SECONDS = 280
"""The commands of a page take a third of a minute on an idle machine."""


def followed(page: str, folder: Path, ports: Mapping[int, int], **variables: str) -> list[str]:
    """Run a page's commands, with free ports in place of those on the page; return what each block printed.

    :param variables: more variables of the environment.
    """
    programs = folder / "programs"
    programs.mkdir()
    text = script(PAGES[page]).replace("-m evaluation.simulator", f"-m evaluation.simulator --port {ports[11434]}")
    for documented, free in ports.items():
        text = text.replace(f"127.0.0.1:{documented}", f"127.0.0.1:{free}")
    environment = {
        "PATH": f"{programs}:{Path(sys.executable).parent}:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "OPORA": str(ROOT),
        "OPORA_PORT": str(ports[1416]),
        "OPORA_FETCH_MODELS": "false",
        "LANG": "en_US.UTF-8",
        "COLUMNS": "200",
        **variables,
    }
    with opora_in(programs):
        done = subprocess.run(
            ["bash", "-c", text],
            cwd=folder,
            env=environment,
            capture_output=True,
            encoding="utf-8",
            timeout=SECONDS,
            check=False,
        )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.split("=== ")[1:]


def test_the_tutorial_shows_what_it_says(tmp_path: Path) -> None:
    with receiving() as phoenix:
        ports = {1416: free_port(), 11434: free_port(), 6006: int(phoenix.url.rpartition(":")[2])}
        _, asked, before, after, measured, _, judged, _, _, traced, _, chat = followed(
            "docs/tutorial.md", tmp_path, ports
        )
        spans = spans_of("Can a gift be returned within 30 days?", phoenix)
    assert "answer, " in asked.partition("repair")[0]
    assert "Delivery costs £4." in asked
    assert "no direct answer" in asked.partition("repair")[2]
    assert "(gifts-2024.md)" in before
    assert "(gifts.md)" in after
    rows = [line for line in measured.splitlines() if "All required facts" in line and "│" in line]
    facts = [row.split("│")[2].strip() for row in rows]
    assert facts[:2] == ["0.667", "1.000"]
    assert "better" in measured
    assert "Statements supported by the passages" in judged
    assert "gift receipt" in traced
    assert {"ask", "retrieve", "rank", "newest"} <= set(spans)
    assert "gift receipt" in spans["newest"]["reranker.output_documents.0.document.content"]
    assert "Yes. Send it to us, the repair costs £15." in chat.rpartition("Anna")[2]


def test_the_quickstart_shows_what_it_says(tmp_path: Path) -> None:
    ports = {1416: free_port(), 11434: free_port()}
    asked, _, over_http = followed("docs/quickstart.md", tmp_path, ports)
    assert "within 30 days" in asked
    assert "[1] Returns (returns.md)" in asked
    assert json.loads(over_http.partition("\n")[2])["outcome"] == "answered"


def test_the_page_on_ollama_shows_what_it_says(tmp_path: Path) -> None:
    knobs = Knobs(models=("qwen3:4b-instruct", "bge-m3:latest"), tokens_per_second=40, dimensions=1024)
    ports = {1416: free_port(), 11434: free_port()}
    with simulator_thread(knobs) as (_, url):
        _, tested, rebuilt = followed("docs/ollama.md", tmp_path, ports, OPORA_OLLAMA_URL=url)
    shown = [line.partition(":")[0] for block in blocks(PAGES["docs/ollama.md"], "text") for line in block.splitlines()]
    printed = [line.partition(":")[0] for line in tested.splitlines()]
    assert set(shown) <= set(printed)
    assert "→ ollama pull qwen3:30b-instruct" in tested
    assert "warnings: 1" in rebuilt


def spans_of(question: str, phoenix: Receiver) -> Mapping[str, Mapping[str, str]]:
    """Return the received spans of a question by name, with their texts."""
    traces: dict[bytes, dict[str, dict[str, str]]] = defaultdict(dict)
    for heard in (phoenix.heard.get_nowait() for _ in range(phoenix.heard.qsize())):
        if heard.what.startswith("POST /v1/traces"):
            (resource,) = ExportTraceServiceRequest.FromString(heard.body).resource_spans
            for span in (span for scope in resource.scope_spans for span in scope.spans):
                traces[span.trace_id][span.name] = {one.key: one.value.string_value for one in span.attributes}
    return next(spans for spans in traces.values() if spans["ask"]["input.value"] == question)
