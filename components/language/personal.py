"""Replaces personal data in a text by its kind: `[email]`, `[phone]`, `[card]`, `[passport]`, `[inn]`, `[snils]`.

Text is masked if it has the form of personal data and, where that form has a check digit, passes it; a form that an
order number can have too is masked only if the preceding words name the kind. Product codes, order numbers, prices,
dates and toll-free numbers (8-800) are kept, because the question would be unreadable without them.

Check digits: cards ISO/IEC 7812 (Luhn); INN and SNILS as the tax and pension authorities publish them.
"""

import re
from collections.abc import Callable, Sequence

_GAP = r"[ \u00a0\u2011-]?"
_CARD_GAP = r"[ \t\u00a0\u2011\u2013./_-]{0,2}"
_GAPS = r"[ \u00a0\u2011()-]{0,3}"
_AHEAD, _BEHIND = r"(?<![\w+-])", r"(?![\w-]*\d)"

_EMAIL = re.compile(r"[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63})+")
_DIGITS = re.compile(r"[0-9][0-9 \t\u00a0\u2011\u2013()№N./_-]{7}")
"""Quick check that any number below requires; most texts fail it."""

_CARD = re.compile(
    rf"{_AHEAD}(?:\d{{4}}({_CARD_GAP})\d{{4}}\1\d{{4}}\1\d{{1,7}}|\d{{4}}({_CARD_GAP})\d{{6}}\2\d{{5}}){_BEHIND}"
)
_ABROAD = re.compile(rf"(?<!\w)\+\d(?:{_GAPS}\d){{9,14}}(?!\w)")
_PHONE = re.compile(rf"{_AHEAD}[78]{_GAPS}([3489]\d\d){_GAPS}\d{{3}}{_GAP}\d\d{_GAP}\d\d{_BEHIND}")
_MOBILE = re.compile(rf"{_AHEAD}\(?9\d\d\)?{_GAPS}\d{{3}}{_GAP}\d\d{_GAP}\d\d{_BEHIND}")
_SNILS = re.compile(
    rf"{_AHEAD}\d{{3}}-\d{{3}}-\d{{3}}[ -]?\d\d{_BEHIND}|"
    rf"(?:(?<=снилс )|(?<=снилс:)|(?<=снилс: )|(?<=снилс №)|(?<=снилс № ))\d{{11}}{_BEHIND}",
    re.IGNORECASE,
)
_PASSPORT = re.compile(rf"{_AHEAD}\d\d ?\d\d[ №N]{{0,3}}\d{{6}}{_BEHIND}")
_SERIES = ("серия", "Серия", "СЕРИЯ", "серии", "Серии", "СЕРИИ")
_PASSPORT_PARTS = re.compile(r"(?i)(сери[яи]\D{0,3})\d\d ?\d\d(\D{1,10})\d{6}(?!\d)")
_INN = re.compile(rf"{_AHEAD}(?:\d{{12}}|\d{{10}}){_BEHIND}")

_ORDER = re.compile(
    r"(?i)(?:заказ|order|договор|сч[её]т|накладн|трек|track|артикул|обращени|заявк|тикет|ticket|invoice|contract|sku|"
    r"серийн|serial|посылк|parcel|чек|imei)\w*[^\w.!?]*(?:номер\w*|number|no\.?|id)?[^\w.!?]*\Z"
)
_TELEPHONE = re.compile(r"(?i)(?:тел|phone|звон|whats|вотсап|ватсап|telegram|телеграм|call|моб)\.?[^.!?]{0,30}\Z")
_PASSPORT_WORD = re.compile(r"(?i)(?:паспорт|сери[яи]|passport)[^.!?]{0,25}\Z")
_INN_WORD = re.compile(r"(?i)\bинн\W{0,4}\Z")
_WORDS_BEFORE = 40

_MASK = re.compile(r"\[(?:email|phone|card|passport|inn|snils)\]")
_WITHIN_NUMBER = re.compile(r"(?<=\d)[ \u00a0\u2011().+-]+(?=\d)")
_SUBSCRIBER = 10
"""Digits of a phone number that are the same whether it begins with +7 or 8."""

_INN_10 = (2, 4, 10, 3, 5, 9, 4, 6, 8)
_INN_11 = (7, 2, 4, 10, 3, 5, 9, 4, 6, 8)
_INN_12 = (3, 7, 2, 4, 10, 3, 5, 9, 4, 6, 8)


def mask(text: str) -> str:
    """Return the text without personal data. Idempotent; a text that has none is returned unchanged."""
    if "@" in text:
        text = _EMAIL.sub("[email]", text)
    if _DIGITS.search(text) is None and not any(word in text for word in _SERIES):
        return text
    text = _replace(_CARD, text, "[card]", _is_card)
    text = _replace(_SNILS, text, "[snils]", _is_snils)
    text = _ABROAD.sub(lambda match: match.group() if _toll_free(_only_digits(match.group())) else "[phone]", text)
    text = _replace(_PHONE, text, "[phone]", _is_phone)
    text = _PASSPORT_PARTS.sub(r"\1[passport]\2[passport]", text)
    text = _replace(_PASSPORT, text, "[passport]", _named(_PASSPORT_WORD))
    text = _replace(_MOBILE, text, "[phone]", _named(_TELEPHONE))
    return _replace(_INN, text, "[inn]", _is_inn)


def mask_news(text: str, known_text: Callable[[], str]) -> str:
    """Mask personal data except values that, in any notation, occur in another text.

    :param known_text: returns the other text; called only if there is something to mask.
    """
    masked = mask(text)
    if masked == text:
        return text
    between, names = _MASK.split(masked), _MASK.findall(masked)
    match = re.fullmatch("(.+?)".join(map(re.escape, between)), text, re.DOTALL)
    if match is None:
        return masked
    known = known_text().casefold()
    numbers = _WITHIN_NUMBER.sub("", known)
    unmasked = (
        item if _stands_in(item, name, known, numbers) else name
        for item, name in zip(match.groups(), names, strict=True)
    )
    return between[0] + "".join(item + text for item, text in zip(unmasked, between[1:], strict=True))


def _stands_in(item: str, name: str, known: str, numbers: str) -> bool:
    if item == name:
        return True
    if name == "[email]":
        return item.casefold() in known
    digits = _only_digits(item)
    return (digits[-_SUBSCRIBER:] if name == "[phone]" else digits) in numbers


def without_masks(text: str) -> str:
    """Return a masked text without the masks, for asking the question again."""
    return _MASK.sub("", text)


def _replace(pattern: re.Pattern[str], text: str, name: str, is_match: Callable[[str, str], bool]) -> str:
    """Put `name` in the place of what the pattern finds and `fits` (its digits, the words before it) confirms."""

    def replaced(match: re.Match[str]) -> str:
        before = text[max(0, match.start() - _WORDS_BEFORE) : match.start()]
        return name if is_match(_only_digits(match.group()), before) else match.group()

    return pattern.sub(replaced, text)


def _named(word: re.Pattern[str]) -> Callable[[str, str], bool]:
    return lambda _digits, before: bool(word.search(before))


def _only_digits(text: str) -> str:
    return re.sub(r"\D", "", text)


def _is_card(digits: str, before: str) -> bool:
    return 13 <= len(digits) <= 19 and _luhn(digits) and not _ORDER.search(before)


def _is_phone(digits: str, before: str) -> bool:
    return not _toll_free(digits) and not _ORDER.search(before)


def _toll_free(digits: str) -> bool:
    return len(digits) == 11 and digits[1:4] == "800"


def _is_snils(digits: str, before: str) -> bool:
    if _ORDER.search(before):
        return False
    total = sum(weight * int(digit) for weight, digit in zip(range(9, 0, -1), digits, strict=False))
    return (total % 101) % 100 == int(digits[9:])


def _is_inn(digits: str, before: str) -> bool:
    if len(digits) == 10:
        # Ten digits are an organisation's; one in eleven order numbers would pass for it.
        return bool(_INN_WORD.search(before)) and _check(digits, _INN_10)
    named = bool(_INN_WORD.search(before))
    return (named or not _ORDER.search(before)) and _check(digits, _INN_11) and _check(digits, _INN_12)


def _check(digits: str, weights: Sequence[int]) -> bool:
    total = sum(weight * int(digit) for weight, digit in zip(weights, digits, strict=False))
    return total % 11 % 10 == int(digits[len(weights)])


def _luhn(digits: str) -> bool:
    doubled = (
        int(digit) if place % 2 == 0 else (int(digit) * 2 - 9 if int(digit) > 4 else int(digit) * 2)
        for place, digit in enumerate(reversed(digits))
    )
    return sum(doubled) % 10 == 0
