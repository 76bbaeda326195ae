"""Maintenance of documents: an operator's values win and persist, and are stored without encoding again."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from components.ingest import write
from components.ingest.document import SourceDocument
from components.ingest.encode import Payload, text_of
from components.ingest.encode import encoded as encode_chunk
from components.ingest.reconcile import compare
from components.ingest.records import PROPERTIES
from pipelines.ingest.library import Library
from pipelines.ingest.usecase import Ingest
from settings import ROOT, Settings
from tenants.accounts.registry import Registry
from tenants.core.context import Tenant, acting_as
from tenants.core.errors import Invalid, NotFound
from tenants.core.json import Json
from tenants.core.points import Point
from tenants.knowledge import documents, versions
from tenants.knowledge.catalogue import Selection
from tests.unit.pipelines.ingest.stored import article, check_consistent, hits, meta


@pytest.fixture
def library(tenant: Tenant, ingest: Ingest) -> Library:
    return Library(ingest.rewrite)


@pytest.fixture
def encoded(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The titles of all passages encoded, in order."""
    titles: list[str] = []

    def counting(payload: Payload, *parts: Any) -> Point:  # noqa: ANN401 - those of `encoded`
        titles.append(text_of(payload).title)
        return encode_chunk(payload, *parts)

    monkeypatch.setattr(write, "encoded", counting)
    return titles


SET: dict[str, Json] = {
    "status": "archived",
    "trust": "accepted",
    "priority": 7,
    "tags": ["новое"],
    "project_key": "p",
    "evidence_tier": "",
    "source_type": "manual",
}


def test_properties_reach_record_and_chunks_without_encoding(
    library: Library, ingest: Ingest, encoded: list[str]
) -> None:
    ingest.run([article("a", tags="старое"), article("b")])
    encoded.clear()
    record = library.change("a", SET)
    assert encoded == []
    assert record.overrides == SET
    assert record.given["tags"] == ["старое"]
    assert {name: getattr(record, name) for name in SET} == {**SET, "tags": ("новое",)}
    assert all({name: meta(hit)[name] for name in SET} == SET for hit in hits("a"))
    assert {meta(hit)["status"] for hit in hits("b")} == {"active"}
    check_consistent()


def test_set_properties_survive_ingesting_again(library: Library, ingest: Ingest) -> None:
    ingest.run([article("a", status="active")])
    library.change("a", {"status": "deprecated", "title": "Имя от оператора"})
    ingest.run([article("a", edit="правка", status="superseded", priority=5)])
    record = library.read("a")
    assert (record.status, record.title, record.priority) == ("deprecated", "Имя от оператора", 5)
    assert (record.given["status"], record.given["title"]) == ("superseded", "Статья a")
    assert {(meta(hit)["status"], meta(hit)["title"]) for hit in hits()} == {("deprecated", "Имя от оператора")}
    library.change("a", {"status": None, "title": None})
    assert (library.read("a").status, library.read("a").title) == ("superseded", "Статья a")
    assert library.read("a").overrides == {}
    check_consistent()


WRONG: list[tuple[dict[str, Json], str]] = [
    ({"status": "lost"}, "metadata_invalid"),
    ({"trust": "блат"}, "metadata_invalid"),
    ({"priority": 101}, "metadata_invalid"),
    ({"priority": True}, "metadata_invalid"),
    ({"tags": ["", "x"]}, "metadata_invalid"),
    ({"title": " \n"}, "metadata_invalid"),
    ({"title": "x" * 501}, "metadata_invalid"),
    ({"project_key": "x" * 201}, "metadata_invalid"),
    ({"doc_id": "b"}, "property_unknown"),
    ({"tenant": "globex"}, "property_unknown"),
    ({"chunk_ids": []}, "property_unknown"),
]


def test_an_invalid_change_changes_nothing(library: Library, ingest: Ingest) -> None:
    ingest.run([article("a")])
    before = library.read("a"), hits()
    for changes, code in WRONG:
        with pytest.raises(Invalid, match=code):
            library.change("a", {"priority": 1, **changes})
        with pytest.raises(Invalid, match=code):
            library.change_all(Selection(), {"priority": 1, **changes})
    assert (library.read("a"), hits()) == before
    assert not ingest.run([]).healed


def test_an_unknown_document_is_not_found(library: Library, ingest: Ingest) -> None:
    ingest.run([article("a")])
    for attempt in (
        lambda: library.read("b"),
        lambda: library.change("b", {"priority": 1}),
        lambda: library.delete("b"),
        lambda: library.versions("b"),
        lambda: library.version("b"),
        lambda: library.chunks("b"),
        lambda: library.restore("b", 1),
        lambda: library.restore("a", 2),
        lambda: library.version("a", 2),
    ):
        with pytest.raises(NotFound):
            attempt()
    assert not ingest.run([]).healed


def test_a_restored_version_stays_until_the_source_changes(library: Library, ingest: Ingest) -> None:
    ingest.run([article("a", edit="первая")])
    ingest.run([article("a", edit="вторая")])
    library.change("a", {"priority": 4})
    library.restore("a", 1)
    assert ingest.run([article("a", edit="вторая")]).unchanged == 1
    assert "первая" in library.version("a").text
    assert ingest.run([article("a", edit="третья")]).updated == 1
    assert "третья" in library.version("a").text
    assert library.read("a").priority == 4
    assert library.read("a").version == 4


def test_reprocessing_a_document_keeps_its_version_and_day(library: Library, ingest: Ingest, tmp_path: Path) -> None:
    ingest.run([article("a")])
    documents.put(replace(library.read("a"), updated_at="2020-01-01"))
    path = tmp_path / "ingest.yaml"
    path.write_text((ROOT / "pipelines/ingest/ingest.yaml").read_text() + "\nmetadata: {}\n")
    path.write_text(path.read_text().replace("priority: 0", "priority: 1"))
    assert Ingest(path).run([article("a")]).updated == 1
    record = library.read("a")
    assert (record.version, record.updated_at, record.priority) == (1, "2020-01-01", 1)
    check_consistent()


def test_inspection_shows_what_was_understood(library: Library, ingest: Ingest) -> None:
    sentences = " ".join(f"Предложение номер {at} говорит о насосе, фильтре и шланге машины." for at in range(60))
    ingest.run(
        [SourceDocument("a", "Насос", f"## Раздел\n\n{sentences}\n\n## E20 — нет слива\n\nКод E20: вода не сливается.")]
    )
    chunks = library.chunks("a")
    assert [chunk.index for chunk in chunks] == list(range(len(chunks)))
    assert {chunk.heading for chunk in chunks} == {"Раздел", "E20 — нет слива"}
    assert chunks[0].overlap == 0
    assert chunks[1].overlap > 0
    repeated = chunks[1].text[: chunks[1].overlap]
    assert chunks[0].text.endswith(repeated)
    assert chunks[-1].overlap == 0
    assert all(200 <= chunk.tokens <= 500 for chunk in chunks[:2])
    assert chunks[0].sentences[0] == (0, len("Предложение номер 0 говорит о насосе, фильтре и шланге машины."))
    terms = {term.stem: term.chunks for term in chunks[-1].terms}
    assert terms["e20"] == 1
    assert chunks[-1].terms[0].chunks == 1
    assert list(terms.values()) == sorted(terms.values())


class Life(RuleBasedStateMachine):
    """Anything that may happen to three documents, in any order."""

    ingest: Ingest
    ids = st.sampled_from(["a", "b", "c"])
    edits = st.sampled_from(["", "первая", "вторая", "третья"])
    changes = st.fixed_dictionaries(
        {},
        optional={
            "title": st.sampled_from([None, "Насос", "Фильтр"]),
            "status": st.sampled_from([None, "archived", "superseded"]),
            "priority": st.sampled_from([None, 1, 100]),
            "tags": st.sampled_from([None, ["x"], ["x", "y"]]),
            "project_key": st.sampled_from([None, "", "p"]),
        },
    )

    def __init__(self) -> None:
        super().__init__()
        # A separate tenant for each run of the machine.
        Life.number += 1
        tenant_id = f"life-{Life.number}"
        Registry().add(tenant_id)
        self.tenant = Tenant(tenant_id, "tests")
        self.library = Library(self.ingest.rewrite)
        self.overrides: dict[str, dict[str, Json]] = {}
        self.texts: dict[str, str] = {}

    number = 0

    @rule(doc_id=ids, edit=edits, sections=st.integers(1, 3), priority=st.sampled_from([0, 9]))
    def put(self, doc_id: str, edit: str, sections: int, priority: int) -> None:
        document = article(doc_id, sections, edit, priority=priority)
        with acting_as(self.tenant):
            report = self.ingest.run([document])
        if report.added + report.updated:
            self.texts[doc_id] = document.text
        self.overrides.setdefault(doc_id, {})

    @precondition(lambda self: self.texts)
    @rule(data=st.data(), changes=changes)
    def set(self, data: st.DataObject, changes: dict[str, Json]) -> None:
        doc_id = data.draw(st.sampled_from(sorted(self.texts)))
        with acting_as(self.tenant):
            self.library.change(doc_id, changes)
        known = {**self.overrides[doc_id], **changes}
        self.overrides[doc_id] = {name: value for name, value in known.items() if value is not None}

    @precondition(lambda self: self.texts)
    @rule(changes=changes)
    def set_all(self, changes: dict[str, Json]) -> None:
        with acting_as(self.tenant):
            assert self.library.change_all(Selection(), changes) == len(self.texts)
        for doc_id in self.texts:
            known = {**self.overrides[doc_id], **changes}
            self.overrides[doc_id] = {name: value for name, value in known.items() if value is not None}

    @precondition(lambda self: self.texts)
    @rule(data=st.data())
    def restore(self, data: st.DataObject) -> None:
        doc_id = data.draw(st.sampled_from(sorted(self.texts)))
        with acting_as(self.tenant):
            number = data.draw(st.sampled_from([item.version for item in self.library.versions(doc_id)]))
            self.texts[doc_id] = self.library.version(doc_id, number).text
            self.library.restore(doc_id, number)

    @precondition(lambda self: self.texts)
    @rule(data=st.data())
    def delete(self, data: st.DataObject) -> None:
        doc_id = data.draw(st.sampled_from(sorted(self.texts)))
        with acting_as(self.tenant):
            self.library.delete(doc_id)
        del self.texts[doc_id]
        del self.overrides[doc_id]

    @invariant()
    def everything_fits(self) -> None:
        with acting_as(self.tenant):
            check_consistent()
            assert compare(count=True).clean
            records = {record.doc_id: record for record in documents.all()}
            assert records.keys() == self.texts.keys()
            for doc_id, record in records.items():
                assert record.overrides == self.overrides[doc_id]
                in_force = {**record.given, **record.overrides}
                assert in_force.keys() == set(PROPERTIES)
                for hit in hits(doc_id):
                    assert {name: meta(hit)[name] for name in PROPERTIES} == in_force
                kept = self.library.versions(doc_id)
                assert len(kept) <= versions.MAX_VERSIONS
                assert kept[0].version == record.version
                assert self.library.version(doc_id).text == self.texts[doc_id]


def test_any_life_of_documents_keeps_records_chunks_and_lexicon_together(
    installation: Settings, ingest: Ingest
) -> None:
    Life.ingest = ingest
    run_state_machine_as_test(
        Life,
        settings=settings(
            max_examples=4, stateful_step_count=10, suppress_health_check=list(HealthCheck), deadline=None
        ),
    )
