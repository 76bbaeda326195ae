"""The point of a message: what is left of it without the words that only say that somebody asks.

In Russian and English. Those words weigh much where articles do not use them: in "I need guidance on adding a form" no
passage holds "guidance". What somebody wants to do is asked as how it is done.
"""

import re
from functools import lru_cache

from components.language.sentences import sentence_spans

_I = (
    r"(?:(?:i|we|(?:the )?(?:user|customer|client)s?)\b"
    r"(?:[ ]?['’]?(?:m|d|ve|re)\b| am| are| is| was| were| have been)?|im|ive)"
    r"(?: (?:just|also|currently|now|really|only|still))?"
)
_WISH = r"(?:would like|['’]?d like|want|wants|wish|need|needs|trying|looking)"
_KNOW = r"(?:know|find out|learn|understand|ask|inquire|enquire|check|clarify|see)"
_HELP = r"(?:help|assistance|guidance|support|advice|instructions?|information|info|details|clarification)"
_TROUBLE = r"(?:trouble|issues?|problems?|difficult(?:y|ies))"
_ABOUT = r"(?: (?:more|some more))?(?: (?:about|regarding|concerning|on|with|in|for|into))?"

_KNOW_RU = r"(?:узнать|спросить|уточнить|понять|знать|выяснить)"
_ABOUT_RU = r"(?:,? (?:о|об|про|насчет|насчёт)\b)?"
_WANT_RU = r"(?:хочу|хотим|хотел[аи]?(?: бы)?|хотелось бы)"
_INFINITIVE = r"[а-яё]{2,}(?<!ос)(?:ть|ти|чь|ться|тись)\b"

# Each is left out where a sentence begins with it, again and again.
_FRAMES = tuple(
    re.compile(rf"{frame}[\s,:;—–-]*", re.IGNORECASE)
    for frame in (
        r"(?:hi|hello|hey|good (?:morning|afternoon|evening))\b(?: (?:there|team|all|everyone))?[!.]?",
        r"(?:please|kindly)\b(?=[ ,]+\w)",
        rf"{_I} (?:inquiring|enquiring|asking|wondering|curious|interested)\b{_ABOUT}",
        rf"{_I} {_WISH} to {_KNOW}\b{_ABOUT}",
        rf"{_I} (?:need|needs|want|requesting|seeking|looking for)(?: some| any)? {_HELP}\b{_ABOUT}(?: to\b)?",
        rf"{_I} (?:having|have|had|experiencing|facing|encountering)(?: some| an?| any)? {_TROUBLE}\b{_ABOUT}",
        r"(?:can|could|would|will) (?:you|someone|anyone)(?: please)? "
        rf"(?:help|assist|tell|explain|show|guide|advise|clarify)\b(?: me| us)?{_ABOUT}",
        r"(?:help|tell|advise|show)(?: me| us)\b(?: please)?(?: (?:about|with|to))?",
        r"(?:do|does) (?:you|anyone) know\b",
        r"(?:здравствуйте|добр(?:ый день|ый вечер|ое утро)|доброго (?:дня|вечера|времени суток)|привет\w*)\b[!.]?",
        r"(?:пожалуйста,? )?(?:подскажите|скажите|объясните|расскажите|поясните|уточните|посоветуйте|помогите)\b"
        rf"(?: мне| нам)?(?:,? пожалуйста\b)?{_ABOUT_RU}",
        rf"(?:(?:я|мы) )?{_WANT_RU}(?: у вас)? {_KNOW_RU}\b{_ABOUT_RU}",
        rf"(?:меня|нас) интересует\b(?:,? (?:такой )?вопрос\b)?{_ABOUT_RU}",
        r"(?:у меня|есть)(?: такой| один)? вопрос\b(?: (?:по|о|об|про)\b)?",
        r"(?:нужна|требуется|необходима) (?:ваша )?(?:помощь|консультация)\b(?: (?:с|со|по|в)\b)?",
    )
)
_WISHES = (
    (re.compile(rf"{_I} {_WISH} to(?= \w)", re.IGNORECASE), "how to"),
    (
        re.compile(
            rf"(?:(?:я|мы) )?(?:{_WANT_RU}|пытаюсь|пытаемся|собираюсь|(?:мне|нам) (?:нужно|надо|необходимо))"
            rf"(?= {_INFINITIVE})",
            re.IGNORECASE,
        ),
        "как",
    ),
)
"""What somebody wants to do, and how it is asked."""

_EMPTY = re.compile(
    r"(?:this|that|it|the|my)?\s*(?:issue|problem|matter|question|case|это|этим|этом|этому)?\W*|"
    r"(?:thanks?|thank you|thx|cheers|(?:best |kind )?regards|(?:заранее )?(?:спасибо|благодарю)|с уважением)\b.{0,40}",
    re.IGNORECASE,
)


@lru_cache(maxsize=1_000)
def to_the_point(message: str) -> str:
    """The message without greetings, thanks and what only says that somebody asks; as it is when nothing else is left.

    "I want to know how to add a form" asks "how to add a form", and so does "I want to add a form".
    """
    sentences = [message[start:end] for start, end in sentence_spans(message)]
    points = [point for sentence in sentences if not _EMPTY.fullmatch(point := _point(sentence))]
    return message if points == sentences or not points else " ".join(points)


def _point(sentence: str) -> str:
    point = sentence
    while match := next(filter(None, (frame.match(point) for frame in _FRAMES)), None):
        point = point[match.end() :]
    for wish, asked in _WISHES:
        if match := wish.match(point):
            # Of "I want to return a bag, is it possible?" the second half asks.
            point = point[match.end() :].lstrip() if "?" in point else asked + point[match.end() :]
    return point
