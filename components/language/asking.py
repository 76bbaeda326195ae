"""The point of a message without greetings and thanks, and words that ask without naming a topic."""

import re
from functools import lru_cache

from components.language.sentences import sentence_spans
from components.language.words import all_words, stems

_OPENINGS = tuple(
    re.compile(rf"{opening}[\s,:;—–-]*", re.IGNORECASE)
    for opening in (
        r"(?:hi|hello|hey|good (?:morning|afternoon|evening))\b(?: (?:there|team|all|everyone)\b|,? bot\b)?[!.]?",
        r"(?:please|kindly)\b(?=[ ,]+\w)",
        r"(?:can|could|would|will) you(?: please)? (?:tell|explain|show|clarify)\b(?: me| us)?",
        r"(?:здравствуйте|добр(?:ый день|ый вечер|ое утро)|доброго (?:дня|вечера|времени суток)|привет\w*)\b"
        r"(?:,? бот\b)?[!.]?",
        r"(?:and |also |and also )?(?:i (?:also )?(?:want(?:ed)?|would like)|i'd (?:also )?like) to (?:ask|know)\b"
        r"(?: about| if)?",
        r"(?:и |а )?(?:ещ[её] )?(?:хо(?:чу|тел|тела|тим|тели)(?: бы)? (?:спросить|узнать|уточнить)|"
        r"(?:спросить|узнать|уточнить) хотел\w?)\b",
        r"(?:пожалуйста,? )?(?:подскажите|скажите|объясните|расскажите|поясните|уточните|посоветуйте|помогите)\b"
        r"(?: мне| нам)?(?:,? пожалуйста\b)?",
    )
)
_THANKS = re.compile(
    r"(?:thanks?|thank you|thx|cheers|(?:best |kind )?regards|(?:заранее )?(?:спасибо|благодарю)|с уважением)\b.{0,40}",
    re.IGNORECASE,
)

ASKING = frozenset(
    """
    как сколько скольки где куда откуда когда почему зачем какой какая какое какие какого каком какую каких каким чем
    кто кому кого чей можно ли надо how what when where who which why whats
    """.split()
)
"""Words that mark a question, wherever they appear."""

GENERIC = frozenset(
    stems(
        """
        делать сделать стоить стоит ждать длиться длится занимать занимает работать работает получить взять узнать найти
        находиться находится значит означает нужно придётся часто долго быстро много дорого подробнее примерно именно
        цена стоимость срок время день дней месяц месяцев год лет час часов минута раз прошло уже хочу могу может
        go get take takes took cost costs last lasts long much many often soon back come comes work works need want know
        find time day days month months year years hour hours mean means tell more next again happen happens make
        located situated open opens free бесплатно бесплатный платно платный
        """
    )
)
"""Stems of words that ask without naming a topic."""


@lru_cache(maxsize=1_000)
def to_the_point(message: str) -> str:
    """Return the message without greetings, thanks and polite openings; unchanged if nothing else is left."""
    sentences = [message[start:end] for start, end in sentence_spans(message)]
    points = [point for sentence in sentences if all_words(point := _point(sentence)) and not _THANKS.fullmatch(point)]
    return message if points == sentences or not points else " ".join(points)


def _point(sentence: str) -> str:
    point = sentence
    while match := next(filter(None, (opening.match(point) for opening in _OPENINGS)), None):
        point = point[match.end() :]
    return point
