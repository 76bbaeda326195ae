"""Near duplicates and the surplus of one document; what an earlier pass kept stays."""

from dataclasses import replace

from haystack import Pipeline
from hypothesis import given
from hypothesis import strategies as st

from components.retrieve.dedupe import NearDuplicateFilter, fingerprint
from components.turn import DocumentStatus, Evidence, Passage
from tests.turns import passage, searched

TEN = "один два три четыре пять шесть семь восемь девять десять"


LONG = " ".join(f"слово{number}" for number in range(60))


def left(*passages: Passage, distance: int = 4, most: int = 3) -> list[str]:
    after = NearDuplicateFilter(distance, most).run(searched("?", *passages))["turn"]
    return [one.chunk_id for one in after.evidence.passages]


def test_the_better_of_two_near_duplicates_remains() -> None:
    assert left(passage(TEN, "a"), passage(TEN.upper() + "  ", "b"), passage("Совсем другое.", "c")) == ["a", "c"]


def test_similarity_is_measured_on_words() -> None:
    nearly = f"{LONG} ещё"
    apart = (fingerprint(LONG) ^ fingerprint(nearly)).bit_count()
    assert 0 < apart <= 4
    assert left(passage(LONG, "a"), passage(nearly, "b"), distance=apart) == ["a"]
    assert left(passage(LONG, "a"), passage(nearly, "b"), distance=apart - 1) == ["a", "b"]


def test_passages_with_different_numbers_are_no_duplicates() -> None:
    one, two = f"{LONG} за 140 дней", f"{LONG} за 300 дней"
    assert left(passage(one, "a"), passage(two, "b"), distance=64) == ["a", "b"]
    assert left(passage(one, "a"), passage(f"{one}!", "b"), distance=64) == ["a"]


statuses: st.SearchStrategy[list[DocumentStatus]] = st.permutations(["active", "superseded", "deprecated", "archived"])


@given(statuses)
def test_a_document_in_force_is_never_dropped_for_an_outdated_one(order: list[DocumentStatus]) -> None:
    assert left(*(replace(passage(TEN, status), status=status) for status in order)) == ["active"]


def test_an_excerpt_of_a_longer_text_is_no_duplicate() -> None:
    assert left(passage(TEN, "a"), passage("один два", "b")) == ["a", "b"]


@given(st.permutations(TEN.split()))
def test_the_order_of_words_does_not_matter(words: list[str]) -> None:
    assert fingerprint(" ".join(words)) == fingerprint(TEN)


def test_passages_of_one_document_are_limited() -> None:
    many = [passage(f"Текст номер {number}", f"c{number}", doc_id="d") for number in range(5)]
    other = passage("Другой документ", "x", doc_id="e")
    assert left(*many, other) == ["c0", "c1", "c2", "x"]
    assert left(*many, other, most=1) == ["c0", "x"]


chunks = st.lists(
    st.tuples(st.integers(0, 9), st.sampled_from("de"), st.sampled_from([TEN, "вода", "фильтр насоса", ""])),
    unique_by=lambda chunk: chunk[0],
    max_size=8,
)


@given(st.lists(chunks, min_size=1, max_size=4))
def test_a_later_pass_never_removes_earlier_passages(passes: list[list[tuple[int, str, str]]]) -> None:
    evidence = Evidence()
    for result in passes:
        before = {one.chunk_id for one in evidence.passages}
        new = [passage(text, str(number), doc_id=document) for number, document, text in result]
        unknown = tuple(one for one in new if one.chunk_id not in before)
        # New finds rank above: the hardest case for what is known already.
        turn = replace(searched("?"), evidence=replace(evidence, passages=unknown + evidence.passages, has_new=True))
        evidence = NearDuplicateFilter().run(turn)["turn"].evidence
        after = {one.chunk_id for one in evidence.passages}
        assert before <= after <= before | {one.chunk_id for one in unknown}
        assert evidence.has_new == (after > before)
        assert evidence.earlier_ids == after


def test_round_trip() -> None:
    pipeline = Pipeline()
    pipeline.add_component("dedupe", NearDuplicateFilter(8, 2))
    again = Pipeline.loads(pipeline.dumps(), allowed_modules=["components"])
    assert again.dumps() == pipeline.dumps()
    assert again.to_dict()["components"]["dedupe"]["init_parameters"] == {"distance": 8, "max_per_document": 2}
