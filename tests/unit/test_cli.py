import json
import re
import socket
from pathlib import Path
from typing import Never

import pytest
from typer.testing import CliRunner, Result

import cli
from components.language.texts import LOCALES, keys, text
from components.models import calls
from pipelines.ask.contract import AskRequest
from pipelines.ask.profiles import ProfileEngines
from pipelines.ask.usecase import Ask
from settings import ROOT, Settings, get_settings
from tenants.access.tokens import TokenVerifier
from tenants.core.context import Tenant
from tenants.core.errors import Busy
from ui.cli.terminal import DEFAULT_TENANT


@pytest.fixture(autouse=True)
def _english(installation: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LC_ALL", "en_GB.UTF-8")
    get_settings.cache_clear()  # what a test puts into the environment counts


def opora(*arguments: str) -> Result:
    return CliRunner().invoke(cli.app, list(arguments))


def test_models_have_the_time_of_a_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    left = list[float]()

    def answer(_: Ask, __: AskRequest) -> Never:
        left.append(calls.current().remaining())
        raise Busy

    monkeypatch.setattr(Ask, "answer", answer)
    opora("tenant", "add", "shop")
    opora("ask", "?", "--tenant", "shop")
    assert 0 < left[0] < get_settings().turn_timeout_seconds


def test_a_tenant_is_added_and_listed() -> None:
    added = opora("tenant", "add", "shop", "--name", "Магазин", "--locale", "en")
    assert added.exit_code == 0
    assert "opora ingest PATH --tenant shop" in added.stdout
    listed = json.loads(opora("tenant", "list", "--json").stdout)
    assert [(row["tenant_id"], row["name"], row["locale"]) for row in listed] == [("shop", "Магазин", "en")]
    assert "Магазин" in opora("tenant", "list").stdout


def test_a_token_is_printed_alone_and_verifies() -> None:
    opora("tenant", "add", "shop")
    issued = opora("tenant", "token", "shop", "--scope", "ask", "--scope", "ingest", "--subject", "anna", "--ttl", "60")
    assert issued.exit_code == 0
    verified = TokenVerifier(get_settings()).verify(issued.stdout.strip())
    assert verified == Tenant("shop", "anna", frozenset({"ask", "ingest"}))


def test_tokens_are_listed_and_replaced() -> None:
    opora("tenant", "add", "shop")
    opora("tenant", "token", "shop", "--subject", "crm", "--ttl", "60")
    (known,) = json.loads(opora("token", "list", "--tenant", "shop", "--json").stdout)
    assert (known["subject"], known["scopes"], known["state"]) == ("crm", ["ask"], "valid")
    renewed = opora("token", "rotate", known["token_id"], "--grace", "0", "--tenant", "shop")
    assert TokenVerifier(get_settings()).verify(renewed.stdout.strip()).subject == "crm"
    states = {one["state"] for one in json.loads(opora("token", "list", "--tenant", "shop", "--json").stdout)}
    assert states == {"valid", "revoked"}
    assert "revoked" in opora("token", "list", "--tenant", "shop").stdout
    again = opora("token", "rotate", known["token_id"], "--tenant", "shop")
    assert (again.exit_code, "opora tenant token" in again.stderr) == (2, True)


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("tenant", "token", "nobody"), "tenant_unknown"),
        (("tenant", "add", ""), "tenant_id_invalid"),
        (("tenant", "add", "x" * 256), "tenant_id_invalid"),
        (("ingest", ".", "--tenant", "nobody"), "tenant_unknown"),
        (("ask", "?", "--tenant", "nobody"), "tenant_unknown"),
    ],
)
@pytest.mark.parametrize("locale", LOCALES)
def test_a_mistake_is_one_line_in_the_readers_language(
    arguments: tuple[str, ...], code: str, locale: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LC_ALL", f"{locale}_XX.UTF-8")
    result = opora(*arguments)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr == f"{text('cli.error.label', locale)}: {text(f'cli.error.{code}', locale)}\n"


def test_a_folder_without_data_is_named_and_stays_empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPORA_DATA_DIR", str(tmp_path / "other"))
    get_settings.cache_clear()
    for arguments in (("ask", "?"), ("ask", "?", "--tenant", "shop"), ("tenant", "token", "shop")):
        result = opora(*arguments)
        assert (result.exit_code, result.stdout) == (2, "")
        assert f"The data folder {tmp_path / 'other'} is empty." in result.stderr
    assert not (tmp_path / "other").exists()


@pytest.mark.parametrize(
    ("question", "expected"),
    [("", "1 to 2000"), ("   ", "1 to 2000"), ("а" * 2001, "2000"), ("\udcff", "UTF-8")],
)
def test_a_question_that_cannot_be_asked_is_refused_with_advice(question: str, expected: str) -> None:
    opora("tenant", "add", "shop")
    result = opora("ask", question, "--tenant", "shop", "--json")
    assert result.exit_code == 2
    assert result.stdout == ""
    assert expected in result.stderr
    assert result.stderr.count("\n") == 1


def test_a_taken_port_is_said_before_anything_starts() -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        result = opora("serve", "--port", str(port))
    assert result.exit_code == 2
    assert f"Port {port}" in result.stderr


@pytest.mark.parametrize("command", ["worker", "serve"])
def test_a_separate_worker_needs_servers(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPORA_WORKER", "external")
    result = opora(command)
    assert result.exit_code == 2
    assert "OPORA_DATABASE_URL" in result.stderr


def test_a_setting_that_does_not_do_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPORA_WORKERS", "0")
    result = opora("tenant", "list")
    assert result.exit_code == 2
    assert "OPORA_WORKERS" in result.stderr


@pytest.fixture
def articles(tmp_path: Path) -> Path:
    folder = tmp_path / "articles"
    folder.mkdir()
    (folder / "drain.md").write_text("# Слив\n\nПрочистите фильтр насоса, если вода не сливается.", encoding="utf-8")
    (folder / "return.txt").write_text("Вернуть товар можно за 7 дней.", encoding="utf-8")
    return folder


def test_articles_go_to_a_tenant_that_is_made_for_them(articles: Path) -> None:
    loaded = opora("ingest", str(articles), "--json")
    assert loaded.exit_code == 0
    report = json.loads(loaded.stdout)
    assert (report["added"], report["errors"]) == (2, [])
    assert [row["tenant_id"] for row in json.loads(opora("tenant", "list", "--json").stdout)] == [DEFAULT_TENANT]
    again = opora("ingest", str(articles))
    assert "0 added" in again.stdout
    assert "2 unchanged" in again.stdout


def test_a_removed_article_goes_when_asked_to(articles: Path) -> None:
    opora("ingest", str(articles))
    (articles / "return.txt").unlink()
    assert json.loads(opora("ingest", str(articles), "--json").stdout)["removed"] == 0
    assert json.loads(opora("ingest", str(articles), "--prune", "--json").stdout)["removed"] == 1


def test_what_cannot_be_read_is_named_and_the_rest_is_loaded(articles: Path) -> None:
    (articles / "empty.md").write_text("")
    (articles / "old.txt").write_bytes("Déjà vu".encode("cp1252"))
    (articles / "faq.jsonl").write_text('{"doc_id": "a", "text": "Ответ."}\nnot json\n{"text": "x"}\n')
    (articles / "photo.png").write_bytes(b"\x89PNG")
    result = opora("ingest", str(articles))
    assert result.exit_code == 1
    assert "3 added" in result.stdout
    lines = {line.partition(":")[0].strip(): line for line in result.stderr.splitlines()[1:]}
    assert lines.keys() == {"empty.md", "old.txt", "photo.png", "faq.jsonl, line 2", "faq.jsonl, line 3"}
    assert "UTF-8" in lines["old.txt"]
    assert "not JSON" in lines["faq.jsonl, line 2"]
    assert "doc_id" in lines["faq.jsonl, line 3"]


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [("empty.md", b"", "is empty"), ("photo.png", b"\x89PNG", "is not supported"), ("old.jsonl", b"", "is empty")],
)
def test_a_single_file_that_cannot_be_loaded_is_a_mistake(
    tmp_path: Path, name: str, content: bytes, expected: str
) -> None:
    (tmp_path / name).write_bytes(content)
    result = opora("ingest", str(tmp_path / name))
    assert result.exit_code == 2
    assert name in result.stderr
    assert expected in result.stderr


def test_every_reason_not_to_load_an_article_has_words() -> None:
    sources = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "components" / "ingest").rglob("*.py"))
    codes = set(re.findall(r'(?:Invalid|TooLarge|UnsupportedMedia)\(\s*"(\w+)"', sources))
    assert len(codes) > 10
    places = ("cli.refusal.{}", "cli.error.{}", "service.{}.detail")
    assert not {code for code in codes if not any(keys(place.format(code)) for place in places)}


def test_a_question_is_answered_as_json_or_as_text(articles: Path) -> None:
    opora("ingest", str(articles))
    answer = json.loads(opora("ask", "Можно вернуть товар?", "--json").stdout)
    assert (answer["schema"], answer["outcome"], answer["locale"]) == ("turn.v1", "answered", "ru")
    assert answer["citations"][0]["doc_id"] == "return.txt"
    shown = opora("ask", "Можно вернуть товар?", "--locale", "en").stdout
    assert "\nanswer, " in shown
    greeted = opora("ask", "Здравствуйте!", "--locale", "en").stdout
    assert "\nsmall talk, " in greeted
    refused = opora("ask", "Что значит ошибка E999?", "--locale", "en").stdout
    assert "\nrefusal: no answer in the documents, " in refused
    assert "[1]" in shown
    assert "return.txt" in shown
    assert "Вернуть товар можно за 7 дней." in shown


def test_a_question_goes_to_the_only_tenant_and_a_failure_ends_with_1(monkeypatch: pytest.MonkeyPatch) -> None:
    assert opora("tenant", "add", "acme").exit_code == 0
    assert json.loads(opora("ask", "Как вернуть товар?", "--json").stdout)["outcome"] == "refused"
    monkeypatch.setattr(ProfileEngines, "run", lambda self, turn: 1 / 0)
    failed = opora("ask", "Как вернуть товар?", "--json")
    assert (failed.exit_code, json.loads(failed.stdout)["outcome"]) == (1, "failed")
    assert opora("tenant", "add", "globex").exit_code == 0
    several = opora("ask", "Как вернуть товар?")
    assert several.exit_code == 2
    assert "acme, globex" in several.stderr


def test_a_row_without_a_question_is_named_by_its_number(tmp_path: Path) -> None:
    opora("tenant", "add", "shop")
    (tmp_path / "rows.csv").write_text("question;answer\n;4\n", encoding="utf-8")
    result = opora("evaluation", "import", str(tmp_path / "rows.csv"), "--tenant", "shop")
    assert (result.exit_code, result.stderr) == (1, "Row 2: Write a question.\n")


def test_a_data_folder_in_use_is_said(articles: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opora("ingest", str(articles))

    def index_in_use(self: Ask, request: AskRequest) -> Never:
        raise Busy("data_in_use")

    monkeypatch.setattr(Ask, "answer", index_in_use)
    result = opora("ask", "Как вернуть товар?")
    assert result.exit_code == 2
    assert "OPORA_DATA_DIR" in result.stderr
