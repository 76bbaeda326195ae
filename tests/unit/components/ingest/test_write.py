"""A document keeps the name that an operator gave it between preparing and writing."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from components.ingest import write
from components.ingest.document import Revision, SourceDocument
from components.ingest.encode import Payload, encoded, text_of
from components.ingest.enrich import ChunkEnricher
from components.ingest.split import DocumentSplitter
from components.ingest.write import ChunkWriter, redescribe
from tenants.core.points import Point
from tenants.knowledge import documents

pytestmark = pytest.mark.usefixtures("tenant")

SECTIONS = ("слива", "залива", "отжима", "нагрева", "двери")


@pytest.fixture
def stored(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The titles and headings of chunks in the order of storage."""
    seen: list[str] = []

    def noted(payload: Payload, *parts: Any) -> Point:  # noqa: ANN401 - those of `encoded`
        text = text_of(payload)
        seen.append(f"{text.title}: {text.heading}")
        return encoded(payload, *parts)

    monkeypatch.setattr(write, "encoded", noted)
    return seen


def revision(title: str = "Стирка", sections: Sequence[str] = SECTIONS) -> Revision:
    """Return a document with one chunk per sentence."""
    body = "\n\n".join(f"## Ошибка {name}\n\n" + f"Проверьте датчик {name} и шланг. " * 20 for name in sections)
    split = DocumentSplitter().run(revisions=[Revision(SourceDocument("a", title, body), str(hash(body)))])
    (whole,) = ChunkEnricher().run(revisions=split["revisions"])["revisions"]
    return whole


def named(title: str, sections: Sequence[str] = SECTIONS) -> list[str]:
    return [f"{title}: Ошибка {name}" for name in sections]


def test_a_rename_between_preparing_and_writing_is_respected(stored: list[str]) -> None:
    writer = ChunkWriter()
    writer.run(revisions=[revision(sections=SECTIONS[:1])])
    prepared = writer.prepare([revision()])
    rename("Другое имя")
    stored.clear()
    writer.run(revisions=[revision()], prepared=prepared)
    assert stored == named("Другое имя", SECTIONS[1:])


def rename(title: str) -> None:
    record = documents.get("a")
    assert record is not None
    renamed = replace(record, title=title, overrides={"title": title})
    documents.put(renamed)
    redescribe([renamed])
