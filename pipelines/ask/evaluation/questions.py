"""Evaluation questions as people write them: in a form, as JSON, or as rows of a spreadsheet."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Annotated, Literal, TypeAlias, get_args

from pydantic import Field, StrictStr, StringConstraints, ValidationError

from components.ingest.sandbox import Answer, Form, Sandbox
from components.language.normalise import clean
from components.passages import from_payload, to_passage
from pipelines import problems
from pipelines.ask.contract import QUESTION_LIMIT, AskRequest
from pipelines.ask.evaluation.marking import by_part, named_by
from pipelines.pools import Pool
from pipelines.spreadsheet import csv_lines, without_guard
from tenants.core import context, fairness
from tenants.core.errors import Invalid
from tenants.core.validation import FrozenModel
from tenants.desk import evaluation_questions
from tenants.desk.evaluation_questions import MOST, EvaluationQuestion, Expected, Stored, normalised
from tenants.index import open_collection
from tenants.knowledge import documents

FILE_BYTES = 5_000_000
Column: TypeAlias = Literal["question", "answer", "article", "refuse"]
COLUMNS: tuple[Column, ...] = get_args(Column)
_NAMES: Mapping[Column, frozenset[str]] = {
    "question": frozenset({"question", "вопрос"}),
    "answer": frozenset({"answer", "answer contains", "ответ", "ответ содержит"}),
    "article": frozenset({"article", "статья"}),
    "refuse": frozenset({"refuse", "отказ"}),
}
_YES = frozenset({"yes", "y", "true", "1", "x", "+", "да", "истина", "х"})
_NO = frozenset({"", "no", "n", "false", "0", "-", "нет", "ложь"})
MOST_FAULTS = 200
"""Rows of a file that are reported as wrong; the others are left out."""
_NAME_SHOWN = 100
_AT_ONCE = 2
"""Requests in progress at once, one of each tenant."""

_OF_TENANT, _FILES_OF_TENANT = 32, 2
"""Accepted requests of a tenant. They wait, because a client that is refused asks again, but files fill the memory."""

_PATIENCE_SECONDS = 30.0
_WORKERS = Sandbox(workers=_AT_ONCE)
_CHECKING = Pool("questions", _AT_ONCE, turns=1, patience=_PATIENCE_SECONDS)
"""Threads that read files and look for articles in the whole index."""

_Fact: TypeAlias = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=500)]


class QuestionForm(FrozenModel):
    """A question with what is expected: facts that the answer shows, an article that is shown, or a refusal."""

    question: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=QUESTION_LIMIT)]
    facts: Annotated[tuple[_Fact, ...], Field(max_length=20)] = ()
    article: Annotated[str, StringConstraints(strip_whitespace=True, max_length=500)] = ""
    refused: bool = False


class QuestionSet(FrozenModel):
    """Questions to add."""

    questions: Annotated[tuple[QuestionForm, ...], Field(min_length=1, max_length=MOST)]


@dataclass(frozen=True, slots=True)
class Fault:
    """A row that was not taken: its number in the file, its question, and the code of the reason.

    :param article: the expected article, if the knowledge base has none of this name.
    """

    row: int
    question: str
    code: str
    article: str = ""


@dataclass(frozen=True, slots=True)
class Upload:
    """The outcome of an upload: the stored questions, and the first rows that were not stored."""

    stored: Stored
    faults: tuple[Fault, ...]


class _Row(Form):
    number: int
    cells: tuple[StrictStr, ...]


def checked(form: QuestionForm) -> EvaluationQuestion:
    """Return the question of a form.

    :raises Invalid: `evaluation_expectation_missing` if nothing is expected, `evaluation_expectation_ambiguous` if a
        refusal and an answer are; `question_empty` and `question_too_long`: a run could not ask it.
    """
    question = problems.checked(AskRequest, question=" ".join(clean(form.question).split())).question
    facts, article = tuple(map(clean, form.facts)), clean(form.article)
    if form.refused and (facts or article):
        raise Invalid("evaluation_expectation_ambiguous")
    if not (form.refused or facts or article):
        raise Invalid("evaluation_expectation_missing")
    return EvaluationQuestion(question, Expected(facts, article, form.refused))


def add(forms: Iterable[QuestionForm]) -> Stored:
    """Add questions, all or none.

    :raises Invalid: as `checked` and `evaluation_questions.save`; `evaluation_article_unknown`.
    """
    good = [checked(form) for form in forms]
    for article in _unknown_articles(one.expected.article for one in good):
        raise Invalid("evaluation_article_unknown", article=article)
    return evaluation_questions.save(good)


async def add_in_turn(forms: Iterable[QuestionForm]) -> Stored:
    """Run `add` in a thread that no other request needs.

    :raises Busy: the tenant has too many requests at work, or other tenants have all threads.
    """
    return await _CHECKING.run({context.current().tenant_id: _OF_TENANT}, partial(add, forms))


async def receive(name: str, data: bytes) -> Upload:
    """Run `upload` in a thread that no other request needs. Raises `Busy` as `add_in_turn`."""
    bounds = {f"files of {context.current().tenant_id}": _FILES_OF_TENANT}
    return await _CHECKING.run(bounds, partial(upload, name, data))


def upload(name: str, data: bytes) -> Upload:
    """Add the questions of a CSV or XLSX file. Rows with a fault are returned, all others are stored.

    :raises CallerError: the file cannot be read; `evaluation_column_missing`: it has no column of questions;
        `evaluation_column_unknown`: it has others than `COLUMNS`; `evaluation_questions_too_many`: it names too many
        articles.
    """
    rows = _WORKERS.call("table", name, data, Answer[tuple[_Row, ...]])
    header = next((row for row in rows if any(map(_column, row.cells))), None)
    places = {column: at for at, cell in enumerate(header.cells) if (column := _column(cell))} if header else {}
    if header is None or "question" not in places:
        raise Invalid("evaluation_column_missing")
    if others := [cell.strip()[:_NAME_SHOWN] for cell in header.cells if cell.strip() and _column(cell) is None]:
        raise Invalid("evaluation_column_unknown", columns="; ".join(others))
    good: list[EvaluationQuestion] = []
    faults: list[Fault] = []
    known = {normalised(one.question) for one in evaluation_questions.list_questions()}
    filled = {
        row.number: {column: _cell(row.cells, at) for column, at in places.items()}
        for row in rows
        if row.number > header.number
    }
    named = {clean(cells.get("article", "")) for cells in filled.values()}
    if len(named) > MOST + MOST_FAULTS:
        raise Invalid("evaluation_questions_too_many", limit=MOST)
    unknown = _unknown_articles(named)
    for number, cells in filled.items():
        if not any(cells.values()):
            continue
        try:
            question = _question(cells)
            if question.expected.article in unknown:
                raise Invalid("evaluation_article_unknown", article=question.expected.article)
            key = normalised(question.question)
            if key not in known and len(known) >= MOST:
                raise Invalid("evaluation_questions_too_many", limit=MOST)
            known.add(key)
            good.append(question)
        except Invalid as refused:
            if len(faults) < MOST_FAULTS:
                article = str(refused.params.get("article", ""))
                faults.append(Fault(number, cells["question"][:200], refused.code, article))
    return Upload(evaluation_questions.save(good), tuple(faults))


def exported() -> Iterator[str]:
    """Yield the lines of a CSV file with the tenant's questions, which can be uploaded again."""
    return csv_lines(COLUMNS, (_cells(one) for one in evaluation_questions.list_questions()))


def as_json(one: EvaluationQuestion) -> dict[str, object]:
    return {"question_id": one.question_id, "question": one.question, **asdict(one.expected)}


def upload_as_json(uploaded: Upload) -> dict[str, object]:
    return {**asdict(uploaded.stored), "faults": [asdict(fault) for fault in uploaded.faults]}


def typed(question: str, facts: str, article: str, *, refused: bool) -> QuestionForm:
    """Return a question as a person typed it.

    :param facts: in lines, or separated by semicolons.
    :raises Invalid: `evaluation_question_missing`, `evaluation_cell_too_long`.
    """
    lines = (line.strip() for line in facts.replace(";", "\n").splitlines())
    try:
        return QuestionForm(question=question, facts=tuple(filter(None, lines)), article=article, refused=refused)
    except ValidationError as unfit:
        missing = not question.strip()
        raise Invalid("evaluation_question_missing" if missing else "evaluation_cell_too_long") from unfit


def _unknown_articles(names: Iterable[str]) -> set[str]:
    """Return those of the names that no article and no section of the knowledge base has."""
    unknown = {name for name in names if name}
    unknown -= documents.named(unknown)  # most are titles, and the index may hold a hundred thousand sections
    return _unknown_sections(unknown) if unknown else unknown


def _unknown_sections(names: set[str]) -> set[str]:
    folded = by_part(names)
    for hit in open_collection().scan():
        fairness.yield_to_questions()
        names = names - named_by(to_passage(from_payload(hit.payload, 0.0, {})), folded)
        if not names:
            break
    return names


def _column(cell: str) -> Column | None:
    name = " ".join(cell.casefold().split())
    return next((column for column, names in _NAMES.items() if name in names), None)


def _cell(cells: Sequence[str], at: int) -> str:
    return without_guard(cells[at].strip()) if at < len(cells) else ""


def _question(cells: Mapping[Column, str]) -> EvaluationQuestion:
    refuse = cells.get("refuse", "").casefold()
    if refuse not in _YES | _NO:
        raise Invalid("evaluation_refuse_unreadable")
    return checked(typed(cells["question"], cells.get("answer", ""), cells.get("article", ""), refused=refuse in _YES))


def _cells(one: EvaluationQuestion) -> tuple[str, ...]:
    expected = one.expected
    return one.question, "; ".join(expected.facts), expected.article, "yes" if expected.refused else ""
