"""The point of a message: the message without greetings, thanks and polite openings, in Russian and English."""

import re
from functools import lru_cache

from components.language.sentences import sentence_spans

_OPENINGS = tuple(
    re.compile(rf"{opening}[\s,:;—–-]*", re.IGNORECASE)
    for opening in (
        r"(?:hi|hello|hey|good (?:morning|afternoon|evening))\b(?: (?:there|team|all|everyone))?[!.]?",
        r"(?:please|kindly)\b(?=[ ,]+\w)",
        r"(?:can|could|would|will) you(?: please)? (?:tell|explain|show|clarify)\b(?: me| us)?",
        r"(?:здравствуйте|добр(?:ый день|ый вечер|ое утро)|доброго (?:дня|вечера|времени суток)|привет\w*)\b[!.]?",
        r"(?:пожалуйста,? )?(?:подскажите|скажите|объясните|расскажите|поясните|уточните|посоветуйте|помогите)\b"
        r"(?: мне| нам)?(?:,? пожалуйста\b)?",
    )
)
_THANKS = re.compile(
    r"(?:thanks?|thank you|thx|cheers|(?:best |kind )?regards|(?:заранее )?(?:спасибо|благодарю)|с уважением)\b.{0,40}",
    re.IGNORECASE,
)


@lru_cache(maxsize=1_000)
def to_the_point(message: str) -> str:
    """Return the message without greetings, thanks and polite openings; unchanged if nothing else is left."""
    sentences = [message[start:end] for start, end in sentence_spans(message)]
    points = [point for sentence in sentences if (point := _point(sentence)) and not _THANKS.fullmatch(point)]
    return message if points == sentences or not points else " ".join(points)


def _point(sentence: str) -> str:
    point = sentence
    while match := next(filter(None, (opening.match(point) for opening in _OPENINGS)), None):
        point = point[match.end() :]
    return point
