import re

from hypothesis import given

from components.language.identifiers import as_typed, codes, codes_asked, numbers, shapes
from components.language.normalise import CYRILLIC_LOOKALIKES, LATIN_LOOKALIKES
from tests.generated import texts


def test_codes() -> None:
    for text, found in (
        ("Ошибка E20", ("E20",)),
        ("ошибка Е20 на экране", ("E20",)),
        ("е-20", ("E20",)),
        ("ошибка E 20", ("E20",)),
        ("код ошибки 404", ("404",)),
        ("E20, E25 и снова е20", ("E20", "E25")),
        ("CVE-2016-2961", ("CVE-2016-2961",)),
        ("модель WM1040", ("WM1040",)),
        ("Samsung SM-G990", ("G990",)),
        ("ошибка-E20", ("E20",)),
        ("on 3rd-and-9 they punted", ()),
        ("в 2015 году стоило 20 рублей", ()),
        ("слив воды", ()),
        ("обновление до версии V7 или v5.2.0.3", ()),
        ("Windows 2008 R2, fix pack FP13+IF1", ()),
        ("https://www-01.example.com/doc?uid=swg21993160", ()),
        (r"см. C:\logs\TM6\a1 и install-IF0003.tar", ()),
        ("Подробнее на e20.example.com. Ошибка E25", ("E25",)),
    ):
        assert codes(text) == found


def test_a_code_is_spelt_as_typed() -> None:
    for code, text, spelt in (
        ("KB999", "What does KB-999 mean?", "KB-999"),
        ("E401", "что такое е-401, и E20?", "е-401"),
        ("E401", "ошибка E 401", "E401"),
        ("E401", "jib,rf t401", "E401"),
    ):
        assert as_typed(code, text) == spelt


def test_shapes_are_of_codes_that_a_text_explains() -> None:
    for text, built in (
        ("## E20 — вода не сливается", {"1.2.0"}),
        ("- **F7**: нет связи", {"1.1.0"}),
        ("Error AMQ8075: Authorization failed", {"3.4.0"}),
        ("ABCD0199E: the stream is closed", {"4.4.1"}),
        ("На дисплее появился код E30.", {"1.2.0"}),
        ("eth0: up\nрежим E20 и шкаф B12", set()),
        ("V7 — новая версия", set()),
        ("См. https://shop.example/E20 — там всё", set()),
    ):
        assert shapes(text) == built


def test_a_code_is_announced_or_built_like_a_known_one() -> None:
    for question, expected in (
        ("Что значит E401?", ("E401",)),
        ("горит F20, вода не сливается", ("F20",)),
        ("стоит ли брать WM1040", ()),
        ("ошибка WM1040", ("WM1040",)),
        ("код ошибки «AB-1234»", ("AB1234",)),
        ("ошибка 404", ("404",)),
        ("ошибка в версии V7", ()),
        ("как слушать MP3 по USB2", ()),
    ):
        assert codes_asked(question, shapes("## E20 — вода не сливается")) == expected


@given(texts)
def test_a_code_is_canonical_and_named_once(text: str) -> None:
    result = codes(text)
    assert len(set(result)) == len(result)
    assert all(re.fullmatch(r"[A-Z]*-?[0-9][0-9.-]*[A-Z]{0,2}", code) for code in result)


def test_look_alike_letters_give_the_same_code() -> None:
    for code in ("E20", "H1", "AB12", "CKM-7", "T401"):
        cyrillic = code.translate(LATIN_LOOKALIKES)
        assert cyrillic.translate(CYRILLIC_LOOKALIKES) == code
        assert codes(f"Ошибка {cyrillic}") == codes(f"Ошибка {code}") != ()
        assert codes(code.lower()) == codes(code)


def test_numbers() -> None:
    for text, found in (
        ("10 000 рублей", ("10000",)),
        ("10,5 кг", ("10.5",)),
        ("14 дней и 2 года", ("14", "2")),
        ("007", ("7",)),
        ("0", ("0",)),
        ("без чисел", ()),
        ("It costs 2,900 roubles, not 1,234,567.50", ("2900", "1234567.50")),
        ("Диаметр 2,900 мм или 5,3 см", ("2.900", "5.3")),
        ("Диаметр трубы PVC — 2,900 мм", ("2.900",)),
        ("weighs 5,3 kg, 0,500 of it and 2,9000 more", ("5.3", "0.500", "2.9000")),
        ("2,900", ("2.900",)),
    ):
        assert numbers(text) == found


def test_a_number_is_read_as_in_the_text_around_it() -> None:
    assert numbers("| WM1040 | 2,900 |", "Диаметры труб, мм:\n| WM1040 | 2,900 |") == ("1040", "2.900")
    assert numbers("2,900", "The fee is 2,900 roubles") == ("2900",)
