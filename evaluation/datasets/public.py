"""Public questions over public knowledge bases, read as cases. No part of them is copied into the project."""

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from components.ingest.document import SourceDocument
from evaluation.cases import Case, Corpus, QuestionSet
from evaluation.datasets.casefile import LONGEST_QUESTION
from evaluation.datasets.rows import Row, objects, present, rows, sequence, string
from pipelines.ingest.usecase import read_path

_TECHNOTE = re.compile(r"Title:\s*(?P<title>.*?)\s*\n+Text:\s*(?P<text>.*)", re.DOTALL)


def vkcloud(data: Path, language: str) -> list[QuestionSet]:
    """Read a real support knowledge base with the questions of its FAQ; half of them name their article."""
    path = present(data / "vkcloud" / "corpus" / f"corpus_{language}.jsonl")
    questions = rows(data / "vkcloud" / "dev" / f"faq_{language}.jsonl")
    name = f"vkcloud-{language}"
    cases = [
        _case(
            row,
            language,
            # A missing link to an article does not prove that none answers.
            answerable=True if row["gold_status"] == "linked" and row["gold_all_in_corpus"] else None,
            gold_docs=tuple(dict.fromkeys(string(gold, "doc_id") for gold in objects(row, "gold"))),
            category=string(row, "gold_status"),
        )
        for row in questions
    ]
    cases = [case if case.answerable else replace(case, gold_docs=()) for case in cases]
    return [QuestionSet(name, Corpus(name, language, partial(read_path, path)), tuple(cases))]


def xquad(data: Path, language: str) -> list[QuestionSet]:
    """Read paragraphs, questions and answer spans; the second set omits articles, so their questions have no answer."""
    folder = data / "xquad"
    paragraphs = rows(folder / "corpus" / f"paragraphs_{language}.jsonl")
    questions = rows(folder / "dev" / f"questions_{language}.jsonl")
    withheld_path = present(folder / "dev" / "abstain_withhold_doc_ids.json")
    withheld = frozenset(json.loads(withheld_path.read_text(encoding="utf-8")))
    cases = tuple(
        _case(
            row,
            language,
            answerable=True,
            gold_docs=tuple(map(str, sequence(row, "gold_doc_ids"))),
            gold_spans=tuple(dict.fromkeys(string(answer, "text") for answer in objects(row, "answers"))),
            category="withheld" if row["withheld_in_abstain_run"] else "kept",
        )
        for row in questions
    )

    def documents(without: frozenset[str]) -> Iterator[SourceDocument]:
        for row in paragraphs:
            if row["doc_id"] not in without:
                yield _document(row, title="", text=string(row, "text"), lang=language)

    withheld_cases = tuple(
        case if case.category == "kept" else replace(case, answerable=False, gold_docs=(), gold_spans=())
        for case in cases
    )
    name = f"xquad-{language}"
    return [
        QuestionSet(name, Corpus(name, language, partial(documents, frozenset())), cases),
        QuestionSet(
            f"{name}-withheld", Corpus(f"{name}-withheld", language, partial(documents, withheld)), withheld_cases
        ),
    ]


def techqa(data: Path) -> list[QuestionSet]:
    """Read long real forum questions over technotes; some have no answer there."""
    corpus = rows(data / "techqa" / "corpus" / "corpus.jsonl")
    questions = rows(data / "techqa" / "dev" / "questions.jsonl")

    def documents() -> Iterator[SourceDocument]:
        for row in corpus:
            note = _TECHNOTE.match(string(row, "text"))
            title, text = (note["title"], note["text"]) if note else ("", string(row, "text"))
            yield _document(row, title=title, text=text, lang="en")

    cases = tuple(
        _case(
            row,
            "en",
            answerable=bool(row["answerable"]),
            gold_docs=tuple(map(str, sequence(row, "gold_doc_ids"))) if row["answerable"] else (),
        )
        for row in questions
    )
    return [QuestionSet("techqa", Corpus("techqa", "en", documents), cases)]


def wixqa(data: Path) -> list[QuestionSet]:
    """Read expert questions over help-centre articles, several of which may be needed.

    Every article of the set answers some question, so another product's help is indexed with them where it is present.
    """
    corpus = rows(data / "wixqa" / "corpus" / "corpus.jsonl")
    questions = rows(data / "wixqa" / "dev" / "questions.jsonl")
    other_corpus = data / "vkcloud" / "corpus" / "corpus_en.jsonl"

    def documents() -> Iterator[SourceDocument]:
        for row in corpus:
            yield _document(row, title=string(row, "title"), text=string(row, "text"), lang="en")
        if other_corpus.is_file():
            yield from read_path(other_corpus)

    cases = tuple(
        _case(row, "en", answerable=True, gold_docs=tuple(map(str, sequence(row, "gold_doc_ids")))) for row in questions
    )
    return [QuestionSet("wixqa", Corpus("wixqa", "en", documents), cases)]


def _case(row: Row, locale: str, **known: Any) -> Case:  # noqa: ANN401 - fields of `Case`
    return Case(string(row, "id"), string(row, "question").strip()[:LONGEST_QUESTION], locale, **known)


def _document(row: Row, *, title: str, text: str, lang: str) -> SourceDocument:
    doc_id = string(row, "doc_id")
    url = row.get("url")
    return SourceDocument(doc_id, title, text, doc_id, str(url) if url else None, lang, markup="plain")
