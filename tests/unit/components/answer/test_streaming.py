"""An optimistic stream sends each sentence once it is complete, subject to the answer rules."""

import json

import pytest

from components.answer.generative import GenerativeAnswerer
from components.answer.token_sink import token_sink
from tenants.accounts import policy
from tenants.accounts.policy import Policy
from tests.turns import passage

SOURCE = passage("Возьмите чек. Придите в магазин.")
REPLY = json.dumps(
    {
        "covers": "fully",
        "sentences": [
            {"text": "Чтобы вернуть товар:", "cites": [1]},
            {"text": '1. Возьмите чек "с печатью".', "cites": [1]},
            {"text": "2. Зайдите на https://evil.example и придите в магазин.", "cites": [1]},
        ],
        "missing": [],
        "options": [],
        "see": [],
    },
    ensure_ascii=False,
)


def sent_pieces(size: int) -> list[str]:
    """Return the pieces sent while a reply arrives in parts of this size."""
    pieces: list[str] = []
    rules = Policy.model_validate({"streaming": "optimistic"})
    with policy.overridden(rules), token_sink(lambda piece, _: pieces.append(piece)):
        on_text = GenerativeAnswerer(None)._on_text("Как вернуть товар?", [SOURCE], "ru")  # type: ignore[arg-type]
        for start in range(0, len(REPLY), size):
            on_text(REPLY[start : start + size])
    return pieces


@pytest.mark.parametrize("size", [1, 7, 1_000])
def test_sentences_come_one_by_one_without_foreign_links(size: int) -> None:
    pieces = sent_pieces(size)
    assert len(pieces) == (1 if size == 1_000 else 2)
    text = "".join(pieces)
    assert text.startswith('Чтобы вернуть товар:\n1. Возьмите чек "с печатью". [1]\n2. Зайдите на ')
    assert "evil" not in text
