"""`opora article`, as an author at a terminal meets it."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

import cli
from components.ingest.document import SourceDocument
from pipelines.ask.contract import AskRequest
from pipelines.ask.usecase import Ask
from pipelines.ingest.usecase import Ingest
from settings import Settings
from tenants.accounts.registry import Registry
from tenants.core.context import SCOPES, Tenant, acting_as
from tenants.knowledge import documents, gaps

QUESTION = "Можно ли оплатить заказ криптовалютой?"
ANNA = Tenant("shop", "anna", SCOPES)


@pytest.fixture(autouse=True)
def gap(installation: Settings, monkeypatch: pytest.MonkeyPatch) -> str:
    """The one gap of a tenant."""
    monkeypatch.setenv("LC_ALL", "en_GB.UTF-8")
    monkeypatch.setenv("COLUMNS", "250")
    Registry().add("shop", locale="ru")
    with acting_as(ANNA):
        Ingest().run([SourceDocument("returns", "Возврат", "# Возврат\n\nТовар можно вернуть за 14 дней.\n")])
        ask = Ask()
        ask.answer(AskRequest(question=QUESTION))
        ask.close()
        [gap] = gaps.all()
    return gap.gap_id


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "crypto.md"
    path.write_text("# Криптовалюта\n\nОплатить заказ криптовалютой нельзя.\n", encoding="utf-8")
    return path


def opora(*arguments: str) -> Result:
    return CliRunner().invoke(cli.app, ["article", *arguments, "--tenant", "shop"])


def listed() -> list[dict[str, object]]:
    rows: list[dict[str, object]] = json.loads(opora("list", "--json").stdout)
    return rows


def test_an_article_is_written_previewed_published_and_taken_back(gap: str, file: Path) -> None:
    written = opora("write", str(file), "--title", "Криптовалюта", "--gap", gap, "--question", "Берёте биткоины?")
    assert written.exit_code == 0, written.output
    [row] = listed()
    article_id = str(row["article_id"])
    assert article_id in written.stdout
    assert "Криптовалюта" in opora("list").stdout
    table = opora("preview", article_id)
    assert QUESTION in table.stdout
    assert "Questions asked: 2 of 2" in table.stdout
    asked = json.loads(opora("preview", article_id, "--json").stdout)["questions"]
    assert [one["kind"] for one in asked] == ["gap", "own"]
    shown = json.loads(opora("show", article_id).stdout)
    assert (shown["preview"]["state"], shown["questions"]) == ("done", ["Берёте биткоины?"])
    assert "Questions closed: 1" in opora("publish", article_id).stdout
    with acting_as(ANNA):
        assert documents.get(shown["doc_id"]) is not None
        assert gaps.get(gap).status == "closed"
        gaps.decide([gap], "open")
    assert f"Closed: {QUESTION}" in CliRunner().invoke(cli.app, ["gap", "close", gap, "--tenant", "shop"]).stdout
    assert opora("remove", article_id).exit_code == 2
    assert opora("withdraw", article_id).exit_code == 0
    assert opora("remove", article_id).exit_code == 0
    assert listed() == []


def test_a_file_becomes_the_next_version(file: Path) -> None:
    opora("write", str(file), "--title", "Криптовалюта", "--question", "Берёте биткоины?")
    article_id = str(listed()[0]["article_id"])
    file.write_text("Нельзя.", encoding="utf-8")
    assert "version 2" in opora("write", str(file), "--title", "Криптовалюта", "--article", article_id).stdout
    shown = json.loads(opora("show", article_id).stdout)
    assert (shown["text"], shown["questions"]) == ("Нельзя.", ["Берёте биткоины?"])


def test_what_cannot_be_is_refused_in_words(file: Path, tmp_path: Path) -> None:
    broken = tmp_path / "broken.md"
    broken.write_bytes(b"\xff\xfe\x00")
    for arguments in (
        ["write", str(broken), "--title", "x"],
        ["write", str(file), "--title", "x", "--gap", "nothing"],
        ["preview", "nothing"],
        ["publish", "nothing"],
    ):
        refused = opora(*arguments)
        assert refused.exit_code == 2
        assert "Traceback" not in refused.output
