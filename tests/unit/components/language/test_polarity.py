"""Yes, no, or nothing: what the words of a sentence say to a question."""

import pytest
from components.language.polarity import Polarity, asks_whether_possible, contrasts, polarity, says_itself


@pytest.mark.parametrize(
    ("question", "sentence", "expected"),
    [
        ("Можно ли вернуть товар?", "Товар можно вернуть.", Polarity("yes")),
        ("Можно вернуть технику?", "Вернуть технику нельзя.", Polarity("no")),
        ("Можно вернуть технику?", "Вернуть технику невозможно.", Polarity("no")),
        ("Могу ли я вернуть товар?", "Вы можете вернуть товар, если есть чек.", Polarity("yes", "если есть чек")),
        ("Можно вернуть товар?", "Если есть чек, товар можно вернуть.", Polarity("yes", "если есть чек")),
        (
            "Можно вернуть товар?",
            "Товар можно вернуть, если он не был в работе.",
            Polarity("yes", "если он не был в работе"),
        ),
        ("Можно вернуть товар?", "Товар можно вернуть только с чеком.", Polarity("yes", conditional=True)),
        ("Поддерживается ли HTTP/2?", "Протокол HTTP/2 не поддерживается.", None),
        ("Поддерживается ли Docker?", "Docker не поддерживается.", Polarity("no")),
        ("Нужно ли платить за доставку?", "Платить за доставку не нужно.", Polarity("no")),
        ("Нужно ли платить за доставку?", "За доставку необходимо платить.", Polarity("yes")),
        ("Обязательно ли хранить коробку?", "Хранить коробку необязательно.", Polarity("no")),
        ("Есть ли рассрочка?", "Рассрочки нет.", Polarity("no")),
        ("Шифруется ли связь?", "Связь всегда шифруется.", Polarity("yes")),
        ("Работает ли пункт выдачи?", "Пункт выдачи не работает.", Polarity("no")),
        (
            "Включена ли доставка?",
            "Доставка включена, если заказ дороже 3000 ₽.",
            Polarity("yes", "если заказ дороже 3000 ₽"),
        ),
        ("Is delivery available in May?", "Delivery in May is not available.", Polarity("no")),
        ("Can I return it?", "You can return it only if it is new.", Polarity("yes", "only if it is new")),
        ("Can I return it?", "You can't return it.", Polarity("no")),
        ("Can I return it?", "You cannot return it unless it is broken.", Polarity("no", conditional=True)),
        ("Does it support TLS?", "The server supports TLS.", Polarity("yes")),
        ("Does it support TLS?", "It does not support TLS.", Polarity("no")),
        ("Do I need to register?", "You don't need to register.", Polarity("no")),
    ],
)
def test_a_sentence_says_yes_or_no(question: str, sentence: str, expected: Polarity | None) -> None:
    assert polarity(question, sentence) == expected


@pytest.mark.parametrize(
    ("question", "sentence"),
    [
        ("Нельзя вернуть технику?", "Вернуть технику нельзя."),
        ("Разве не нужно платить?", "Платить не нужно."),
        ("Можно вернуть товар?", "Товар можно вернуть, но обменять его нельзя."),
        ("Можно вернуть товар?", "Товар нельзя не вернуть."),
        ("Можно вернуть товар?", "Товар возвращают на кассе."),
        ("Можно вернуть товар через 20 дней?", "Товар можно вернуть за 14 дней."),
        ("Можно вернуть товар после оплаты?", "Товар можно вернуть до оплаты."),
        ("Можно вернуть или обменять товар?", "Товар можно вернуть."),
        ("Есть ли доставка в выходные?", "Доставка есть ежедневно, кроме выходных."),
        ("Доступен ли заказ на сайте?", "Заказ есть на сайте."),
        ("Шифруется ли связь?", "Шифрование связи включают."),
        ("Почему нельзя вернуть?", "Вернуть нельзя."),
        ("Можно вернуть товар?", "Можно ли вернуть товар?"),
        ("Can I use it with several devices?", "You can use it with devices."),
    ],
)
def test_what_the_words_do_not_show_is_not_said(question: str, sentence: str) -> None:
    assert polarity(question, sentence) is None


def test_instructions_say_yes_to_a_plain_question() -> None:
    assert asks_whether_possible("Можно ли сменить пароль?")
    assert asks_whether_possible("Can I change the password?")
    assert not asks_whether_possible("Можно ли сменить пароль бесплатно?")
    assert not asks_whether_possible("Нельзя сменить пароль?")
    assert not asks_whether_possible("Нужно ли менять пароль?")


def test_sentences_that_say_it_themselves_or_take_it_back() -> None:
    assert says_itself("Да, можно.")
    assert says_itself("No. It is final.")
    assert not says_itself("Давайте вернём.")
    assert not says_itself("Нотариус не нужен.")
    assert contrasts("Однако чек нужен.")
    assert not contrasts("Номер чека нужен.")
