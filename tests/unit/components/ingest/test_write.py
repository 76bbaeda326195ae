"""Precomputation for documents before they are written does not change the stored result."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import pytest

from components.ingest import write
from components.ingest.analysis import Analysed, Text, analysed
from components.ingest.document import Revision, SourceDocument
from components.ingest.encode import encoded
from components.ingest.enrich import ChunkEnricher
from components.ingest.split import DocumentSplitter
from components.ingest.text_processes import TextProcesses
from components.ingest.write import ChunkWriter, redescribe
from components.language.encoder_settings import STANDARD, EncoderSettings
from settings import Settings
from tenants.accounts.registry import Registry
from tenants.core.context import Tenant, acting_as
from tenants.core.json import Json
from tenants.core.points import Dense
from tenants.index import Point
from tenants.knowledge import documents

SECTIONS = ("слива", "залива", "отжима", "нагрева", "двери")


@pytest.fixture(autouse=True)
def _acme(installation: Settings) -> Iterator[None]:
    Registry().add("acme")
    with acting_as(Tenant("acme", "tests")):
        yield


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The titles and headings of chunks in the order of analysis."""
    seen: list[str] = []

    class Watched(TextProcesses):
        def analysed(self, texts: Sequence[Text], settings: EncoderSettings) -> Iterator[Analysed]:
            seen.extend(f"{text.title}: {text.heading}" for text in texts)
            return super().analysed(texts, settings)

    monkeypatch.setattr(write, "TEXT_PROCESSES", Watched())
    return seen


@pytest.fixture
def stored(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The titles and headings of chunks in the order of storage; each is checked against a fresh analysis."""
    seen: list[str] = []

    def checked(text: Text, payload: Mapping[str, Json], found: Analysed, dense: Mapping[Text, Dense]) -> Point:
        assert found == analysed([text], STANDARD.json_form)[0]
        seen.append(f"{text.title}: {text.heading}")
        return encoded(text, payload, found, dense)

    monkeypatch.setattr(write, "encoded", checked)
    return seen


def revision(title: str = "Стирка", sections: Sequence[str] = SECTIONS) -> Revision:
    """Return a document with one chunk per sentence."""
    body = "\n\n".join(f"## Ошибка {name}\n\n" + f"Проверьте датчик {name} и шланг. " * 20 for name in sections)
    split = DocumentSplitter().run(revisions=[Revision(SourceDocument("a", title, body), str(hash(body)))])
    (whole,) = ChunkEnricher().run(revisions=split["revisions"])["revisions"]
    return whole


def named(title: str, sections: Sequence[str] = SECTIONS) -> list[str]:
    return [f"{title}: Ошибка {name}" for name in sections]


def test_prepared_chunks_are_not_computed_again(later: list[str], stored: list[str]) -> None:
    revisions, writer = [revision()], ChunkWriter()
    prepared = writer.prepare(revisions)
    assert later == named("Стирка")
    assert documents.get("a") is None
    assert writer.run(revisions=revisions, prepared=prepared)["written"].chunks_written == 5
    assert later == stored == named("Стирка")
    assert writer.prepare(revisions).analysed == {}


def test_unprepared_chunks_are_computed_when_written(
    later: list[str], stored: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(write, "_MAX_PREPARED", 2)
    revisions, writer = [revision()], ChunkWriter()
    prepared = writer.prepare(revisions)
    assert later == named("Стирка", SECTIONS[:2])
    # What is not the first of a batch may have been prepared as well.
    partly = replace(prepared, analysed={text: prepared.analysed[text] for text in [*prepared.analysed][1:]})
    writer.run(revisions=revisions, prepared=partly)
    assert stored == named("Стирка")


def test_a_rename_between_preparing_and_writing_is_respected(stored: list[str]) -> None:
    writer = ChunkWriter()
    writer.run(revisions=[revision(sections=SECTIONS[:1])])
    prepared = writer.prepare([revision()])
    rename("Другое имя")
    stored.clear()
    writer.run(revisions=[revision()], prepared=prepared)
    assert stored == named("Другое имя", SECTIONS[1:])


def test_a_renamed_document_is_prepared_under_the_name_it_has(later: list[str], stored: list[str]) -> None:
    writer = ChunkWriter()
    writer.run(revisions=[revision(sections=SECTIONS[:4])])
    rename("Другое имя")
    later.clear()
    stored.clear()
    writer.run(revisions=[revision()], prepared=writer.prepare([revision()]))
    assert later == stored == named("Другое имя", SECTIONS[4:])


def rename(title: str) -> None:
    record = documents.get("a")
    assert record is not None
    renamed = replace(record, title=title, overrides={"title": title})
    documents.put(renamed)
    redescribe([renamed])
