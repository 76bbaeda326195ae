"""Commands work while the service has the data folder, and the service sees at once what they change."""

import json
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from typer.testing import CliRunner

import cli
from settings import Settings
from tenants import index
from tenants.index.remote import FILE
from tenants.work import locks
from tests.service.serving import Server

TENANT = "commands"
ARTICLE = "# Оплата\n\n## Рассрочка\n\nРассрочка даётся на шесть месяцев без процентов.\n"


@pytest.fixture(autouse=True)
def _beside(server: Server) -> Iterator[None]:
    """Close what the commands of this process open beside the service."""
    yield
    index.close_all()
    locks.close_all()


def opora(*arguments: str) -> str:
    """Run a command in this process, beside that of the service."""
    done = CliRunner().invoke(cli.app, list(arguments))
    assert done.exit_code == 0, done.output
    return done.stdout


def test_commands_use_the_index_of_the_running_service(
    anybody: httpx.Client, installation: Settings, tmp_path: Path
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
