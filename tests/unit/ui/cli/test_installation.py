"""Backups and removal of tenants from the command line."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyrage import x25519
from sqlalchemy import text
from typer.testing import CliRunner, Result

import cli
from settings import get_settings
from tenants import index
from tenants.accounts.registry import Registry
from tenants.core.context import Tenant, acting_as
from tenants.desk import invitations, operators
from tenants.storage import database
from tenants.work import locks

ARTICLE = "# Refunds\n\nAn item can be returned within 14 days.\n"


@pytest.fixture(autouse=True)
def _installation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("LC_ALL", "en_GB.UTF-8")
    monkeypatch.setenv("OPORA_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("OPORA_BACKUP_KEY", str(x25519.Identity.generate()))
    get_settings.cache_clear()
    Registry().add("shop", name="Shop", locale="en")
    yield
    moved(monkeypatch, tmp_path / "data")


def moved(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """Switch to another installation."""
    index.close_all()
    locks.close_all()
    database.close_all()
    monkeypatch.setenv("OPORA_DATA_DIR", str(folder))
    get_settings.cache_clear()


def opora(*arguments: str, typed: str | None = None) -> Result:
    return CliRunner().invoke(cli.app, list(arguments), input=typed)


def test_an_installation_moves_by_two_commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    article, file, journal = tmp_path / "a.md", tmp_path / "opora.backup", tmp_path / "journal.jsonl"
    article.write_text(ARTICLE)
    assert opora("ingest", str(article), "--tenant", "shop").exit_code == 0
    before = json.loads(opora("ask", "Can I return an item?", "--tenant", "shop", "--json").stdout)
    taken = opora("backup", str(file))
    assert taken.exit_code == 0, taken.output
    assert "tenants: 1" in taken.stdout
    assert opora("person", "erase", "--subject", "anna", "--tenant", "shop").exit_code == 0
    journal.write_text(opora("person", "journal").stdout)
    moved(monkeypatch, tmp_path / "other")
    restored = opora("restore", str(file), "--erasures", str(journal), "--json")
    assert restored.exit_code == 0, restored.output
    report = json.loads(restored.stdout)
    assert (report["documents"], report["erasures"], report["rows"]["tenants"]) == (1, 1, 1)
    assert not {"sealed", "checksums"} & report.keys()
    after = json.loads(opora("ask", "Can I return an item?", "--tenant", "shop", "--json").stdout)
    assert (after["outcome"], after["answer"]["text"]) == (before["outcome"], before["answer"]["text"])
    moved(monkeypatch, tmp_path / "third")
    late = opora("restore", str(file), "--no-index")
    assert late.exit_code == 0
    assert "is back: no journal" in late.stderr
    again = opora("restore", str(file))
    assert again.exit_code == 2
    assert "already" in again.stderr


def test_what_is_missing_is_said_in_a_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPORA_BACKUP_KEY")
    get_settings.cache_clear()
    for command in ("backup", "restore"):
        refused = opora(command, str(tmp_path / "b"))
        assert (refused.exit_code, "OPORA_BACKUP_KEY" in refused.stderr) == (2, True)


def test_a_tenant_is_removed_by_whoever_types_its_id(monkeypatch: pytest.MonkeyPatch) -> None:
    mistyped = opora("tenant", "remove", "shop", typed="shp\n")
    assert (mistyped.exit_code, Registry().exists("shop")) == (2, True)
    assert "Nothing was removed" in mistyped.stderr
    typed = opora("tenant", "remove", "shop", typed="shop\n")
    assert typed.exit_code == 0, typed.output
    assert "shop is removed, rows: 2" in typed.stdout
    assert opora("tenant", "remove", "shop", "--yes").exit_code == 2
    Registry().add("shop")
    assert json.loads(opora("tenant", "remove", "shop", "--yes", "--json").stdout)["rows"] == {
        "setting_changes": 1,
        "tenants": 1,
    }


def test_a_restore_that_was_cut_off_is_not_served(tmp_path: Path) -> None:
    (tmp_path / "data" / "restoring").touch()
    refused = opora("serve")
    assert (refused.exit_code, "was interrupted" in refused.stderr) == (2, True)


def test_an_older_service_does_not_start_on_an_upgraded_database() -> None:
    with database.writing() as session:
        session.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    database.close_all()
    for command in (("serve",), ("migrate",), ("backup", "somewhere")):
        refused = opora(*command)
        assert (refused.exit_code, "newer version" in refused.stderr) == (2, True), command


def test_a_tenant_is_suspended_resumed_and_listed_with_its_size() -> None:
    def listed() -> dict[str, object]:
        (one,) = json.loads(opora("tenant", "list", "--json").stdout)
        assert isinstance(one, dict)
        return one

    assert (listed()["suspended_at"], listed()["documents"], listed()["chats"]) == (None, 0, 0)
    assert opora("tenant", "suspend", "shop").exit_code == 0
    assert listed()["suspended_at"]
    assert "suspended" in opora("tenant", "list").stdout
    assert opora("tenant", "resume", "shop").exit_code == 0
    assert listed()["suspended_at"] is None
    assert opora("tenant", "suspend", "nobody").exit_code == 2


def test_a_link_for_the_first_admin_is_printed_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    link = opora("tenant", "invite", "shop").stdout.strip()
    assert invitations.check(link.rpartition("/")[2]).tenant_id == "shop"
    article = tmp_path / "a.md"
    article.write_text(ARTICLE)
    assert opora("ingest", str(article), "--tenant", "shop").exit_code == 0
    monkeypatch.setattr(locks, "service_place", lambda _: locks.ServicePlace("127.0.0.1", 8080, "http://desk.test"))
    assert opora("tenant", "invite", "shop").stdout.startswith("http://desk.test/desk/invitation/")
    monkeypatch.undo()
    with acting_as(Tenant("shop", "")):
        operators.add("anna", "a-long-password", role="admin")
    refused = opora("tenant", "invite", "shop")
    assert (refused.exit_code, "opora operator add" in refused.stderr) == (2, True)
    (size,) = json.loads(opora("tenant", "list", "--json").stdout)
    assert (size["documents"], size["chunks"] > 0, size["storage"] > 0) == (1, True, True)


def test_a_command_without_a_tenant_asks_to_choose_one_of_several() -> None:
    assert opora("index", "generations").exit_code == 0
    Registry().add("club", name="Club", locale="en")
    asked = opora("index", "rebuild")
    assert asked.exit_code == 2
    assert "There are several tenants, choose one: --tenant ID (club, shop)." in asked.stderr
