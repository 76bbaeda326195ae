"""`opora document` and `opora index check`, for people and for scripts."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

import cli
from settings import Settings
from tenants.core.context import Tenant, acting_as
from tenants.index import open_collection

PUMP = (
    "# Насос\n\n## E20 — нет слива\n\nКод E20: очистите фильтр насоса.\n\n## Уход\n\nЧистите фильтр раз в месяц. [x]\n"
)


@pytest.fixture(autouse=True)
def shop(installation: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder whose documents are in the knowledge base of the default tenant."""
    monkeypatch.setenv("LC_ALL", "en_GB.UTF-8")
    folder = tmp_path / "kb"
    folder.mkdir()
    (folder / "pump.md").write_text(PUMP)
    (folder / "returns.md").write_text("# Возврат\n\nВернуть товар можно в течение 14 дней.")
    assert opora("ingest", str(folder)).exit_code == 0
    return folder


def opora(*arguments: str) -> Result:
    return CliRunner().invoke(cli.app, list(arguments))


def read(*arguments: str) -> dict[str, object]:
    result = opora("document", *arguments, "--json")
    assert result.exit_code == 0, result.stderr
    actual: dict[str, object] = json.loads(result.stdout)
    return actual


def test_documents_are_listed_and_paged() -> None:
    listed = opora("document", "list", "--limit", "1")
    assert "pump.md" in listed.stdout
    assert "1 of 2 shown" in listed.stderr
    assert "--after pump.md" in listed.stderr
    rest = read("list", "--after", "pump.md")
    assert [document["doc_id"] for document in rest["documents"]] == ["returns.md"]  # type: ignore[attr-defined]
    assert (rest["total"], rest["next"]) == (2, None)


def test_an_id_stays_whole_where_no_terminal_is(shop: Path) -> None:
    name = f"{'long_name_' * 12}.md"
    (shop / name).write_text("# Доставка\n\nДоставка стоит 490 рублей.")
    assert opora("ingest", str(shop)).exit_code == 0
    assert name in opora("document", "list").stdout


def test_a_person_sees_what_was_understood() -> None:
    shown = opora("document", "show", "pump.md", "--chunks", "--text").stdout
    for part in ("Насос", "E20 — нет слива", "found by:", "e20 (1)", "tokens", "status: active", "[x]", PUMP.strip()):
        assert part in shown
    document = read("show", "pump.md", "--chunks")
    chunks = document["chunks"]
    assert isinstance(chunks, list)
    assert [chunk["index"] for chunk in chunks] == list(range(len(chunks)))
    assert document["text"] is None


def test_values_are_shown_in_the_language_of_the_terminal(shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LC_ALL", "ru_RU.UTF-8")
    shown = opora("document", "show", "returns.md").stdout
    for part in ("состояние: действует", "доверие: обычный", "вид: статья", "язык: русский", "фрагментов: 1"):
        assert part in shown
    assert "действует" in opora("document", "list").stdout
    opora("document", "set", "returns.md", "--status", "archived", "--source-type", "memo")
    shown = opora("document", "show", "returns.md").stdout
    assert "состояние: в архиве (задано; в документе: действует)" in shown
    assert "вид: memo" in shown


def test_a_chunk_of_several_sections_shows_their_headings(shop: Path) -> None:
    (shop / "mill.md").write_text("# Кофемолка\n\n## Чистка\n\nРаз в месяц.\n\n## Гарантия\n\nДва года.\n")
    (shop / "hours.md").write_text("# Часы\n\nМагазин открыт с 9 до 21.\n")
    assert opora("ingest", str(shop)).exit_code == 0
    assert "\n1. Чистка, Гарантия\n" in opora("document", "show", "mill.md", "--chunks").stdout
    assert "\n1. Часы\n" in opora("document", "show", "hours.md", "--chunks").stdout


def test_properties_are_set_and_taken_back(shop: Path) -> None:
    assert (
        "changed: 1" in opora("document", "set", "pump.md", "--status", "archived", "--tag", "a", "--tag", "b").stdout
    )
    assert read("show", "pump.md")["overrides"] == {"status": "archived", "tags": ["a", "b"]}
    shown = opora("document", "show", "pump.md").stdout
    assert "status: archived (set; in the document: active)" in shown
    (shop / "pump.md").write_text(PUMP + "\nИ ещё.")
    assert opora("ingest", str(shop)).exit_code == 0
    assert read("show", "pump.md")["status"] == "archived"
    assert read("set", "pump.md", "--unset", "status", "--priority", "3") == {"documents": 1}
    after = read("show", "pump.md")
    assert (after["status"], after["priority"], after["version"]) == ("active", 3, 2)


def test_many_are_set_by_conditions() -> None:
    assert read("set", "--where", "words=НАСОС", "--where", "status=active", "--status", "archived") == {"documents": 1}
    assert read("list", "--where", "status=archived")["total"] == 1
    assert read("list", "--where", "status=archived", "--where", "status=active")["total"] == 2
    assert "No such documents" in opora("document", "list", "--where", "tag=none").stderr
    assert read("list", "--where", "flagged=no", "--where", "date_from=2020-01-01")["total"] == 2


def test_versions_are_shown_and_gone_back_to(shop: Path) -> None:
    (shop / "pump.md").write_text(PUMP + "\nИ ещё.")
    opora("ingest", str(shop))
    listed = json.loads(opora("document", "versions", "pump.md", "--json").stdout)
    assert [(row["version"], row["in_force"]) for row in listed] == [(2, True), (1, False)]
    assert "•" in opora("document", "versions", "pump.md").stdout
    assert "Version 3" in opora("document", "restore", "pump.md", "1").stdout
    assert read("show", "pump.md", "--version", "2")["text"] == PUMP + "\nИ ещё."
    assert read("show", "pump.md", "--text")["text"] == PUMP


def test_documents_are_removed_all_or_none() -> None:
    refused = opora("document", "delete", "pump.md", "missing.md")
    assert refused.exit_code == 2
    assert "opora document list" in refused.stderr
    assert read("list")["total"] == 2
    removed = json.loads(opora("document", "delete", "pump.md", "returns.md", "--json").stdout)
    assert [item["doc_id"] for item in removed] == ["pump.md", "returns.md"]
    assert read("list")["total"] == 0


MISTAKES: list[tuple[tuple[str, ...], str]] = [
    (("set", "pump.md"), "Name a property"),
    (("set", "--status", "archived"), "--where"),
    (("set", "pump.md", "--status", "lost"), "status"),
    (("set", "missing.md", "--status", "archived"), "opora document list"),
    (("set", "pump.md", "--unset", "doc_id"), "doc_id"),
    (("list", "--where", "status=lost"), "status=lost"),
    (("list", "--where", "colour=red"), "colour=red"),
    (("list", "--where", "status"), "FIELD=VALUE"),
    (("restore", "pump.md", "7"), "opora document versions"),
    (("show", "pump.md", "--version", "7"), "opora document versions"),
]


def test_a_mistake_says_what_to_do() -> None:
    for arguments, expected in MISTAKES:
        result = opora("document", *arguments)
        assert result.exit_code == 2, arguments
        assert expected in result.stderr
        assert len(result.stderr.splitlines()) == 1


def test_the_index_is_checked_and_repaired() -> None:
    assert "Everything matches: 2 documents" in opora("index", "check").stdout
    with acting_as(Tenant("default", "tests")):
        collection = open_collection()
        collection.delete([next(iter(collection.scan())).id])
    result = opora("index", "check")
    assert result.exit_code == 1
    assert "Documents with missing chunks: 1" in result.stdout
    assert "--repair --tenant default" in result.stderr
    repaired = opora("index", "check", "--repair", "--json")
    assert repaired.exit_code == 0
    report = json.loads(repaired.stdout)
    assert (report["repaired"], report["clean"], len(report["incomplete_documents"])) == (True, False, 1)
    assert opora("index", "check").exit_code == 0


def test_a_rollback_says_what_it_did(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "Generation 2 is active." in opora("index", "rebuild").stdout
    assert "Rolled back: generation 1 is active again." in opora("index", "rollback").stdout
    monkeypatch.setenv("LC_ALL", "ru_RU.UTF-8")
    opora("index", "rebuild")
    assert "Откат выполнен: снова работает версия индекса" in opora("index", "rollback").stdout
