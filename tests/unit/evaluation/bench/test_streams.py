"""What a client finds wrong with a stream of events."""

import pytest

from evaluation.bench.streams import Event, StreamedTurn


def streamed(*names: str, numbers: tuple[int, ...] = (), turns: tuple[str, ...] = ()) -> StreamedTurn:
    events = tuple(
        Event(
            100.0 + place,
            numbers[place] if numbers else place + 1,
            name,
            {"turn_id": turns[place] if turns else "t", "outcome": name},
        )
        for place, name in enumerate(names)
    )
    return StreamedTurn("?", 100.0, 200, events)


def test_a_complete_stream_has_no_faults() -> None:
    turn = streamed("accepted", "token", "result", "done")

    assert turn.faults == []
    assert turn.seconds_to("result") == 2.0
    assert turn.seconds_to("claim") is None
    assert turn.result["outcome"] == "result"


@pytest.mark.parametrize(
    "turn",
    [
        streamed(),
        streamed("accepted", "result"),
        streamed("token", "result", "done"),
        streamed("accepted", "done"),
        streamed("accepted", "result", "result", "done"),
        streamed("accepted", "result", "done", numbers=(1, 3, 4)),
        streamed("accepted", "result", "done", turns=("t", "u", "t")),
    ],
)
def test_a_lost_or_mixed_event_is_a_fault(turn: StreamedTurn) -> None:
    assert turn.faults
