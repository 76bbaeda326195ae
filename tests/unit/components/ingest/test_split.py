"""Chunks: no text is lost, no unit is split, ids are stable."""

import re
from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from components.ingest.document import Chunk, Revision, SourceDocument
from components.ingest.markdown import markdown_blocks
from components.ingest.split import DocumentSplitter
from components.ingest.tokens import count_tokens
from components.language.normalise import clean
from tenants.core.errors import InternalFault
from tests.generated import lines

SENTENCE = "Проверьте, что сливной шланг не перегнут и поднят на высоту от шестидесяти сантиметров. "


def split(text: str, title: str = "Статья", splitter: DocumentSplitter | None = None) -> tuple[Chunk, ...]:
    document = SourceDocument("d", title, text, source="a/b.md")
    (revision,) = (splitter or DocumentSplitter()).run(revisions=[Revision(document, "")])["revisions"]
    return revision.chunks


def test_a_plain_text_does_not_say_its_title_twice() -> None:
    document = SourceDocument("d", "Blocking Time", "Blocking  time\nIt is easy.", source="a", markup="plain")
    (revision,) = DocumentSplitter().run(revisions=[Revision(document, "")])["revisions"]
    assert [chunk.text for chunk in revision.chunks] == ["It is easy."]


def paragraph(sentences: int, start: int = 0) -> str:
    return " ".join(f"Шаг {start + at}. {SENTENCE}".strip() for at in range(sentences))


sections = st.lists(
    st.tuples(
        st.sampled_from(["", "# Общее", "## Слив", "### Фильтр", "## E20 — не сливается", "## E25 — насос", "#### "]),
        st.one_of(
            st.integers(0, 40).map(paragraph),
            st.integers(1, 60).map(lambda n: "\n".join(f"{at}. {SENTENCE}" for at in range(1, n))),
            st.integers(1, 80).map(lambda n: "```sh\n" + "\n".join(f"run --step {at}" for at in range(n)) + "\n```"),
            st.integers(1, 80).map(
                lambda n: (
                    "| Код | Значение |\n| --- | --- |\n" + "\n".join(f"| E{at} | смысл {at} |" for at in range(n))
                )
            ),
            st.text("а.б ", max_size=3000),
            lines,
        ),
    ),
    max_size=8,
)
documents = sections.map(lambda parts: "\n\n".join(f"{heading}\n\n{body}" for heading, body in parts))
splitters = st.sampled_from([(200, 500, 50, 50), (60, 120, 20, 20), (100, 100, 0, 0), (0, 100, 0, 25)]).map(
    lambda sizes: DocumentSplitter(*sizes)
)


@given(documents, splitters)
def test_no_text_is_lost_and_chunk_sizes_are_respected(text: str, splitter: DocumentSplitter) -> None:
    chunks = split(text, splitter=splitter)
    remaining: Counter[str] = Counter()
    for chunk in chunks:
        remaining.update(re.findall(r"\w", f"{chunk.heading}{chunk.text}"))
        assert 0 < count_tokens(chunk.text) <= splitter.max_tokens
        assert chunk.text == chunk.text.strip()
    blocks = markdown_blocks(clean(text))
    shown = Counter(letter for block in blocks if block.kind != "heading" for letter in re.findall(r"\w", block.text))
    assert not shown - remaining
    headings = {block.text for block in blocks if block.kind == "heading"} - {"Статья"}
    assert all(any(heading in f"{chunk.heading}\n{chunk.text}" for chunk in chunks) for heading in headings)


@given(documents)
def test_sentences_are_offsets_into_the_text_in_order(text: str) -> None:
    for index, chunk in enumerate(split(text)):
        assert chunk.index == index
        position = 0
        for start, end in chunk.sentences:
            assert position <= start < end <= len(chunk.text)
            assert not chunk.text[position:start].strip()
            assert chunk.text[start:end] == chunk.text[start:end].strip()
            position = end
        assert not chunk.text[position:].strip()


@given(documents, st.integers(0, 7))
def test_chunk_ids_are_unique_and_stable(text: str, where: int) -> None:
    chunks = split(text)
    ids = [chunk.chunk_id for chunk in chunks]
    assert len(set(ids)) == len(ids)
    assert [chunk.chunk_id for chunk in split(text)] == ids
    # A new section does not change the chunks of other sections.
    appended = split(f"{text}\n\n# Новый раздел\n\n{paragraph(12)}")
    assert len({chunk.chunk_id for chunk in appended} & set(ids)) >= len(ids) - 1


def test_one_edit_changes_only_the_chunks_around_it() -> None:
    text = "\n\n".join(f"## Раздел {at}\n\n{paragraph(20, at)}" for at in range(10))
    before, after = split(text), split(text.replace("## Раздел 5\n\nШаг 5.", "## Раздел 5\n\nПравка."))
    assert len(before) > 20
    assert len({chunk.chunk_id for chunk in after} - {chunk.chunk_id for chunk in before}) == 1


def test_chunks_close_at_paragraphs_and_overlap_in_whole_sentences() -> None:
    text = "\n\n".join(paragraph(4, 4 * at) for at in range(12))
    chunks = split(text)
    assert len(chunks) > 3
    for before, after in pairwise(chunks):
        assert 200 <= count_tokens(before.text) <= 500
        start, end = after.sentences[0]
        assert after.text[start:end] in before.text
        assert before.text.endswith("сантиметров.")


def test_headings_form_the_path_and_stay_out_of_the_text() -> None:
    text = "\n\n".join(f"{heading}\n\n{paragraph(5)}" for heading in ("# Статья", "## Слив", "### Фильтр", "## Отжим"))
    assert [chunk.heading for chunk in split(text)] == ["", "Слив", "Слив › Фильтр", "Отжим"]
    assert not any("Фильтр" in chunk.text for chunk in split(text))


def test_fragments_are_merged_and_keep_their_headings_as_text() -> None:
    chunks = split(f"## Слив\n\n{paragraph(5)}\n\n## Сушка\n\nНе сушите шерсть.\n\n## Отжим\n\n{paragraph(5)}")
    assert [chunk.heading for chunk in chunks] == ["", "Отжим"]
    assert chunks[0].text.startswith("### Слив\n\nШаг 0.")
    assert chunks[0].text.endswith("Сушка\n\nНе сушите шерсть.")
    assert [chunk.meta["section_chunks"] for chunk in chunks] == [[0, 0], [1, 1]]


def test_merged_subsections_keep_their_level() -> None:
    (chunk,) = split("## Слив\n\nДолгий.\n\n### Фильтр\n\nЧистите.\n\n## Отжим\n\nКороткий.")
    assert [line for line in chunk.text.split("\n") if line.startswith("#")] == ["### Слив", "#### Фильтр", "### Отжим"]


def test_an_introduction_goes_to_the_section_below_it() -> None:
    chunks = split(f"## Слив\n\n{paragraph(5)}\n\n## Отжим\n\nКоротко.\n\n### Скорость\n\n{paragraph(5)}")
    assert [chunk.heading for chunk in chunks] == ["Слив", "Отжим"]
    assert chunks[1].text.startswith("Коротко.\n\n### Скорость\n\nШаг 0.")


def test_small_sections_of_codes_are_never_merged() -> None:
    chunks = split("## E10 — вода не поступает\n\nОткройте кран.\n\n## E20 — не сливается\n\nПромойте фильтр.")
    assert [(chunk.heading, chunk.text) for chunk in chunks] == [
        ("E10 — вода не поступает", "Откройте кран."),
        ("E20 — не сливается", "Промойте фильтр."),
    ]


@given(st.integers(0, 200), st.integers(1, 9))
def test_a_code_entry_is_never_cut(before: int, sentences: int) -> None:
    entry = f"E20 — вода не сливается. {SENTENCE * sentences}".strip()
    text = f"{'слово ' * before}\n\n{entry}\n\n{paragraph(6)}\n\n- E25 — насос. {SENTENCE}\n  {SENTENCE}\n- E30 — вода."
    entries = [block.text for block in markdown_blocks(text) if "E2" in block.text or "E3" in block.text]
    texts = [chunk.text for chunk in split(text)]
    assert len(entries) == 3
    assert all(any(one in chunk for chunk in texts) for one in entries)


def test_a_code_entry_keeps_its_list_of_steps() -> None:
    steps = "\n".join(f"{at}. {SENTENCE}" for at in range(1, 9))
    texts = [chunk.text for chunk in split(f"{paragraph(6)}\n\n**E20 — вода не сливается.**\n\n{steps}")]
    assert any("E20" in text and "8. " in text for text in texts)


def test_a_code_entry_over_the_limit_repeats_its_code() -> None:
    texts = [chunk.text for chunk in split(f"E20 — вода не сливается. {SENTENCE * 40}")]
    assert len(texts) > 1
    assert all(text.startswith("E20 — вода не сливается.") for text in texts)


def table(rows: int) -> str:
    return "| Код | Значение |\n| --- | --- |\n" + "\n".join(f"| E{at} | смысл номер {at} |" for at in range(rows))


@given(st.integers(0, 60), st.integers(1, 30))
def test_a_table_within_the_limit_is_never_cut(words: int, rows: int) -> None:
    text = f"{'слово ' * words}\n\n{table(rows)}\n\n{paragraph(5)}"
    assert count_tokens(table(rows)) <= 500
    assert any(table(rows) in chunk.text for chunk in split(text))


def test_a_long_table_is_cut_between_rows_under_its_header() -> None:
    chunks = split(f"Коды:\n\n{table(200)}")
    rows = [row for chunk in chunks for row in re.findall(r"\| E\d+ \| смысл номер \d+ \|", chunk.text)]
    assert len(chunks) > 3
    assert rows == table(200).split("\n")[2:]
    assert all(chunk.text.count("| Код | Значение |\n| --- | --- |") == 1 for chunk in chunks)
    assert all(chunk.text.startswith("| Код |") for chunk in chunks[1:])


@given(st.integers(0, 80), st.integers(1, 50))
def test_a_code_fence_within_the_limit_is_never_cut(words: int, rows: int) -> None:
    fence = "```sh\n" + "\n".join(f"run --step {at}\n" for at in range(rows)).strip() + "\n```"
    assert count_tokens(fence) <= 500
    assert any(fence in chunk.text for chunk in split(f"{'слово ' * words}\n\n{fence}\n\n{paragraph(5)}"))


def test_long_code_is_cut_between_lines_and_fenced_again() -> None:
    code = [f"run --step {at} # первый" for at in range(200)]
    chunks = split("```sh\n" + "\n".join(code) + "\n```")
    assert len(chunks) > 3
    assert all(chunk.text.startswith("```sh\n") and chunk.text.endswith("\n```") for chunk in chunks)
    assert [line for chunk in chunks for line in chunk.text.split("\n")[1:-1]] == code


def test_an_introduction_stays_with_its_list() -> None:
    steps = "\n".join(f"- {SENTENCE}" for _ in range(3))
    chunks = split(f"{paragraph(6)}\n\nЧто делать:\n\n{steps}")
    announcing = [chunk.text for chunk in chunks if "Что делать" in chunk.text]
    assert announcing
    assert all("Что делать:\n\n- Проверьте" in text for text in announcing)


def test_a_long_step_is_cut_at_sentences_under_one_number() -> None:
    step = f"1. {paragraph(30)}\n\n   {paragraph(30, 30)}"
    first, *others = [chunk.text for chunk in split(step)]
    assert first.startswith("1. Шаг 0.")
    assert len(others) > 2
    assert not any(text.startswith("1.") for text in others)
    numbers = re.findall(r"Шаг (\d+)", "\n".join([first, *others]))
    assert list(dict.fromkeys(numbers)) == [str(at) for at in range(60)]


def test_title() -> None:
    for document, title in (
        (SourceDocument("d", " Своё ", "# H\n\nт", "f.md"), "Своё"),
        (SourceDocument("d", "", "т\n\n## **Первый**\n\nт", "f.md"), "Первый"),
        (SourceDocument("d", "", "текст", "dir/faq.ru.md"), "faq.ru"),
        (SourceDocument("d", "", "текст", "all.jsonl", line=3), "d"),
        (SourceDocument("d", "", "# не заголовок", "n.txt", markup="plain"), "n"),
    ):
        (revision,) = DocumentSplitter().run(revisions=[Revision(document, "")])["revisions"]
        assert revision.title == title


@pytest.mark.parametrize("sizes", [(300, 200, 50, 50), (200, 500, 150, 50), (10, 50, 0, 0), (200, 400, 50, 101)])
def test_impossible_sizes_are_refused(sizes: tuple[int, int, int, int]) -> None:
    with pytest.raises(InternalFault, match="splitter_sizes_invalid"):
        DocumentSplitter(*sizes)


def test_hostile_markup_is_cut_in_time() -> None:
    for hostile in (
        "[" * 20_000,
        "*a " * 20_000,
        ">" * 5_000 + "x",
        "- " * 2_000 + "x",
        "`" * 9_999,
        "|a" * 3_000 + "\n" + "|-" * 3_000,
        "<" * 20_000,
    ):
        assert all(count_tokens(chunk.text) <= 500 for chunk in split(hostile))
