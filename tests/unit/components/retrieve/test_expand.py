"""A hit brings its section: a procedure from its first step to its last, or a mark that some of it is missing."""

import re
from collections.abc import Callable, Sequence

import pytest
from haystack import Document

from components.answer.packing import formatted
from components.faults import collect_degraded
from components.ingest.cut import cut
from components.ingest.document import SourceDocument
from components.ingest.pack import Sizes
from components.passages import from_payload, to_passage
from components.retrieve import expand
from components.retrieve.expand import SectionExpander
from tenants.core.points import Hit
from tests.turns import document

Index = Callable[[str], list[Document]]


@pytest.fixture
def index(monkeypatch: pytest.MonkeyPatch) -> Index:
    """An index of one document, whose chunks are returned in order."""
    hits: dict[str, Hit] = {}

    class Collection:
        def fetch(self, ids: Sequence[str]) -> list[Hit]:
            return [hits[chunk_id] for chunk_id in ids if chunk_id in hits]

    def add(text: str) -> list[Document]:
        for chunk in cut(SourceDocument("a.md", "Кластер", text), Sizes(200, 500, 50, 50)).chunks:
            meta = {
                "chunk_id": chunk.chunk_id,
                "chunk_index": chunk.index,
                "heading": chunk.heading,
                "sentences": [list(span) for span in chunk.sentences],
                **chunk.meta,
            }
            hits[chunk.chunk_id] = Hit(chunk.chunk_id, 0.0, {"content": chunk.text, "meta": meta})
        return [from_payload(hit.payload, 0.5, {}) for hit in hits.values()]

    monkeypatch.setattr(expand, "open_collection", Collection)
    return add


def procedure(steps: int) -> str:
    words = "выберите нужный пункт в открывшемся окне и подтвердите свой выбор ещё раз кнопкой внизу"
    listed = "\n".join(f"1. Шаг {number}: {words}." for number in range(1, steps + 1))
    return f"## Создание\n\nСоздайте кластер:\n\n{listed}\n\n## Удаление\n\nУдалите кластер в личном кабинете."


def numbers(document: Document) -> list[int]:
    return [int(number) for number in re.findall(r"^(\d+)\. Шаг \1:", document.content or "", re.MULTILINE)]


def test_procedure_over_several_chunks_comes_whole(index: Index) -> None:
    chunks = index(procedure(50))
    hit = chunks[3]
    assert 1 not in numbers(hit)
    (section,) = SectionExpander(budget=1_900, section_tokens=600).run([hit])["documents"]
    assert numbers(section) == [*range(1, 51)]
    passage = to_passage(section)
    assert not passage.begins_earlier
    assert not passage.continues
    assert "[…" not in formatted(1, passage, "ru")


def test_procedure_over_the_budget_is_marked_as_incomplete(index: Index) -> None:
    hit = index(procedure(50))[3]
    (section,) = SectionExpander(budget=900, section_tokens=700).run([hit])["documents"]
    found = numbers(section)
    assert found == [*range(found[0], found[-1] + 1)]
    shown = formatted(1, to_passage(section), "ru").split("\n")
    assert shown[1] == "[… начало раздела пропущено]"
    assert shown[-1] == "[… раздел продолжается]"


def test_cut_section_keeps_its_procedure_whole(index: Index) -> None:
    prose = "\n\n".join(
        f"Абзац {number} о том, как устроен кластер и чем он отличается от машин." for number in range(60)
    )
    chunks = index(f"## Создание\n\n{prose}\n\n{procedure(24).removeprefix('## Создание')}")
    hit = next(chunk for chunk in chunks if 24 in numbers(chunk))
    (section,) = SectionExpander(budget=1_200, section_tokens=700, procedure_tokens=1_200).run([hit])["documents"]
    assert numbers(section) == [*range(1, 25)]
    assert to_passage(section).begins_earlier


def test_short_document_is_taken_whole_if_its_pipeline_wants_that(index: Index) -> None:
    first, second = index("## Цена\n\n" + "Цена зависит от тарифа. " * 40 + "\n\n## Срок\n\n" + "Срок — год. " * 60)
    (whole,) = SectionExpander(document_chunks=2).run([second])["documents"]
    assert (whole.content or "").startswith("Цена")
    assert "# Срок\n" in formatted(1, to_passage(whole), "ru")
    assert SectionExpander(document_chunks=1).run([second])["documents"][0].content == second.content
    assert first.content != second.content


def test_section_of_the_hit_is_known_in_a_whole_document(index: Index) -> None:
    text = " ".join(f"Кластер номер {number} работает в облаке." for number in range(30))
    chunks = index(f"## Работа\n\n{text}\n\n## Удаление\n\nУдалите кластер. {text}")
    hit = next(one for one in chunks if one.meta["heading"] == "Удаление")
    expander = SectionExpander(document_chunks=20)
    (whole,) = expander.run([hit])["documents"]
    section = whole.meta["hit_section"]
    assert section["heading"] == "Удаление"
    assert (whole.content or "")[section["start"] :].startswith("Удалите кластер.")
    assert section["end"] == len(whole.content or "")


def test_short_opening_brings_the_chunk_that_follows(index: Index) -> None:
    opening = " ".join(["Если машина прыгает, проверьте причины ниже по порядку."] * 5)
    chunks = index(f"{opening}\n\n" + "\n\n".join(f"## {name}\n\n{'Проверьте ножки. ' * 60}" for name in "АБВГД"))
    (section,) = SectionExpander().run([chunks[0]])["documents"]
    assert (section.content or "").startswith(opening)
    assert "## А" in (section.content or "")
    assert "## Б" not in (section.content or "")
    (alone,) = SectionExpander(opening_tokens=10).run([chunks[0]])["documents"]
    assert alone.content == opening


def test_only_the_best_sections_are_taken_whole(index: Index) -> None:
    chunks = index(procedure(20))
    first, second = index("## Оплата\n\n" + "Счёт приходит в начале месяца на почту владельца. " * 60)[-2:]
    expander = SectionExpander(budget=8_000, whole_sections=1, excerpt_tokens=200)
    whole, excerpt = expander.run(documents=[chunks[0], first])["documents"]
    assert numbers(whole) == list(range(1, 21))
    assert excerpt.content == first.content
    assert excerpt.meta["continues"] or excerpt.meta["begins_earlier"]
    assert len(expander.run(documents=[chunks[0], first, second])["documents"]) == 3


def test_cut_section_keeps_its_opening(index: Index) -> None:
    prose = "\n\n".join(
        f"Абзац {number} о том, как устроен кластер и чем он отличается от машин." for number in range(70)
    )
    chunks = index(f"## Модели\n\nМодель — это способ, которым облако даёт ресурсы.\n\n{prose}")
    hit = chunks[6]
    expander = SectionExpander(section_tokens=500, procedure_tokens=900, with_opening=True)
    (section,) = expander.run([hit])["documents"]
    passage = to_passage(section)
    shown = formatted(1, passage, "ru")
    assert "Модель — это способ" in shown
    assert (hit.content or "")[-60:] in shown
    assert re.search(r"Абзац 8 .*\n\[… часть раздела пропущена\]\nАбзац 4\d ", shown)
    assert not passage.begins_earlier
    assert passage.is_cut

    (near,) = expander.run([chunks[3]])["documents"]
    assert to_passage(near).gap == 0
    assert (near.content or "").startswith("Модель")
    (without,) = SectionExpander(section_tokens=500).run([hit])["documents"]
    assert to_passage(without).begins_earlier


def test_excerpt_keeps_its_procedure_whole(index: Index) -> None:
    *steps, _ = index(procedure(20))
    first, *_ = index("## Оплата\n\n" + "Счёт приходит в начале месяца на почту владельца. " * 20)[-1:]
    expander = SectionExpander(budget=8_000, section_tokens=900, whole_sections=1, excerpt_tokens=200)
    _, excerpt = expander.run(documents=[first, steps[0]])["documents"]
    assert numbers(excerpt) == list(range(1, 21))


def test_documents_of_one_title_are_told_apart_by_their_place() -> None:
    found = [
        document("Диски.", "a", doc_id="1", title="О сервисе", url="https://help.example/disks/about"),
        document("Сети.", "b", doc_id="networks/about", title="О сервисе"),
        document("Цены.", "c", doc_id="prices", title="Цены"),
        document("Скидки.", "d", doc_id="prices", title="Цены"),
    ]
    shown = [formatted(1, to_passage(one), "ru").split("\n")[0] for one in SectionExpander().run(found)["documents"]]
    assert shown == [
        "[1] source: disks/about › О сервисе",
        "[1] source: networks/about › О сервисе",
        "[1] source: Цены",
        "[1] source: Цены",
    ]


def test_chunk_of_an_older_index_passes_alone_and_marked(index: Index) -> None:
    hit = index(procedure(50))[3]
    del hit.meta["around"]
    (section,) = SectionExpander().run([hit])["documents"]
    assert section.content == hit.content
    assert to_passage(section).continues


def test_unreadable_index_leaves_the_chunks(index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    hit = index(procedure(50))[3]

    def unreachable() -> None:
        raise ConnectionError

    monkeypatch.setattr(expand, "open_collection", unreachable)
    with collect_degraded() as steps:
        (section,) = SectionExpander().run([hit])["documents"]
    assert section.content == hit.content
    assert "section" in steps
