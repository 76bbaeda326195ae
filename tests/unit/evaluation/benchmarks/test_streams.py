"""Faults that a client finds in a stream of events."""

import pytest

from evaluation.benchmarks.streams import Event, StreamedTurn

RESULT: dict[str, object] = {"outcome": "answered", "answer": {"text": "Да. [1]"}}
DATA: dict[str, dict[str, object]] = {
    "token": {"text": "Да. [1]"},
    "revise": {"text": "Нет. [1]"},
    "retract": {"what": "answer"},
    "result": RESULT,
}


def streamed(*names: str, numbers: tuple[int, ...] = (), turns: tuple[str, ...] = ()) -> StreamedTurn:
    events = tuple(
        Event(
            100.0 + place,
            f"t:{numbers[place] if numbers else place + 1}",
            name,
            {"turn_id": turns[place] if turns else "t", **DATA.get(name, {})},
        )
        for place, name in enumerate(names)
    )
    return StreamedTurn("?", 100.0, 200, events)


def test_a_complete_stream_has_no_faults() -> None:
    turn = streamed("accepted", "token", "result", "done")

    assert turn.faults == []
    assert turn.seconds_to("result") == 2.0
    assert turn.seconds_to("claim") is None
    assert turn.text == turn.result_text == "Да. [1]"


def test_a_lost_or_mixed_event_is_a_fault() -> None:
    for turn in (
        streamed(),
        streamed("accepted", "token", "result"),
        streamed("token", "result", "done"),
        streamed("accepted", "done"),
        streamed("accepted", "token", "result", "result", "done"),
        streamed("accepted", "token", "result", "done", numbers=(1, 3, 4, 5)),
        streamed("accepted", "token", "result", "done", turns=("t", "u", "t", "t")),
    ):
        assert turn.faults


@pytest.mark.parametrize("names", [(), ("token", "token"), ("token", "revise"), ("token", "retract")])
def test_another_text_than_that_of_the_result_is_a_fault(names: tuple[str, ...]) -> None:
    assert streamed("accepted", *names, "result", "done").faults == ["tokens and result differ"]
