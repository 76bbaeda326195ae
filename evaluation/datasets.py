"""The public sets under `../shared/data`, read as cases. Nothing of them is ever copied into the project."""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from components.ingest.document import SourceDocument
from evaluation.cases import Case, Corpus, Pair, PairSet, QuestionSet
from pipelines.ingest.usecase import read_path
from settings import ROOT

DATA = ROOT.parent / "shared" / "data"
"""Where the public sets lie unless `--data` says otherwise."""

Row = Mapping[str, object]
_TECHNOTE = re.compile(r"Title:\s*(?P<title>.*?)\s*\n+Text:\s*(?P<text>.*)", re.DOTALL)


class Absent(Exception):
    """A set's file is not on this machine; `path` is what was looked for."""

    def __init__(self, path: Path) -> None:
        super().__init__(str(path))
        self.path = path


def vkcloud(data: Path, language: str) -> list[QuestionSet]:
    """A real support knowledge base with the questions of its own FAQ; half of them name their article."""
    path = _present(data / "vkcloud" / "corpus" / f"corpus_{language}.jsonl")
    questions = _rows(data / "vkcloud" / "dev" / f"faq_{language}.jsonl")
    name = f"vkcloud-{language}"
    cases = [
        Case(
            case_id=_str(row, "id"),
            question=_str(row, "question"),
            locale=language,
            # No article named is not proof that none answers.
            answerable=True if row["gold_status"] == "linked" and row["gold_all_in_corpus"] else None,
            gold_docs=tuple(dict.fromkeys(_str(gold, "doc_id") for gold in _list(row, "gold"))),
            category=_str(row, "gold_status"),
        )
        for row in questions
    ]
    cases = [case if case.answerable else replace(case, gold_docs=()) for case in cases]
    return [QuestionSet(name, Corpus(name, language, partial(read_path, path)), tuple(cases))]


def xquad(data: Path, language: str) -> list[QuestionSet]:
    """Paragraphs, questions and answer spans; the second set leaves articles out, so that their questions have none."""
    folder = data / "xquad"
    paragraphs = _rows(folder / "corpus" / f"paragraphs_{language}.jsonl")
    questions = _rows(folder / "dev" / f"questions_{language}.jsonl")
    withheld_path = _present(folder / "dev" / "abstain_withhold_doc_ids.json")
    withheld = frozenset(json.loads(withheld_path.read_text(encoding="utf-8")))
    cases = tuple(
        Case(
            case_id=_str(row, "id"),
            question=_str(row, "question"),
            locale=language,
            answerable=True,
            gold_docs=tuple(map(str, _sequence(row, "gold_doc_ids"))),
            gold_spans=tuple(dict.fromkeys(_str(answer, "text") for answer in _list(row, "answers"))),
            category="withheld" if row["withheld_in_abstain_run"] else "kept",
        )
        for row in questions
    )

    def documents(without: frozenset[str]) -> Iterator[SourceDocument]:
        for row in paragraphs:
            if row["doc_id"] not in without:
                yield _document(row, title="", text=_str(row, "text"), lang=language)

    kept = tuple(
        case if case.category == "kept" else replace(case, answerable=False, gold_docs=(), gold_spans=())
        for case in cases
    )
    name = f"xquad-{language}"
    return [
        QuestionSet(name, Corpus(name, language, partial(documents, frozenset())), cases),
        QuestionSet(f"{name}-withheld", Corpus(f"{name}-withheld", language, partial(documents, withheld)), kept),
    ]


def techqa(data: Path) -> list[QuestionSet]:
    """Long real forum questions over technotes; some have no answer there."""
    corpus = _rows(data / "techqa" / "corpus" / "corpus.jsonl")
    questions = _rows(data / "techqa" / "dev" / "questions.jsonl")

    def documents() -> Iterator[SourceDocument]:
        for row in corpus:
            note = _TECHNOTE.match(_str(row, "text"))
            title, text = (note["title"], note["text"]) if note else ("", _str(row, "text"))
            yield _document(row, title=title, text=text, lang="en")

    cases = tuple(
        Case(
            case_id=_str(row, "id"),
            question=_str(row, "question").strip()[:2000],
            locale="en",
            answerable=bool(row["answerable"]),
            gold_docs=tuple(map(str, _sequence(row, "gold_doc_ids"))) if row["answerable"] else (),
        )
        for row in questions
    )
    return [QuestionSet("techqa", Corpus("techqa", "en", documents), cases)]


def wixqa(data: Path) -> list[QuestionSet]:
    """Expert questions over help-centre articles, several of which may be needed.

    Every article of the set answers some question, so another product's help is indexed with them where it is present.
    """
    corpus = _rows(data / "wixqa" / "corpus" / "corpus.jsonl")
    questions = _rows(data / "wixqa" / "dev" / "questions.jsonl")
    others = data / "vkcloud" / "corpus" / "corpus_en.jsonl"

    def documents() -> Iterator[SourceDocument]:
        for row in corpus:
            yield _document(row, title=_str(row, "title"), text=_str(row, "text"), lang="en")
        if others.is_file():
            yield from read_path(others)

    cases = tuple(
        Case(
            case_id=_str(row, "id"),
            question=_str(row, "question").strip()[:2000],
            locale="en",
            answerable=True,
            gold_docs=tuple(map(str, _sequence(row, "gold_doc_ids"))),
        )
        for row in questions
    )
    return [QuestionSet("wixqa", Corpus("wixqa", "en", documents), cases)]


def pairs(data: Path, name: str, language: str) -> list[PairSet]:
    """Claims with a passage each and whether it supports them; partial support is none."""
    rows = _rows(data / name / "dev" / "pairs.jsonl")
    found = tuple(Pair(_str(r, "id"), _str(r, "passage"), _str(r, "claim"), r["supported"] is True) for r in rows)
    return [PairSet(name, language, found)]


READERS: Mapping[str, Mapping[str, Callable[[Path], Sequence[QuestionSet | PairSet]]]] = {
    "vkcloud": {f"vkcloud-{language}": partial(vkcloud, language=language) for language in ("ru", "en")},
    "xquad": {f"xquad-{language}": partial(xquad, language=language) for language in ("ru", "en")},
    "techqa": {"techqa": techqa},
    "wixqa": {"wixqa": wixqa},
    "terra": {"terra": partial(pairs, name="terra", language="ru")},
    "wice": {"wice": partial(pairs, name="wice", language="en")},
}
"""What each public data set is read with, by the name of each part that can be absent on its own."""


def _document(row: Row, *, title: str, text: str, lang: str) -> SourceDocument:
    doc_id = _str(row, "doc_id")
    url = row.get("url")
    return SourceDocument(doc_id, title, text, doc_id, str(url) if url else None, lang, markup="plain")


def _present(path: Path) -> Path:
    if not path.is_file():
        raise Absent(path)
    return path


def _rows(path: Path) -> list[Row]:
    with _present(path).open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines if line.strip()]


def _str(row: Row, key: str) -> str:
    return str(row.get(key) or "")


def _sequence(row: Row, key: str) -> list[object]:
    value = row.get(key)
    return value if isinstance(value, list) else []


def _list(row: Row, key: str) -> list[Row]:
    return [item for item in _sequence(row, key) if isinstance(item, dict)]
