"""What a question weighs, and what covers it."""

from dataclasses import replace

from components.judge.analysis import analyse
from components.judge.coverage import prepare
from components.language.relatives import relatives
from tests.turns import passage, query


def test_a_guessed_word_counts_less_than_a_typed_one() -> None:
    typed = query("замена фильтра")
    guessed = replace(typed, doubtful=frozenset(typed.weights))
    assert sum(prepare(guessed).weights.values()) < sum(prepare(typed).weights.values())


def test_most_of_the_weight_lies_on_a_code() -> None:
    weights = prepare(query("что делать с ошибкой E20 на экране")).weights
    assert weights["e20"] > 0.5


def test_relatives_share_a_beginning() -> None:
    analysis = analyse(passage("Подключение и подключаемый. Подкова."))
    (stem,) = query("подключить").weights
    assert relatives(stem, analysis.families)
    assert not relatives("подк", analysis.families)
