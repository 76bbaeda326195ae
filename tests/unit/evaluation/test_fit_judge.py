"""Training: the fit of the judge on made-up vendors, and the word lists of spelling."""

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from components.judge.relevance import Kind
from components.language import letters
from components.language.letters import ALPHABETS
from evaluation.cases import AnswerKey, Case, LabelledPassage
from evaluation.training.fit_judge import COLUMNS, KINDS, Vendor, fit, read_vendor
from evaluation.training.spelling import count, forms, write_letters
from tenants.index import SPARSE

TOPICS = ("возврат товара", "доставка заказа", "гарантия машины", "оплата картой", "чистка фильтра", "смена пароля")


class WordEmbedder:
    """Vectors with a dimension for each topic."""

    dimensions = len(TOPICS)

    def passages(self, texts: Sequence[str]) -> list[list[float]]:
        return [self.question(text) for text in texts]

    def question(self, text: str) -> list[float]:
        return [float(topic in text) for topic in TOPICS]


@pytest.fixture(scope="module")
def vendor() -> Vendor:
    cases = []
    for place, topic in enumerate(TOPICS):
        passages = tuple(
            LabelledPassage(f"d{n}", other, "", f"Статья про то, что есть {other}.", int(n == place) * 2)
            for n, other in enumerate(TOPICS)
        )
        cases.append(Case(str(place), f"Как устроена {topic}?", key=AnswerKey("howto", "yes", (), passages)))
    return read_vendor(cases, WordEmbedder())  # type: ignore[arg-type]


def test_the_search_by_words_covers_all_passages_of_a_vendor() -> None:
    topics = [LabelledPassage(topic, topic, "", f"Статья про то, что есть {topic}.", 0) for topic in TOPICS]

    def graded(question: str, passages: Sequence[LabelledPassage]) -> Case:
        return Case(question, question, key=AnswerKey("howto", "yes", (), tuple(passages)))

    read = read_vendor([graded("возврат товара", topics[1:]), graded("возврат", topics[:1])], WordEmbedder())  # type: ignore[arg-type]
    others, best = (columns[:, COLUMNS.index(SPARSE)].max() for columns in read.columns)
    assert others < best == 1.0


@pytest.mark.parametrize("kind", KINDS)
def test_passages_that_answer_are_told_by_the_columns_of_the_kind(kind: Kind, vendor: Vendor) -> None:
    weights, bias = fit([vendor, vendor], kind)
    assert {name for name, weight in zip(COLUMNS, weights, strict=True) if weight} == set(KINDS[kind])
    for columns, answers in zip(vendor.columns, vendor.answers, strict=True):
        odds = columns @ weights + bias
        assert (odds > 0).tolist() == answers.tolist()


def test_each_vendor_counts_the_same(vendor: Vendor) -> None:
    wrong = Vendor(vendor.columns, [~answers for answers in vendor.answers], vendor.function_words)
    twice = Vendor(wrong.columns * 5, wrong.answers * 5, wrong.function_words)
    weights, bias = fit([vendor, twice], "vectors")
    assert np.abs(weights).max() == pytest.approx(0.0, abs=1e-4)
    assert bias == pytest.approx(0.0, abs=1e-4)


def test_a_table_is_counted_from_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "ru.txt").write_text("кот кот Ёж", encoding="utf-8")
    (tmp_path / "en.txt").write_text("cat the cat", encoding="utf-8")
    monkeypatch.setattr(letters, "FILE", tmp_path / "letters.json")
    write_letters(tmp_path / "ru.txt", tmp_path / "en.txt")
    tables = json.loads((tmp_path / "letters.json").read_text(encoding="utf-8"))
    assert tables == {
        "ru": count("кот кот еж", "ru"),
        "en": count("cat the cat", "en"),
    }
    assert tables["ru"]["frequent"] == "еж кот"
    row = tables["en"]["pairs"][1 + ALPHABETS["en"].index("c")]
    assert min(row) == row[1 + ALPHABETS["en"].index("a")]


def test_forms_follow_the_affixes_of_a_dictionary(tmp_path: Path) -> None:
    (tmp_path / "xx.aff").write_text("SFX A Y 2\nSFX A y ies [^aeiou]y\nSFX A 0 s [^y]\nPFX B Y 1\nPFX B 0 re .\n")
    (tmp_path / "xx.dic").write_text("2\ncity/A\nplay/AB\n")
    assert list(forms(tmp_path / "xx.dic")) == ["city", "cities", "play", "replay"]
