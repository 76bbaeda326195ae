"""The point of a message without greetings, thanks and acknowledgements, and words that ask without naming a topic."""

import re
from functools import lru_cache

from components.language.normalise import fold
from components.language.sentences import sentence_spans
from components.language.words import all_words, stems, words

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
        r"(?:and )?(?:just )?(?:one more (?:thing|question)|another question|quick question)\b",
        r"(?:и |а )?(?:ещ[её] (?:один )?вопрос)\b",
    )
)
_ACKNOWLEDGING = (
    r"(?:thanks|thank you|thx|cheers)(?: (?:a lot|so much|very much))?|great|good|perfect|cool|nice|awesome|excellent|"
    r"ok|okay|alright|all right|fine|right|i see|got it|understood|"
    r"(?:спасибо|благодарю)(?: (?:большое|огромное|вам|вас))?|спс|(?:всё |все )?(?:понятно|понял\w?|ясно)|ок|окей|"
    r"хорошо|отлично|супер|класс|здорово|ладно|прекрасно|замечательно"
)
_CONJUNCTION = r"(?:and|but|so|then|also|а|и|но|ну|тогда)"
_ACKNOWLEDGEMENT = re.compile(
    rf"(?:(?:{_ACKNOWLEDGING})\b[\s,.!;:—–-]*)*(?:{_ACKNOWLEDGING})(?:\s*[,.!;:—–-]+\s*|\s+(?=(?P<next>[\w’']+)))",
    re.IGNORECASE,
)
"""Replies to the answer before, up to the next word, which is `next` if no mark is between."""
_JOINED = re.compile(rf"{_CONJUNCTION}\b[\s,]*", re.IGNORECASE)
_REACH = 3
"""Words after an acknowledgement among which a question has its question word."""
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
_OPENING_QUESTION = frozenset("can could does do did is are will would should что".split())
"""Words that form a question only at the beginning of a clause."""

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


def opens_question(word: str) -> bool:
    """Return whether a clause that begins with a word asks something: "can", "что"."""
    return fold(word) in _OPENING_QUESTION


def asks(clause: str) -> bool:
    """Return whether a clause is a question."""
    return clause.rstrip().endswith("?") or _asks_in_words(clause)


@lru_cache(maxsize=1_000)
def to_the_point(message: str) -> str:
    """Return the message without greetings, thanks, polite openings, and acknowledgements before a question.

    "OK thanks, and how much is delivery?" becomes "how much is delivery?". Unchanged if nothing else is left.
    """
    message = _without_acknowledgement(message)
    sentences = [message[start:end] for start, end in sentence_spans(message)]
    points = [point for sentence in sentences if all_words(point := _point(sentence)) and not _THANKS.fullmatch(point)]
    return message if points == sentences or not points else " ".join(points)


def _point(sentence: str) -> str:
    point = sentence
    while match := next(filter(None, (opening.match(point) for opening in _OPENINGS)), None):
        point = point[match.end() :]
    return point if point == sentence else _without_conjunction(point)


def _without_acknowledgement(message: str) -> str:
    match = _ACKNOWLEDGEMENT.match(message)
    if match is None:
        return message
    rest = message[match.end() :]
    following = match["next"]
    # "Хорошо ли она сушит?" and "хорошо, когда тихо" go on.
    goes_on = following is None or _JOINED.fullmatch(following) or fold(following) in ASKING - {"ли", "когда", "when"}
    # "Great, three weeks of waiting, where is it?" is sarcasm, which the first word shows.
    at_once = _JOINED.match(rest) or _asks_in_words(" ".join(rest.split()[:_REACH]))
    return _without_conjunction(rest) if goes_on and at_once and asks(rest) else message


def _without_conjunction(clause: str) -> str:
    """Return a question without its conjunction: what comes before it does not go on. "And for the E20?" stays."""
    joined = _JOINED.match(clause)
    return clause[joined.end() :] if joined and _asks_in_words(clause[joined.end() :]) else clause


def _asks_in_words(clause: str) -> bool:
    folded = [fold(word.text) for word in words(clause)]
    return not _OPENING_QUESTION.isdisjoint(folded[:1]) or not ASKING.isdisjoint(folded)
