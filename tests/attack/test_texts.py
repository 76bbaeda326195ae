"""Short texts that once took many seconds: nothing else is computed in the process meanwhile."""

from time import process_time

import pytest

from components.answer.utterances import _END
from components.understand.parts import parts_of

MOST_SECONDS = 1.0
QUESTION = 2_000


@pytest.mark.parametrize("unit", ['"', "«", '" ', "»", 'чем "', 'разница "', 'а и "', 'compare the "'])
def test_marks_of_quotations_alone_take_no_time(unit: str) -> None:
    started_at = process_time()
    parts_of((unit * QUESTION)[:QUESTION])
    assert process_time() - started_at < MOST_SECONDS


@pytest.mark.parametrize("unit", ["\n", " \n", "\n\t", " "])
def test_blank_lines_of_a_model_take_no_time(unit: str) -> None:
    started_at = process_time()
    assert _END.search(f"Да.{unit * QUESTION}") is None
    assert process_time() - started_at < MOST_SECONDS
