"""Identifiers in text: codes and numbers, which must match exactly."""

import re
from collections.abc import Container

from components.language.normalise import CYRILLIC_LOOKALIKES

_LETTERS = "A-ZА-ЯЁ"
# Behind a word and a hyphen a code is written in one piece: `SM-G990` holds one, "3rd-and-9" none.
_CODE = re.compile(
    rf"(?<![{_LETTERS}\d_])(?:(?<![{_LETTERS}\d_]-)|(?![{_LETTERS}]+-))"
    rf"([{_LETTERS}]{{1,8}})(-?)(\d[\d]*(?:[-.]\d+)*)([A-Z]{{0,2}})(?![{_LETTERS}\d_])",
    re.IGNORECASE,
)
# "Ошибка Е 20" and "error 404": after one of these words a bare number, or a letter apart from its number, is a code.
_ANNOUNCED = re.compile(
    r"\b(?:ошибк\w{0,3}|код\w{0,3}|error|code|fault|alarm|errno)\s*(?:№|#|:|code|код\w{0,3})?\s*[\"«']?"
    rf"(?:([{_LETTERS}]{{1,3}})\s+)?(\d{{1,6}})(?![\d.,%]*[%\d])(?!\w)",
    re.IGNORECASE,
)
# Addresses, paths and file names contain codes without meaning: "www-01.ibm.com". Each match starts at the start of a
# word, so that a word of a thousand letters is read once.
_ADDRESS = re.compile(
    r"\b(?:[a-z]{2,}://|www[.\d-])\S+|(?:(?<![\w-])[\w-]*+)?[\\/][\w.-]++[\\/]\S*|(?<!\S)\S*[\w-]\.(?:[a-z]{2,4})\b(?![.-]?\w)",
    re.IGNORECASE | re.ASCII,
)
# Of software: "v7", "R2", "FP13" for a fix pack.
_VERSION = re.compile(r"(?:V|VER|R|REL|REV|RC|SP|FP|CF|HF|IF|IFIX)\d[\d.-]*\Z")
# A code opens the line that explains it: "E20 — water does not drain", "Error AMQ8075: Authorization failed".
_DEFINED = re.compile(
    r"^[\s#>*_|-]{0,8}(?i:(?:ошибка|код|error|code|fault)\s+(?:ошибки\s+|code\s+)?)?"
    rf"([{_LETTERS}]{{1,8}}[- ]?\d[\d.-]*[{_LETTERS}]{{0,2}})[*_]{{0,2}}\s*(?:[—–:](?:\s|$)|-\s)",
    re.MULTILINE,
)
_ANNOUNCED_CODE = re.compile(
    rf"\b(?:ошибк\w{{0,3}}|код\w{{0,3}}|error|code|fault|alarm|errno)\s*(?:№|#|:|code|код\w{{0,3}}|ошибк\w{{0,3}})?\s*[\"«']?"
    rf"([{_LETTERS}]{{1,8}}[- ]?\d[\d.-]*[{_LETTERS}]{{0,2}})(?![{_LETTERS}\d_])",
    re.IGNORECASE,
)
_SHAPE = re.compile(r"([A-Z]*)-?(\d[\d.-]*)([A-Z]*)\Z")
_LOOKALIKE_ONLY = re.compile(r"[A-Za-zАВЕКМНОРСТУХаеорсухк]+\Z")
_NUMBER = re.compile(r"(?<![\w.,])\d{1,3}(?:[   ]\d{3})+(?:[.,]\d+)?(?![\d])|\d+(?:[.,:]\d+)*")
# "2,900": thousands in English, a decimal fraction in Russian.
_COMMA_THOUSANDS = re.compile(r"[1-9]\d{0,2}(?:,\d{3})+(?:\.\d+)?\Z")
_LATIN = re.compile(r"[A-Za-z]")
_CYRILLIC = re.compile(r"[А-Яа-яЁё]")


def codes(text: str) -> tuple[str, ...]:
    """Return the identifiers in `text` in canonical form (`E20` for `е20`, `Е-20`, `ошибка E 20`), in order, each once.

    An identifier is a run of Latin letters (or Cyrillic ones drawn like them) followed by digits, or a number that a
    word such as "код" or "error" announces. Versions, addresses and file names do not count.
    """
    text = _ADDRESS.sub(" ", text)
    found: dict[str, None] = {}
    for match in _CODE.finditer(text):
        letters, dash, digits, tail = match.groups()
        if not _LOOKALIKE_ONLY.match(letters):
            continue
        letters = letters.translate(CYRILLIC_LOOKALIKES).upper()
        # A hyphen matters in CVE-2016-2961 and not in E-20: short prefixes are panel codes.
        code = f"{letters}{dash if len(letters) > 2 else ''}{digits}{tail.upper()}"
        if not _VERSION.match(code):
            found[code] = None
    for match in _ANNOUNCED.finditer(text):
        letters, digits = match.groups()
        if letters is None:
            found[digits] = None
        elif _LOOKALIKE_ONLY.match(letters):
            found[letters.translate(CYRILLIC_LOOKALIKES).upper() + digits] = None
    return tuple(found)


def as_typed(code: str, text: str) -> str:
    """Return how `text` spells a code: `KB-999` for `KB999`; the code itself if it is not found."""
    spelt = (match[0] for match in _CODE.finditer(text))
    return next((one for one in spelt if codes(one) == (code,)), code)


def shape(code: str) -> str:
    """Return the structure of a code: number of letters, digits and last letters, such as "1.2.0" for E20."""
    found = _SHAPE.match(code)
    return ".".join(str(len(part)) for part in found.groups()) if found else ""


def shapes(text: str) -> frozenset[str]:
    """Return the shapes of the codes that `text` explains or announces: "E20 — water does not drain", "код E20"."""
    text = _ADDRESS.sub(" ", text)
    written = (match[1] for pattern in (_DEFINED, _ANNOUNCED_CODE) for match in pattern.finditer(text))
    # Capitals as written: "eth0: up" explains no code.
    return frozenset(shape(code) for one in written if one[0].isupper() for code in codes(one))


def codes_asked(question: str, known: Container[str]) -> tuple[str, ...]:
    """Return the codes that a question asks about: announced as such ("ошибка E401"), or built like a known one.

    A digit more or less makes no difference: where E20 is a code, E401 is taken for one too.

    :param known: the shapes of the knowledge base's codes.
    """
    announced = {code for match in _ANNOUNCED_CODE.finditer(_ADDRESS.sub(" ", question)) for code in codes(match[1])}
    return tuple(code for code in codes(question) if code.isdigit() or code in announced or _is_like(code, known))


def _is_like(code: str, known: Container[str]) -> bool:
    letters, digits, tail = shape(code).split(".")
    return any(f"{letters}.{int(digits) + more}.{tail}" in known for more in (-1, 0, 1))


def numbers(text: str, within: str = "") -> tuple[str, ...]:
    """Return the numbers in `text` in order, canonical: no thousands separators, a decimal point, no leading zeros.

    :param text: what to read.
    :param within: what `text` was taken from or is compared with. Its letters, or else those of `text`, say whether
        "2,900" is 2900, as in English, or 2.900.
    """
    found = [match.group() for match in _NUMBER.finditer(text)]
    comma_groups = any(map(_COMMA_THOUSANDS.match, found)) and _is_latin(within or text)
    return tuple(_canonical(number, comma_groups=comma_groups) for number in found)


def _is_latin(text: str) -> bool:
    return len(_LATIN.findall(text)) > len(_CYRILLIC.findall(text))


def _canonical(number: str, *, comma_groups: bool) -> str:
    if comma_groups and _COMMA_THOUSANDS.match(number):
        number = number.replace(",", "")
    number = re.sub(r"[   ]", "", number).replace(",", ".")
    return number.lstrip("0") or "0" if number.isdigit() else number
