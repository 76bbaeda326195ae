"""The journal of erasures, which is applied to every restored backup."""

import json
from pathlib import Path

import pytest

from settings import Settings, get_settings
from tenants.accounts.registry import Registry
from tenants.chats import conversation_memory
from tenants.core.context import Tenant, acting_as
from tenants.core.errors import CallerError, TryAgain
from tenants.privacy import erasures, persons
from tenants.privacy.persons import Person

ANNA = Tenant("acme", "anna")


def test_a_journal_can_be_written_anew_from_the_records(records: Settings, tmp_path: Path) -> None:
    Registry().add("acme")
    with acting_as(ANNA):
        persons.erase(Person(subject="anna"))
        persons.erase(Person(session_id="s1"))
    path = tmp_path / "journal.jsonl"
    path.write_text("".join(erasures.journal(records)))
    noted = erasures.read(records.data_dir / "erasures.jsonl")
    assert [(one.person, one.session_id) for one in erasures.read(path)] == [
        (one.person, one.session_id) for one in noted
    ]


def test_a_torn_line_of_the_journal_was_no_erasure_and_spoils_no_other(installation: Settings) -> None:
    erasures.record("acme", person="a" * 32)
    path = installation.data_dir / "erasures.jsonl"
    with path.open("ab") as file:
        file.write(b'{"tenant_id":"ac')
    erasures.record("acme", session_id="s1")
    assert [(one.person[:1], one.session_id) for one in erasures.read(path)] == [("a", ""), ("", "s1")]
    path.write_text('{"tenant_id": 1}\n')
    with pytest.raises(CallerError, match="journal_unreadable"):
        erasures.read(path)


def test_nobody_is_erased_whose_erasure_cannot_be_noted(
    installation: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Registry().add("acme")
    monkeypatch.setenv("OPORA_ERASURE_JOURNAL", str(tmp_path))
    get_settings.cache_clear()
    with acting_as(ANNA):
        conversation_memory.remember("s1", conversation_memory.PastTurn("Где?", "answered"))
        with pytest.raises(TryAgain, match="journal_unwritable"):
            persons.erase(Person(subject="anna"))
        assert len(persons.export(Person("anna"))["conversations"]) == 1


def test_a_journal_names_a_site_only_where_one_was_named(installation: Settings) -> None:
    erasures.record("acme", person="a" * 32)
    erasures.record("acme", person="a" * 32, site="brand-a")
    path = installation.data_dir / "erasures.jsonl"
    everywhere, at_site = path.read_text().splitlines()
    assert set(json.loads(everywhere)) == {"tenant_id", "person", "session_id", "at"}, "0.2.0 accepts no other field"
    assert json.loads(at_site)["site"] == "brand-a"
    assert [one.site for one in erasures.read(path)] == ["", "brand-a"]
