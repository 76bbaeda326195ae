"""Enough evidence, another pass, or a refusal: exactly one of them."""

from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from components.judge.evidence_evaluator import RetrievalEvaluator
from components.turn import PASSES, Quality
from tenants.knowledge import lexicon
from tenants.knowledge.lexicon import Lexicon
from tests.turns import document

FOUND = [document("Код E20: вода не сливается.")]


@pytest.fixture(autouse=True, scope="module")
def _terms() -> Any:  # noqa: ANN401
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lexicon, "current", lambda: Lexicon(9, {}, {}, 1, {"L1.D2.T0": 1}))
        yield


def routed(adequacy: float, **inputs: Any) -> tuple[str, dict[str, Any]]:  # noqa: ANN401
    evaluator = RetrievalEvaluator(threshold=0.6, worth_retrying=0.3)
    given_inputs = {"query": "вода", "documents": FOUND, "missing": ["насос"], **inputs}
    outputs = evaluator.run(adequacy=adequacy, **given_inputs)
    (socket,) = outputs.keys() - {"gate"}
    return socket, outputs


def test_adequacy_decides() -> None:
    for adequacy, socket in ((0.9, "enough"), (0.6, "enough"), (0.59, "retry"), (0.3, "retry"), (0.29, "refuse")):
        assert routed(adequacy)[0] == socket


def test_without_accepted_documents_the_turn_is_refused() -> None:
    socket, outputs = routed(0.0, documents=[])
    assert (socket, outputs["refuse"].route, outputs["refuse"].reasons) == ("refuse", "human", ("no_evidence",))


def test_nothing_missing_or_nothing_new_ends_the_loop() -> None:
    assert routed(0.5, missing=[])[0] == "refuse"
    assert routed(0.5, grew=False)[0] == "refuse"


def test_a_code_that_the_evidence_lacks_is_named() -> None:
    assert routed(0.0, query="ошибка E21")[1]["refuse"].reasons == ("code_not_found",)


@given(st.floats(0, 1), st.sampled_from(get_args(Quality)), st.integers(1, 5), st.booleans())
def test_exactly_one_route_and_never_beyond_the_budget(
    adequacy: float, quality: Quality, attempt: int, grew: bool
) -> None:
    socket, outputs = routed(adequacy, quality=quality, attempt=attempt, grew=grew)
    assert outputs["gate"].passed == (socket == "enough") == (adequacy >= 0.6)
    if socket == "retry":
        assert attempt < PASSES[quality]
        assert grew
