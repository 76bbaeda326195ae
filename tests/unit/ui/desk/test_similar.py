"""Ended chats shown beside an open one."""

from collections.abc import Mapping, Sequence

import pytest

from tenants.desk import inbox
from tenants.desk.inbox import CustomerWords
from ui.desk import similar

ASKED = {
    "drain": "Машина не сливает воду, горит E20",
    "drain-too": "Почему стиральная машина не сливает воду?",
    "return": "Как вернуть машину в магазин?",
    "unanswered": "Машина не сливает воду и шумит",
}
REPLIES = {"drain": "Очистите фильтр.", "drain-too": "Проверьте шланг.", "return": "В течение 14 дней."}


@pytest.fixture(autouse=True)
def solved(monkeypatch: pytest.MonkeyPatch) -> None:
    def asked_before(stems: Sequence[str], *, limit: int) -> tuple[CustomerWords, ...]:
        assert 0 < len(stems) <= 8 < limit
        return tuple(CustomerWords(chat_id, text) for chat_id, text in ASKED.items())

    def last_replies(chat_ids: Sequence[str]) -> Mapping[str, str]:
        return {chat_id: REPLIES[chat_id] for chat_id in chat_ids if chat_id in REPLIES}

    monkeypatch.setattr(inbox, "asked_before", asked_before)
    monkeypatch.setattr(inbox, "last_replies", last_replies)


def test_the_nearest_come_first_and_only_those_that_a_person_answered() -> None:
    found = similar.similar("Стиральная машина не сливает воду", but="mine")
    assert [one.chat_id for one in found] == ["drain-too", "drain"]
    assert found[0].reply == "Проверьте шланг."


def test_a_chat_is_not_like_itself_and_one_word_in_common_is_too_little() -> None:
    found = similar.similar("Сколько времени доставляют холодильник, если машина в ремонте?", but="drain")
    assert found == ()
