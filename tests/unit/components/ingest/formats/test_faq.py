"""FAQ files: every pair is found, and becomes a separate chunk under its question."""

import json

import pytest

from components.ingest import formats
from components.ingest.document import Chunk, Revision, SourceDocument
from components.ingest.formats.parsed import Parsed
from components.ingest.split import DocumentSplitter
from tenants.core.errors import Invalid
from tests.unit.components.ingest.formats.made import saved, workbook

PAIRS = [
    ("Как вернуть товар?", "В течение 14 дней."),
    ("Где мой заказ?", "Смотрите «Заказы».\n\n- Москва: день\n- Сочи: два"),
]
MARKED = [
    "Q: {}\nA: {}",
    "**Вопрос:** {}\n\n**Ответ:** {}",
    "### Вопрос 1: {}\n\nОтвет: {}",
    "В: {}\nО: {}",
    "- Q. {}\n- A. {}",
]


def read(name: str, text: str) -> Parsed:
    return formats.read(name, text.encode())


def chunks(parsed: Parsed) -> tuple[Chunk, ...]:
    document = SourceDocument("faq", parsed.title, parsed.text, "faq.csv", markup=parsed.markup)
    (revision,) = DocumentSplitter().run([Revision(document, "hash")])["revisions"]
    return revision.chunks


def check(parsed: Parsed) -> None:
    assert parsed.markup == "faq"
    assert [(chunk.heading, chunk.text) for chunk in chunks(parsed)] == PAIRS


def quoted(cell: str) -> str:
    return '"' + cell.replace('"', '""') + '"'


@pytest.mark.parametrize("header", [("question", "answer"), ("Вопрос", "Ответ"), ("ВОПРОСЫ", " Ответы ")])
@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_csv(header: tuple[str, str], delimiter: str) -> None:
    rows = [header, *PAIRS]
    check(read("faq.csv", "\n".join(delimiter.join(map(quoted, row)) for row in rows)))


def test_xlsx() -> None:
    check(formats.read("faq.xlsx", saved(workbook([("Вопрос", "Ответ"), *PAIRS]))))


@pytest.mark.parametrize("names", [("question", "answer"), ("вопрос", "ответ")])
def test_json(names: tuple[str, str]) -> None:
    pairs = [dict(zip(names, pair, strict=True)) for pair in PAIRS]
    check(read("faq.json", json.dumps(pairs)))
    check(read("faq.json", json.dumps({"title": "Вопросы", "items": pairs}, ensure_ascii=False)))
    assert read("faq.json", json.dumps({"title": "Вопросы", "items": pairs})).title == "Вопросы"


@pytest.mark.parametrize("marked", MARKED)
@pytest.mark.parametrize("name", ["faq.md", "faq.txt"])
def test_marked_text(marked: str, name: str) -> None:
    check(read(name, "\n\n".join(marked.format(*pair) for pair in PAIRS)))


def test_headings_are_questions_when_front_matter_says_so() -> None:
    sections = "\n\n".join(f"## {question}\n\n{answer}" for question, answer in PAIRS)
    check(read("faq.md", f"---\nfaq: true\ntags: [a]\n---\n{sections}"))
    assert read("faq.md", f"---\nfaq: true\ntags: [a]\n---\n{sections}").meta == {"tags": ["a"]}
    assert read("faq.md", sections).markup == "markdown"


def test_a_category_stands_above_the_question() -> None:
    rows = [("Раздел", "Вопрос", "Ответ"), ("Доставка", *PAIRS[1]), ("Возврат", *PAIRS[0])]
    parsed = formats.read("faq.xlsx", saved(workbook(rows)))
    assert [chunk.heading for chunk in chunks(parsed)] == [f"{row[0]} › {row[1]}" for row in rows[1:]]


def test_further_columns_follow_the_answer() -> None:
    parsed = read("faq.csv", "question,answer,link\nHow?,So.,see /a\nWhy?,Because.,\n")
    assert [chunk.text for chunk in chunks(parsed)] == ["So.\n\nlink: see /a", "Because."]


def test_a_question_without_an_answer_is_dropped_and_flagged() -> None:
    parsed = read("faq.csv", "вопрос;ответ\nКак?;Так.\nПочему?;\n")
    assert (parsed.flags, [chunk.heading for chunk in chunks(parsed)]) == (("faq_incomplete",), ["Как?"])


def test_an_answer_cannot_open_a_section() -> None:
    parsed = read("faq.csv", 'question,answer\nHow?,"# Big\nThen small"\nWhy?,x\n')
    assert [(chunk.heading, chunk.text) for chunk in chunks(parsed)] == [("How?", "# Big\n\nThen small"), ("Why?", "x")]


@pytest.mark.parametrize("text", ["Q: one\nA: only", "Intro.\n\nQ: a\nA: b\n\nQ: c\nA: d", "Вопросы: 5\nОтветы: 6"])
def test_a_text_that_only_resembles_an_faq_stays_an_article(text: str) -> None:
    assert read("a.md", text).markup == "markdown"


@pytest.mark.parametrize("text", ["[]", "{}", "[1]", '[{"a": 1}]', '{"a": [], "b": []}', '[{"question": "a"}]', "5"])
def test_json_that_holds_no_pairs(text: str) -> None:
    with pytest.raises(Invalid, match="json_no_faq"):
        read("a.json", text)
