"""Personal data is masked, all other text is unchanged."""

from hypothesis import given
from hypothesis import strategies as st

from components.language.personal import mask


def test_personal_data_is_masked() -> None:
    for given_text, masked in (
        ("Пишите на ivan.petrov+shop@mail.ru.", "Пишите на [email]."),
        ("почта иван@почта.рф", "почта [email]"),
        ("+7 916 123-45-67", "[phone]"),
        ("позвоните 8 (916) 123-45-67 завтра", "позвоните [phone] завтра"),
        ("89161234567, 8-495-123-45-67", "[phone], [phone]"),
        ("тел. 916 123-45-67", "тел. [phone]"),
        ("call +44 20 7946 0958", "call [phone]"),
        ("карта 4111 1111 1111 1111", "карта [card]"),
        ("карта 5500-0000-0000-0004 и 378282246310005", "карта [card] и [card]"),
        ("паспорт 45 08 123456", "паспорт [passport]"),
        ("Паспорт серия 4508 № 123456", "Паспорт серия [passport] № [passport]"),
        ("серия 4508 номер 123456", "серия [passport] номер [passport]"),
        ("ИНН 7707083893", "ИНН [inn]"),
        ("мой инн: 500100732259", "мой инн: [inn]"),
        ("паспорт серии 4508 номер 123456", "паспорт серии [passport] номер [passport]"),
        ("карта 4111.1111.1111.1111", "карта [card]"),
        ("карта 4111/1111/1111/1111", "карта [card]"),
        ("карта 4111_1111_1111_1111", "карта [card]"),
        ("карта 4111\u20131111\u20131111\u20131111", "карта [card]"),
        ("карта 4111\t1111\t1111\t1111", "карта [card]"),
        ("карта 4111  1111  1111  1111", "карта [card]"),
        ("СНИЛС: 11223344595", "СНИЛС: [snils]"),
        ("СНИЛС № 11223344595", "СНИЛС № [snils]"),
        ("СНИЛС 112-233-445 95", "СНИЛС [snils]"),
        ("снилс 11223344595", "снилс [snils]"),
    ):
        assert mask(given_text) == masked
        assert mask(masked) == masked


def test_other_numbers_are_not_masked() -> None:
    for text in (
        "Код E20, версия 10.5, SM-G990-1234567890, CVE-2016-2961",
        "Заказ № 89161234567 не пришёл",
        "заказ номер 4111111111111111",
        "трек RA123456789RU и посылка 12345678901234",
        "Горячая линия 8 800 555-35-35 или +7 (800) 555-35-35",
        "1 000 000 000 рублей до 31.12.2026 18:30",
        "ИНН 7707083894 с неверной цифрой",
        "карта 4111 1111 1111 1112 с неверной цифрой",
        "112-233-445 96",
        "адрес 192.168.100.200, ISBN 978-5-17-118366-1",
        "123e4567-e89b-12d3-a456-426614174000",
        "ticket 123456789012",
        "напишите на @opora_bot",
    ):
        assert mask(text) == text


@given(st.from_regex(r"\A[a-z]{1,10}@[a-z]{1,10}\.(ru|com)\Z"), st.text("абв где\n", max_size=20))
def test_an_email_address_is_found_anywhere(address: str, around: str) -> None:
    assert address not in mask(f"{around} {address} {around}")


@given(st.integers(0, 10**10 - 1))
def test_a_card_is_known_by_its_check_digit(middle: int) -> None:
    digits = f"41111{middle:010}"
    passing = [last for last in "0123456789" if mask(f"оплата {digits}{last}") == "оплата [card]"]
    assert len(passing) == 1
