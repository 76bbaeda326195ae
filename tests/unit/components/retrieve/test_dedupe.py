"""Near duplicates and surplus passages of a document are removed; documents of earlier passes stay."""

from haystack import Document
from hypothesis import given
from hypothesis import strategies as st

from components.retrieve.dedupe import NearDuplicateFilter, fingerprint
from components.turn import DocumentStatus
from tests.turns import document

TEN = "один два три четыре пять шесть семь восемь девять десять"


LONG = " ".join(f"слово{number}" for number in range(60))


def left(*documents: Document, distance: int = 4, most: int = 3, seen: list[Document] | None = None) -> list[str]:
    outputs = NearDuplicateFilter(distance, most).run(documents=list(documents), seen=seen)
    return [one.id for one in outputs["documents"]]


def test_the_better_of_two_near_duplicates_remains() -> None:
    assert left(document(TEN, "a"), document(TEN.upper() + "  ", "b"), document("Совсем другое.", "c")) == ["a", "c"]


def test_similarity_is_measured_on_words() -> None:
    nearly = f"{LONG} ещё"
    apart = (fingerprint(LONG) ^ fingerprint(nearly)).bit_count()
    assert 0 < apart <= 4
    assert left(document(LONG, "a"), document(nearly, "b"), distance=apart) == ["a"]
    assert left(document(LONG, "a"), document(nearly, "b"), distance=apart - 1) == ["a", "b"]


def test_passages_with_different_numbers_are_no_duplicates() -> None:
    one, two = f"{LONG} за 140 дней", f"{LONG} за 300 дней"
    assert left(document(one, "a"), document(two, "b"), distance=64) == ["a", "b"]
    assert left(document(one, "a"), document(f"{one}!", "b"), distance=64) == ["a"]


statuses: st.SearchStrategy[list[DocumentStatus]] = st.permutations(["active", "superseded", "deprecated", "archived"])


@given(statuses)
def test_a_document_in_force_is_never_dropped_for_an_outdated_one(order: list[DocumentStatus]) -> None:
    assert left(*(document(TEN, status, status=status) for status in order)) == ["active"]


def test_an_excerpt_of_a_longer_text_is_no_duplicate() -> None:
    assert left(document(TEN, "a"), document("один два", "b")) == ["a", "b"]


def test_passages_of_one_document_are_limited() -> None:
    similar = [document(f"Текст номер {number}", f"c{number}", doc_id="d") for number in range(5)]
    other = document("Другой документ", "x", doc_id="e")
    assert left(*similar, other) == ["c0", "c1", "c2", "x"]
    assert left(*similar, other, most=1) == ["c0", "x"]


def test_passages_that_name_a_code_of_the_query_come_on_top() -> None:
    similar = [document(f"Ошибка E1{number}", f"c{number}", doc_id="d") for number in range(5)]
    outputs = NearDuplicateFilter().run(documents=similar, query="Ошибка Е14, что делать?")
    assert [one.id for one in outputs["documents"]] == ["c0", "c1", "c2", "c4"]


chunks = st.lists(
    st.tuples(st.integers(0, 9), st.sampled_from("de"), st.sampled_from([TEN, "вода", "фильтр насоса", ""])),
    unique_by=lambda chunk: chunk[0],
    max_size=8,
)


@given(st.lists(chunks, min_size=1, max_size=4))
def test_a_later_pass_never_removes_earlier_documents(passes: list[list[tuple[int, str, str]]]) -> None:
    seen: list[Document] = []
    for attempt, result in enumerate(passes, 1):
        new = [document(text, str(number), doc_id=source) for number, source, text in result]
        outputs = NearDuplicateFilter().run(documents=new, seen=seen, attempt=attempt)
        after = {one.id for one in outputs["documents"]}
        assert {one.id for one in seen} <= after <= {one.id for one in (*seen, *new)}
        assert outputs["attempt"] == attempt
        seen = outputs["documents"]
