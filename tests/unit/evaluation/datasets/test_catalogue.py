"""The readers on made-up rows in the shape of the public sets, and noise."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from components.language.identifiers import codes
from evaluation.cases import QuestionSet, Skipped
from evaluation.datasets import DATA_SETS, public
from evaluation.datasets.catalogue import READERS, chosen_sets
from evaluation.datasets.noise import typos, wrong_layout


def write(path: Path, rows: Sequence[Mapping[str, object]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")


@pytest.fixture
def data(tmp_path: Path) -> Path:
    cloud = tmp_path / "vkcloud"
    write(cloud / "corpus" / "corpus_ru.jsonl", [{"doc_id": "a", "title": "Т", "text": "Текст."}])
    linked = {"question": "Как?", "gold": [{"doc_id": "a", "anchor": "x"}, {"doc_id": "a", "anchor": "y"}]}
    write(
        cloud / "dev" / "faq_ru.jsonl",
        [
            {"id": "1", **linked, "gold_status": "linked", "gold_all_in_corpus": True},
            {"id": "2", **linked, "gold_status": "linked", "gold_all_in_corpus": False},
            {"id": "3", "question": "Где?", "gold": [], "gold_status": "unlinked", "gold_all_in_corpus": False},
        ],
    )
    squad = tmp_path / "xquad"
    write(squad / "corpus" / "paragraphs_en.jsonl", [{"doc_id": d, "text": f"Text {d}."} for d in ("p", "q")])
    answered = {"question": "What?", "answers": [{"text": "x", "answer_start": 0}, {"text": "x", "answer_start": 9}]}
    write(
        squad / "dev" / "questions_en.jsonl",
        [
            {"id": "1", **answered, "gold_doc_ids": ["p"], "withheld_in_abstain_run": False},
            {"id": "2", **answered, "gold_doc_ids": ["q"], "withheld_in_abstain_run": True},
        ],
    )
    (squad / "dev" / "abstain_withhold_doc_ids.json").write_text('["q"]')
    notes = tmp_path / "techqa"
    write(notes / "corpus" / "corpus.jsonl", [{"doc_id": "n", "text": "Title: How to \n\nText:\nDo it."}])
    write(
        notes / "dev" / "questions.jsonl",
        [
            {"id": "1", "question": " Why? " + "x" * 3000, "answerable": True, "gold_doc_ids": ["n"]},
            {"id": "2", "question": "When?", "answerable": False, "gold_doc_ids": ["n"]},
        ],
    )
    return tmp_path


def test_only_a_linked_question_is_known_to_have_an_answer(data: Path) -> None:
    (result,) = public.vkcloud(data, "ru")
    assert [(case.answerable, case.gold_docs) for case in result.cases] == [(True, ("a",)), (None, ()), (None, ())]
    assert [document.doc_id for document in result.corpus.documents()] == ["a"]


def test_a_withheld_article_leaves_its_questions_without_an_answer(data: Path) -> None:
    whole, withheld = public.xquad(data, "en")
    assert [document.doc_id for document in whole.corpus.documents()] == ["p", "q"]
    assert [document.doc_id for document in withheld.corpus.documents()] == ["p"]
    assert [case.answerable for case in whole.cases] == [True, True]
    assert [(case.answerable, case.gold_docs, case.gold_spans) for case in withheld.cases] == [
        (True, ("p",), ("x",)),
        (False, (), ()),
    ]


def test_a_technote_has_its_title_apart_and_a_question_its_limit(data: Path) -> None:
    (result,) = public.techqa(data)
    (note,) = result.corpus.documents()
    assert (note.title, note.text) == ("How to", "Do it.")
    assert len(result.cases[0].question) == 2000
    assert [(case.answerable, case.gold_docs) for case in result.cases] == [(True, ("n",)), (False, ())]


def test_missing_sets_are_skipped(data: Path) -> None:
    results = list(chosen_sets("vkcloud", data))
    names = [one.name for one in results if isinstance(one, QuestionSet)]
    assert names == ["vkcloud-ru", *(f"vkcloud-ru+{n}" for n in ("1-typo", "2-typos", "layout", "transliteration"))]
    (skipped,) = (one for one in results if isinstance(one, Skipped))
    assert skipped.path == data / "vkcloud" / "corpus" / "corpus_en.jsonl"
    assert all(isinstance(one, Skipped) for one in chosen_sets("wixqa", data))


def test_built_in_sets_need_no_folder(tmp_path: Path) -> None:
    (fixture,) = chosen_sets("fixture", tmp_path)
    assert isinstance(fixture, QuestionSet)
    assert len(fixture.cases) == 12
    assert len({case.category for case in fixture.cases}) == 6
    (codes,) = chosen_sets("codes", tmp_path)
    assert isinstance(codes, QuestionSet)
    assert len(codes.cases) == 200
    assert all(case.answerable is False and case.category in case.question for case in codes.cases)


def test_the_command_line_knows_every_set() -> None:
    assert set(DATA_SETS) == {"fixture", "codes", "dialogues", *READERS}


QUESTION = "Стиральная машина показывает ошибку E20, что делать?"


@pytest.mark.parametrize("count", [1, 2])
def test_typing_errors_are_made_reproducibly_and_leave_codes_alone(count: int) -> None:
    for seed in range(50):
        noisy = typos(QUESTION, count, seed)
        assert noisy == typos(QUESTION, count, seed)
        assert noisy != QUESTION
        assert codes(noisy) == ("E20",)


def test_the_wrong_layout_is_a_russian_keyboard_read_as_an_english_one() -> None:
    assert wrong_layout("ошибка Е20?") == "jib,rf T20&"
    assert wrong_layout("как сбросить пароль от Wi-Fi") == "rfr c,hjcbnm gfhjkm jn Wi-Fi"
