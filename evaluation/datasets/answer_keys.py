"""Questions of help centres with an answer key: the passages that answer them, graded, and the facts of the answer.

A key is JSON Lines: `id`, `question`, `type`, `answerable` (yes, partly, no), `facts`, and `passages` with `doc_id`,
`title`, `heading`, `text`, `grade`. Where `answerable` is left out it follows from the best grade.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from components.ingest.document import SourceDocument
from evaluation.cases import Answerable, AnswerKey, Case, Corpus, LabelledPassage, QuestionSet
from evaluation.datasets.casefile import LONGEST_QUESTION
from evaluation.datasets.rows import Row, objects, present, rows, sequence, string
from pipelines.ingest.usecase import read_path
from tenants.core.errors import Invalid

_BY_GRADE: Sequence[Answerable] = ("no", "partly", "yes")
_GRADES = range(3)


def vkcloud_answers(data: Path) -> list[QuestionSet]:
    """Read the cloud provider's own FAQ over its whole help centre, which was never used for fitting."""
    corpus = present(data / "vkcloud" / "corpus" / "corpus_ru.jsonl")
    key = data / "vkcloud" / "dev" / "answers_ru.jsonl"
    return [QuestionSet("vkcloud-answers", Corpus("vkcloud-ru", "ru", partial(read_path, corpus)), read_key(key))]


def graded_answers(data: Path, vendor: str) -> list[QuestionSet]:
    """Read a vendor's FAQ over the passages that were graded for it."""
    return [over_own_passages(f"{vendor}-answers", read_key(data / vendor / "graded.jsonl"))]


def over_own_passages(name: str, cases: tuple[Case, ...]) -> QuestionSet:
    """Build a set from the questions of a key; its passages form the knowledge base."""
    return QuestionSet(name, Corpus(name, _locale(cases), partial(_documents, cases)), cases)


def over_corpus(name: str, cases: tuple[Case, ...], corpus: Path) -> QuestionSet:
    return QuestionSet(name, Corpus(f"{name}-{corpus.stem}", _locale(cases), partial(read_path, corpus)), cases)


def read_key(path: Path) -> tuple[Case, ...]:
    """Read the questions of a key.

    :raises Absent: the file does not exist.
    :raises Invalid: `key_unreadable`, with the line.
    """
    cases = []
    for line, row in enumerate(_rows(path), 1):
        with Invalid("key_unreadable", path=str(path), line=line).instead_of(KeyError, ValueError, TypeError):
            cases.append(_case(row))
    return tuple(cases)


def _rows(path: Path) -> list[Row]:
    with Invalid("key_unreadable", path=str(path), line=0).instead_of(ValueError):
        return rows(path)


def _case(row: Row) -> Case:
    passages = tuple(map(_passage, objects(row, "passages")))
    best = max((passage.grade for passage in passages), default=0)
    answerable = _answerable(string(row, "answerable")) or _BY_GRADE[best]
    question = string(row, "question").strip()[:LONGEST_QUESTION]
    if not question:
        raise ValueError("question")
    return Case(
        case_id=str(row["id"]),
        question=question,
        locale=_language(question),
        answerable={"yes": True, "no": False}.get(answerable),
        gold_docs=tuple(dict.fromkeys(passage.doc_id for passage in passages if passage.grade)),
        gold_answer=string(row, "answer"),
        category=string(row, "type"),
        key=AnswerKey(string(row, "type"), answerable, tuple(map(str, sequence(row, "facts"))), passages),
    )


def _answerable(value: str) -> Answerable | None:
    if value and value not in _BY_GRADE:
        raise ValueError(value)
    return next((grade for grade in _BY_GRADE if grade == value), None)


def _passage(row: Row) -> LabelledPassage:
    grade = int(str(row["grade"]))
    if grade not in _GRADES:
        raise ValueError(grade)
    return LabelledPassage(str(row["doc_id"]), string(row, "title"), string(row, "heading"), str(row["text"]), grade)


def _language(question: str) -> str:
    return "ru" if any("а" <= letter <= "я" for letter in question.lower()) else "en"


def _locale(cases: Sequence[Case]) -> str:
    russian = sum(case.locale == "ru" for case in cases)
    return "ru" if 2 * russian >= len(cases) else "en"


def _documents(cases: Sequence[Case]) -> Iterator[SourceDocument]:
    """Build articles from the passages of all questions, each once, under their headings."""
    articles: defaultdict[str, dict[tuple[str, str], LabelledPassage]] = defaultdict(dict)
    for case in cases:
        for passage in case.key.passages if case.key else ():
            articles[passage.doc_id].setdefault((passage.heading, passage.text), passage)
    for doc_id, passages in articles.items():
        title = next((passage.title for passage in passages.values() if passage.title), "")
        yield SourceDocument(doc_id, title, "\n\n".join(_sections(list(passages.values()))))


def _sections(passages: Sequence[LabelledPassage]) -> Iterator[str]:
    by_heading: defaultdict[str, list[str]] = defaultdict(list)
    for passage in passages:
        by_heading[passage.heading].append(passage.text)
    # Text without a heading goes first, or it would belong to the section before it.
    for heading in sorted(by_heading, key=bool):
        yield from ([f"## {heading}"] if heading else [])
        yield from map(_fenced, by_heading[heading])


def _fenced(text: str) -> str:
    """Close a code block that the passage's end cut off, which would swallow the next passage."""
    fences = [line for line in text.split("\n") if line.lstrip().startswith("```")]
    return f"{text}\n```" if len(fences) % 2 else text
