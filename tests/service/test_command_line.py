"""Commands work while the service has the data folder, and the service sees at once what they change."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest

from settings import Settings
from tenants.index.remote import FILE
from tests.service.serving import Server, environment

TENANT = "commands"
ARTICLE = "# Оплата\n\n## Рассрочка\n\nРассрочка даётся на шесть месяцев без процентов.\n"


@pytest.fixture
def opora(server: Server, installation: Settings) -> Callable[..., str]:
    def run(*arguments: str) -> str:
        variables = {**os.environ, **environment(installation), "LANG": "ru_RU.UTF-8"}
        command = [sys.executable, "-m", "cli", *arguments]
        done = subprocess.run(command, env=variables, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr + done.stdout
        return done.stdout

    return run


def test_commands_use_the_index_of_the_running_service(
    opora: Callable[..., str], anybody: httpx.Client, installation: Settings, tmp_path: Path
) -> None:
    (tmp_path / "payment.md").write_text(ARTICLE, encoding="utf-8")
    opora("tenant", "add", TENANT)
    opora("ingest", str(tmp_path), "--tenant", TENANT)
    token = opora("tenant", "token", TENANT, "--scope", "ask", "--scope", "ingest").strip()
    headers = {"Authorization": f"Bearer {token}"}

    def served() -> str:
        answer = anybody.post("/ask/run", json={"question": "На сколько даётся рассрочка?"}, headers=headers).json()
        return str(answer["answer"]["text"])

    def asked() -> str:
        answer = json.loads(opora("ask", "На сколько даётся рассрочка?", "--tenant", TENANT, "--json"))
        return str(answer["answer"]["text"])

    assert "шесть месяцев" in served()
    assert "шесть месяцев" in asked()
    (tmp_path / "payment.md").write_text(ARTICLE.replace("шесть", "десять"), encoding="utf-8")
    opora("ingest", str(tmp_path), "--tenant", TENANT)
    assert "десять месяцев" in served()
    opora("index", "rebuild", "--tenant", TENANT)
    opora("index", "check", "--tenant", TENANT)
    assert "десять месяцев" in asked()
    assert "десять месяцев" in served()
    (document,) = json.loads(opora("document", "list", "--tenant", TENANT, "--json"))["documents"]
    assert json.loads(opora("replay", "--tenant", TENANT, "--json"))["turns"]
    opora("document", "delete", document["doc_id"], "--tenant", TENANT)
    assert "десять месяцев" not in served()
    assert (installation.data_dir / FILE).stat().st_mode & 0o077 == 0
