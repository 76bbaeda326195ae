"""Evaluation questions as rows of a spreadsheet: what is stored, and which rows are named as wrong."""

import asyncio
import io
from collections.abc import Iterator, Sequence
from secrets import token_hex
from threading import Event

import pytest
from openpyxl import Workbook
from sqlalchemy import text

from components.ingest.document import SourceDocument
from pipelines.ask.evaluation import marking, questions
from pipelines.ask.evaluation.questions import Fault, QuestionForm
from pipelines.ingest.usecase import Ingest
from tenants.accounts.registry import Registry
from tenants.core.context import Tenant, acting_as
from tenants.core.errors import CallerError, Invalid
from tenants.desk import evaluation_questions
from tenants.desk.evaluation_questions import MOST, Expected
from tenants.storage import database


@pytest.fixture
def tenant(shared_installation: None) -> Iterator[Tenant]:
    name = f"t{token_hex(4)}"
    Registry().add(name)
    with acting_as(Tenant(name, "anna")) as acting:
        yield acting


def workbook(rows: Sequence[Sequence[object]]) -> bytes:
    book, out = Workbook(write_only=True), io.BytesIO()
    sheet = book.create_sheet()
    for row in rows:
        sheet.append(list(row))
    book.save(out)
    return out.getvalue()


ROWS: tuple[tuple[object, ...], ...] = (
    ("Вопросы магазина",),
    ("Вопрос", "Ответ содержит", "Статья", "Отказ"),
    ("Сколько стоит доставка?", "490 ₽|490 рублей; до подъезда", "", ""),
    ("Какой срок гарантии?", 24, "", "нет"),
    (None, None, None, None),
    ("", "14 дней", "", ""),
    ("Как вернуть товар?", "", "Возврат", ""),
    ("Кто президент?", "", "", "да"),
    ("Ничего не ждём", "", "", ""),
    ("И то и другое", "14 дней", "", "да"),
    ("Непонятный отказ", "", "", "наверное"),
    ("Очень длинно", "д" * 501, "", ""),
    ("Где статья?", "", "Обмен", ""),
)


def test_wrong_rows_are_named_and_the_others_are_stored(tenant: Tenant) -> None:
    Ingest().run([SourceDocument("returns.md", "Возврат", "Вернуть товар можно за 14 дней.", "returns.md")])
    upload = questions.upload("вопросы.xlsx", workbook(ROWS))
    assert upload.stored.added == 4
    assert upload.faults == (
        Fault(6, "", "evaluation_question_missing"),
        Fault(9, "Ничего не ждём", "evaluation_expectation_missing"),
        Fault(10, "И то и другое", "evaluation_expectation_ambiguous"),
        Fault(11, "Непонятный отказ", "evaluation_refuse_unreadable"),
        Fault(12, "Очень длинно", "evaluation_cell_too_long"),
        Fault(13, "Где статья?", "evaluation_article_unknown", "Обмен"),
    )
    assert [(one.question, one.expected) for one in evaluation_questions.list_questions()] == [
        ("Сколько стоит доставка?", Expected(("490 ₽|490 рублей", "до подъезда"))),
        ("Какой срок гарантии?", Expected(("24",))),
        ("Как вернуть товар?", Expected(article="Возврат")),
        ("Кто президент?", Expected(refused=True)),
    ]


def test_the_title_of_a_document_is_found_without_the_index(tenant: Tenant, monkeypatch: pytest.MonkeyPatch) -> None:
    Ingest().run([SourceDocument("returns.md", "Возврат", "Вернуть товар можно за 14 дней.", "returns.md")])
    monkeypatch.delattr(questions, "open_collection")
    asked = [("Как вернуть товар?", "Возврат"), ("Куда вернуть?", "returns.md")]
    assert questions.add([QuestionForm(question=one, article=article) for one, article in asked]).added == 2


async def test_a_tenant_reads_its_index_once_at_a_time(tenant: Tenant, monkeypatch: pytest.MonkeyPatch) -> None:
    reading: list[int] = []

    class Index:
        def scan(self) -> Iterator[object]:
            reading.append(1)
            Event().wait(0.02)
            assert sum(reading) == 1
            reading.append(-1)
            yield from ()

    monkeypatch.setattr(questions, "open_collection", Index)
    form = QuestionForm(question="Как вернуть товар?", article="Обмен")
    adding = (questions.add_in_turn([form]) for _ in range(4))
    for refused in await asyncio.gather(*adding, return_exceptions=True):
        assert isinstance(refused, Invalid)
        assert refused.code == "evaluation_article_unknown"
    assert len(reading) == 8


def test_an_export_comes_back_unchanged(tenant: Tenant) -> None:
    questions.upload("q.csv", "question;answer;refuse\n=1+1?;2;\n-5 градусов?;;yes\n".encode())
    before = evaluation_questions.list_questions()
    upload = questions.upload("q.csv", "".join(questions.exported()).encode())
    assert (upload.stored.unchanged, upload.faults) == (2, ())
    assert evaluation_questions.list_questions() == before


def test_rows_beyond_the_limit_are_named(tenant: Tenant) -> None:
    lines = "".join(f"Вопрос {number}?,yes\n" for number in range(MOST + 2))
    upload = questions.upload("q.csv", f"question,refuse\n{lines}".encode())
    assert upload.stored.added == MOST
    assert [(one.row, one.code) for one in upload.faults] == [
        (MOST + 2, "evaluation_questions_too_many"),
        (MOST + 3, "evaluation_questions_too_many"),
    ]
    with pytest.raises(Invalid, match="evaluation_questions_too_many"):
        questions.add([QuestionForm(question="Ещё один?", refused=True)])
    assert len(evaluation_questions.list_questions()) == MOST


def test_headings_of_sections_that_share_a_chunk_are_known(tenant: Tenant) -> None:
    mill = "## Ошибка P07\n\nЖернова заклинило.\n\n## Гарантия\n\nГарантия 24 месяца.\n"
    Ingest().run([SourceDocument("mill.md", "Кофемолка", mill, "mill.md")])
    upload = questions.upload("вопросы.csv", "вопрос;статья\nЧто значит P07?;ошибка P07\nСрок?;Срок\n".encode())
    assert (upload.stored.added, [fault.article for fault in upload.faults]) == (1, ["Срок"])
    form = QuestionForm(question="Какая гарантия?", article="Кофемолка › Гарантия")
    assert questions.add([form]).added == 1


def test_a_file_with_too_many_unknown_articles_is_refused(tenant: Tenant) -> None:
    """A file of 40 kB with 2,000 names was compared with 2,500 chunks for longer than 100 s."""
    lines = "".join(f"Вопрос {number}?,Статья {number}\n" for number in range(2_000))
    with pytest.raises(Invalid, match="evaluation_questions_too_many"):
        questions.upload("q.csv", f"question,article\n{lines}".encode())


def test_names_are_folded_once_for_all_chunks(tenant: Tenant, monkeypatch: pytest.MonkeyPatch) -> None:
    Ingest().run([SourceDocument(f"a{at}.md", f"Тема {at}", "Текст.", "") for at in range(20)])
    folded, fold = list[str](), marking._name
    monkeypatch.setattr(marking, "_name", lambda words: folded.append(words) or fold(words))  # type: ignore[func-returns-value]
    names = [f"Обмен {number} › Срок" for number in range(50)]
    with pytest.raises(Invalid, match="evaluation_article_unknown"):
        questions.add(QuestionForm(question=f"Вопрос о {name}?", article=name) for name in names)
    assert len(folded) < 20 * 10 + 50 * 4


@pytest.mark.parametrize(
    ("name", "data", "code"),
    [
        ("q.csv", b"a;b\n1;2\n", "evaluation_column_missing"),
        ("q.pdf", b"%PDF-1.7", "file_unsupported"),
        ("q.xlsx", b"PK\x03\x04 broken", "file_damaged"),
    ],
)
def test_an_unreadable_file_is_refused_and_stores_nothing(tenant: Tenant, name: str, data: bytes, code: str) -> None:
    with pytest.raises(CallerError) as refused:
        questions.upload(name, data)
    assert refused.value.code == code
    assert evaluation_questions.list_questions() == ()


def test_unknown_columns_are_named_and_nothing_is_stored(tenant: Tenant) -> None:
    with pytest.raises(Invalid, match="evaluation_column_unknown") as refused:
        questions.upload("q.csv", "question,refusal,№\nКто президент?,yes,1\n".encode())
    assert refused.value.params == {"columns": "refusal; №"}
    assert evaluation_questions.list_questions() == ()


def test_expectations_are_encrypted(tenant: Tenant) -> None:
    questions.add([QuestionForm(question="Сколько стоит доставка?", facts=("490 рублей",))])
    with database.reading() as session:
        stored = str(session.execute(text("SELECT question, expected FROM evaluation_questions")).all())
    assert "доставка" not in stored
    assert "рублей" not in stored
