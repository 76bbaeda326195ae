"""Grading of documents: YES and NO, the privilege of the best hit, codes, and a failing model."""

from typing import Any

import pytest
from haystack import Document

from components.faults import collect_degraded
from components.judge.grader import DocGrader
from components.judge.llm import Grades
from tests.turns import FixedJudge, document

pytestmark = pytest.mark.usefixtures("terms")


def ranked_by(*relevances: float) -> list[Document]:
    return [document(f"Текст {place}.", f"c{place}", relevance=one) for place, one in enumerate(relevances)]


def graded(
    documents: list[Document],
    query: str = "текст",
    judge: FixedJudge | None = None,
    **inputs: Any,  # noqa: ANN401
) -> dict[str, Any]:
    grader = DocGrader(threshold=0.5, depth=4, judge=judge)  # type: ignore[arg-type]
    return grader.run(query=query, documents=documents, **inputs)


def ids(documents: list[Document]) -> list[str]:
    return [one.id for one in documents]


def test_documents_from_the_threshold_upwards_are_accepted() -> None:
    outputs = graded(ranked_by(0.9, 0.6, 0.1))
    assert (ids(outputs["documents"]), outputs["adequacy"]) == (["c0", "c1"], 0.9)
    assert [one.meta["graded"] for one in outputs["graded"]] == [True, True, False]


def test_all_documents_graded_no_is_no_evidence() -> None:
    outputs = graded(ranked_by(0.4, 0.1))
    assert (outputs["documents"], outputs["adequacy"]) == ([], 0.0)


def test_the_best_hit_is_accepted_if_another_one_is() -> None:
    assert set(ids(graded(ranked_by(0.4, 0.6))["documents"])) == {"c0", "c1"}


def test_a_document_about_the_code_is_never_called_missing() -> None:
    about = document("Ошибка E20: вода не сливается.", "c1", relevance=0.05)
    outputs = graded([document("Текст.", "c0", relevance=0.1), about], "что значит ошибка e20")
    assert ("c1" in ids(outputs["documents"]), "E20" in outputs["missing"]) == (True, False)


def test_no_more_than_depth_is_accepted() -> None:
    assert len(graded(ranked_by(*[0.9] * 6))["documents"]) == 4


def test_words_and_codes_that_no_document_holds_are_missing() -> None:
    outputs = graded([document("Ошибка E25: сломан насос.")], "ошибка E20, насос гремит")
    assert outputs["missing"] == ["E20", "гремит"]
    assert outputs["adequacy"] == 0.0


def test_a_model_grades_in_thorough_quality() -> None:
    judge = FixedJudge(grades=Grades(frozenset({"c1"}), 0.7, ("цена",)))
    outputs = graded(ranked_by(0.9, 0.8), judge=judge, quality="thorough")
    assert (ids(outputs["documents"]), outputs["adequacy"], outputs["missing"]) == (["c1", "c0"], 0.7, ["цена"])
    assert graded(ranked_by(0.9), judge=judge)["adequacy"] == 0.9


def test_local_grades_stand_if_the_model_fails() -> None:
    with collect_degraded() as noted:
        outputs = graded(ranked_by(0.9), judge=FixedJudge(broken=["grade"]), quality="thorough")
    assert (outputs["adequacy"], list(noted)) == (0.9, ["grader"])


def test_a_pass_grows_only_by_accepted_documents_that_are_new() -> None:
    assert graded(ranked_by(0.9), seen=ranked_by(0.9))["grew"] is False
    assert graded(ranked_by(0.9, 0.8), seen=ranked_by(0.9))["grew"] is True
    assert graded(ranked_by(0.9, 0.1), seen=ranked_by(0.9))["grew"] is False
