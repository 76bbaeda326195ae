"""What a passage must look like to answer a kind of question: steps, an amount, a place, a cause, a definition."""

import re
from collections.abc import Mapping

from components.language.normalise import fold
from components.language.question_kind import QuestionKind

NEUTRAL = 0.5
"""Of kinds whose answers have no outward form."""

STEPS = "click|select|choose|open|enter|go to|run|tap|press|create|install"
CAUSES = (
    r"потому что|так как|поскольку|причин\w+|из-за|если|решени\w+|because|due to|resolution|workaround|check|ensure"
)
POLARITY = (
    r"можно|можете|нельзя|невозможно|может|могут|нужно|необходимо|требуется|обязательн\w+|поддерживает\w*|доступн\w+|"
    r"недоступн\w+|разрешен\w*|запрещен\w*|должен|должны|только|"
    r"can|cannot|can't|may|must|should|not|supports?|supported|available|required"
)
"""Words of answers, as alternatives of a pattern; `components/judge/demands.py` looks for these and more."""

_NUMBERED = re.compile(r"(?m)^\s*\d+[.)]\s+\S")
_ITEM = re.compile(r"(?m)^\s*(?:\d+[.)]|[-*•])\s+\S")
_AMOUNT = re.compile(r"\d+(?:[.,]\d+)?\s*(?:[%₽$€]|[а-яa-z]{2,})|\d:\d\d|\b(?:один|два|три|неограничен\w*|unlimited)\b")
_DEFINITION = re.compile(
    r"^[^.\n]{2,80}\s[—–-]\s|\bэто\b|\bпредставляет собой\b|\bназыва\w+|\bявляется\b|\bпозволяет\b|\bпредназначен\w*|"
    r"\bis an?\b|\brefers to\b"
)
_DEFINED_WITHIN = 220
_IS_DEFINED = re.compile(r"\s[—–-]\s(?:это|совокупност\w+|сервис\w*)\b|\bпредставляет собой\b|\bis an?\b|\brefers to\b")
_SIGNS: Mapping[QuestionKind, re.Pattern[str]] = {
    "howto": re.compile(
        r"\b(?:нажмите|выберите|перейдите|откройте|введите|укажите|выполните|создайте|установите|запустите|убедитесь|"
        r"добавьте|удалите|включите|отключите|задайте|настройте|скопируйте|подключите|обратитесь|"
        rf"{STEPS})\b"
    ),
    "where": re.compile(
        r"\s[>→➔/]\s|\bраздел\w*|\bменю\b|\bвкладк\w*|\bна странице\b|\bпо (?:ссылке|адресу)\b|https?://|"
        r"\b(?:menu|section|tab|page)\b"
    ),
    "why": re.compile(rf"\b(?:{CAUSES}|ошибк\w+|проверьте|убедитесь|связано|cause[sd]?|error)\b"),
    "yesno": re.compile(rf"\b(?:{POLARITY})\b"),
}


def is_definition(sentence: str) -> bool:
    """Whether a sentence says what a thing is, and nothing of what to do."""
    folded = fold(sentence)
    return _IS_DEFINED.search(folded) is not None and not _SIGNS["howto"].search(folded)


def form_share(kind: QuestionKind, text: str) -> float:
    """How far `text` has the form of an answer to that kind of question, 0..1."""
    if kind == "list":
        return float(len(_ITEM.findall(text)) > 1)
    folded = fold(text)
    if kind == "quantity":
        return float(_AMOUNT.search(folded) is not None)
    if kind == "what_is":
        return float(_DEFINITION.search(folded[:_DEFINED_WITHIN]) is not None)
    signs = _SIGNS.get(kind)
    if signs is None:
        return NEUTRAL
    share = min(1.0, len(signs.findall(folded)) / 2)
    return (share + (len(_NUMBERED.findall(text)) > 1)) / 2 if kind == "howto" else share
