"""Numbers in two languages."""

from components.language.figures import number, percent


def test_a_number_is_written_as_its_language_does() -> None:
    for value, digits, russian, english in (
        (0, 0, "0", "0"),
        (7.26, 1, "7,3", "7.3"),
        (1234, 0, "1234", "1,234"),
        (12345.6, 1, "12\u00a0345,6", "12,345.6"),
        (0.25, None, "0,25", "0.25"),
        (20.0, None, "20", "20"),
        (1234567, 0, "1\u00a0234\u00a0567", "1,234,567"),
    ):
        assert number(value, digits, locale="ru") == russian
        assert number(value, digits, locale="en") == english


def test_a_share_of_nothing_is_a_dash() -> None:
    assert percent(1 / 3, locale="ru") == "33\u00a0%"
    assert percent(0.0525, 1, locale="en") == "5.2%"
    assert percent(None, locale="ru") == "–"
