"""A reply with marks is split into the sections under them."""

from components.answer.utterances import utterances

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


def test_a_reply_is_cut_at_its_marks() -> None:
    assert [(one.sentences, one.marks, one.bullet, one.own_line) for one in utterances(REPLY)] == CUT


def test_a_dangling_introduction_or_empty_line_is_no_utterance() -> None:
    for text in ("", "Вот что:", "[1]", " [1] [2] "):
        assert list(utterances(text)) == []
