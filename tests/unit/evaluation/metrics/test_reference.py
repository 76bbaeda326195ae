import math

import pytest

from components.turn import Passage
from evaluation.metrics.reference import Reference
from evaluation.metrics.targets import judge

TEXTS = {
    "drain": ("Слив", "Насос не сливает воду. Прочистите фильтр насоса."),
    "return": ("Возврат", "Вернуть товар можно за 7 дней. Деньги вернутся на карту."),
    "wash": ("Стирка", "Вода в машине нагревается до 90 градусов."),
}


def reference() -> Reference:
    def spans(text: str) -> tuple[tuple[int, int], ...]:
        middle = text.index(".") + 1 if text.count(".") > 1 else len(text)
        return tuple(span for span in ((0, middle), (middle, len(text))) if span[0] < span[1])

    return Reference(Passage(name, name, title, "", text, spans(text)) for name, (title, text) in TEXTS.items())


def test_documents_are_ranked_by_their_best_chunk() -> None:
    assert reference().ranked("фильтр насоса и вода")[0] == "drain"
    assert set(reference().ranked("вода")) == {"drain", "wash"}
    assert reference().ranked("zzz") == ()


def test_bm25_is_the_textbook_formula() -> None:
    assert reference().idf("вод") == pytest.approx(math.log(1 + 1.5 / 2.5))
    assert reference().idf("unseen") == pytest.approx(math.log(1 + 3.5 / 0.5))


def test_the_best_sentence_covers_most_of_the_question() -> None:
    sentence, share = reference().best_sentence("прочистить фильтр насоса")
    assert sentence.strip() == "Прочистите фильтр насоса."
    assert share == pytest.approx(1.0)
    assert reference().best_sentence("zzz") == ("", 0.0)


def test_targets_are_met_at_their_bound_and_missed_beyond_it() -> None:
    (result,) = judge("vkcloud-ru", {"hit@5": 0.55}, {"hit@5": 0.52})
    assert result.met
    (missed,) = judge("vkcloud-ru", {"hit@5": 0.54}, {"hit@5": 0.52})
    assert not missed.met
    assert [judged.met for judged in judge("xquad-ru-withheld", {"false_answer_rate": 0.08, "over_refusal": 0.11})] == [
        True,
        False,
    ]


def test_a_number_that_was_not_measured_is_not_judged() -> None:
    assert judge("vkcloud-ru", {"hit@5": 0.9}) == []
    assert judge("unknown", {"hit@5": 0.9}) == []
