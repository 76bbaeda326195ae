"""A reply with marks is split into the sections under them, wherever its pieces were cut."""

from collections.abc import Sequence
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from components.answer.utterances import Utterance, Utterances

REPLY = """Вода не сливается. Насос молчит [1][2]. Проверьте фильтр [1], затем шланг [3].
Что делать:
1. Выключите машину. [2]
2. Откройте панель [2, 4].
- Без номера.

```bash
qemu-img convert -f raw
```
[5]
Готово через 1.5 часа [6] Затем включите [1]"""
CUT = [
    (("Вода не сливается.", "Насос молчит."), (1, 2), "", False),
    (("Проверьте фильтр, затем шланг.",), (1, 3), "", False),
    (("Что делать:",), (2,), "", True),
    (("Выключите машину.",), (2,), "1.", True),
    (("Откройте панель.",), (2, 4), "2.", True),
    (("Без номера.",), (), "-", True),
    (("```bash\nqemu-img convert -f raw\n```",), (5,), "", True),
    (("Готово через 1.5 часа",), (6,), "", True),
    (("Затем включите",), (1,), "", False),
]


def cut(pieces: Sequence[str]) -> list[Utterance]:
    result = Utterances()
    return [*(one for piece in pieces for one in result.add(piece)), *result.finish()]


def test_a_reply_is_cut_at_its_marks() -> None:
    assert [(one.sentences, one.marks, one.bullet, one.own_line) for one in cut([REPLY])] == CUT


@given(st.lists(st.integers(0, len(REPLY)), max_size=30))
def test_chunk_boundaries_change_nothing(places: list[int]) -> None:
    bounds = [0, *sorted(places), len(REPLY)]
    pieces = [REPLY[start:end] for start, end in pairwise(bounds)]
    assert cut(pieces) == cut([REPLY])


def test_a_dangling_introduction_or_empty_line_is_no_utterance() -> None:
    for text in ("", "Вот что:", "[1]", " [1] [2] "):
        assert cut([text]) == []


def test_a_sentence_is_passed_on_as_soon_as_the_next_one_begins() -> None:
    result = Utterances()
    assert list(result.add("Вода не сливается [1]. ")) == []
    assert [one.sentences for one in result.add("В")] == [("Вода не сливается.",)]
