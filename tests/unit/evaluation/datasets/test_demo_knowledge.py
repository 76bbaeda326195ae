"""The demo shop: the fixture is true to its articles, and the articles are true to each other."""

import json
import re

import pytest

from components.language.identifiers import codes, numbers
from components.language.normalise import fold
from evaluation.datasets.fixture import DEMO

FRONT_MATTER = re.compile(r"\A---\n.*?\n---\n\n", re.DOTALL)
ARTICLES = {
    locale: {path.name: FRONT_MATTER.sub("", path.read_text(encoding="utf-8")) for path in (DEMO / locale).glob("*.md")}
    for locale in ("ru", "en")
}
CASES = [json.loads(line) for line in (DEMO / "fixture.jsonl").read_text(encoding="utf-8").splitlines()]
KNOWN_CODES = {"E10", "E20", "E25", "E30"}
EVERYWHERE = [(locale, name) for locale, articles in ARTICLES.items() for name in sorted(articles)]


def test_the_promised_cases_are_present() -> None:
    expected = {case["question"]: (case["expected_outcome"], case["expected_reason"]) for case in CASES}
    assert expected["Стиральная машина показывает ошибку E20, что делать?"] == ("answered", None)
    assert expected["Что означает ошибка E401 на стиральной машине?"] == ("refused", "no_relevant_context")
    assert expected["jib,rf t20"] == ("answered", None)
    assert expected["Ошибка Е20 на дисплее, как исправить?"] == ("answered", None)
    assert "high_stakes" in {outcome for outcome, _ in expected.values()}


def test_a_case_agrees_with_its_articles(subtests: pytest.Subtests) -> None:
    for case in CASES:
        with subtests.test(case=case["id"]):
            gold = " ".join(ARTICLES["ru"][name] for name in case["gold_doc_ids"])
            assert bool(gold) == (case["expected_outcome"] == "answered")
            assert all(fold(part) in fold(gold) for part in case["must_contain"])
            if gold:
                assert set(numbers(case["gold_answer"])) <= set(numbers(gold))
                assert not [part for part in case["must_not_contain"] if part in case["gold_answer"]]


def test_both_shops_have_the_same_articles() -> None:
    assert ARTICLES["ru"].keys() == ARTICLES["en"].keys()
    assert 25 <= len(ARTICLES["ru"]) <= 40


def test_related_articles_exist() -> None:
    for locale, name in EVERYWHERE:
        front_matter = "".join(FRONT_MATTER.findall((DEMO / locale / name).read_text(encoding="utf-8")))
        related = re.findall(r"[\w-]+\.md", front_matter)
        assert set(related) <= set(ARTICLES[locale]) - {name}, name


def test_an_article_is_readable_and_holds_no_other_code(subtests: pytest.Subtests) -> None:
    for locale, name in EVERYWHERE:
        with subtests.test(locale=locale, name=name):
            text = ARTICLES[locale][name]
            assert text.startswith("# ")
            assert text.count("\n# ") == 0
            assert 140 <= len(text.split()) <= 680
            assert set(codes(text)) <= KNOWN_CODES
            assert not re.search(r"[а-яё][a-z]|[a-z][а-яё]", text.lower()), "a look-alike letter of the other alphabet"


@pytest.mark.parametrize("locale", ["ru", "en"])
def test_every_code_has_its_section_with_steps(locale: str) -> None:
    text = ARTICLES[locale]["errors_e10_e30.md"]
    sections = dict(re.findall(r"^## (E\d+) — .+\n((?:(?!## ).*\n)+)", text, flags=re.MULTILINE))
    assert set(sections) == KNOWN_CODES
    for code, section in sections.items():
        assert set(codes(section)) == {code}
        assert len(re.findall(r"^\d\. ", section, flags=re.MULTILINE)) >= 5


@pytest.mark.parametrize(("locale", "reference"), [("ru", "стать[еию] «([^»]+)»"), ("en", "article “([^”]+)”")])
def test_references_name_articles(locale: str, reference: str) -> None:
    titles = {text.splitlines()[0].removeprefix("# ") for text in ARTICLES[locale].values()}
    named = {title for text in ARTICLES[locale].values() for title in re.findall(reference, text)}
    assert named
    assert named <= titles


def test_numbers_of_an_english_article_are_in_the_russian_one() -> None:
    for name, text in ARTICLES["en"].items():
        assert set(numbers(text)) <= set(numbers(ARTICLES["ru"][name])), name
