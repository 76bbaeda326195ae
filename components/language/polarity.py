"""Does a sentence say yes or no to a question, and on which condition? By its words alone; None where they do not show.

Prefers precision over recall: a wrong "yes" is worse than a text that begins without one. So a question that is itself
negated, that names an amount, or a limit ("after", "more than") that the sentence lacks is left to its reader, and so
is a sentence with two negations, or one that excepts what is asked about.
"""

import re
from dataclasses import dataclass
from typing import Literal

from components.language.normalise import fold
from components.language.words import stems

_NEGATION = re.compile(
    r"\b(?:не|нет|ни|нельзя|невозможн\w+|недоступн\w+|запрещен\w*|отсутству\w+|необязательн\w+|never|no|not|cannot|"
    r"unable|impossible|unavailable|neither|nor|without|без)\b|n['’]t\b"
)
_NEGATED_QUESTION = re.compile(r"\b(?:не|нет|нельзя(?! ли)|not|no|never)\b|n['’]t\b")
_AMOUNT = re.compile(r"\d|\b(?:дв[ае]|три|четыре|пять|десять|two|three|four|five|ten|дважды|twice|раз[ау]?)\b")
_LIMITS = re.compile(
    r"\b(?:после|до|через|больше|меньше|раньше|позже|более|менее|свыше|сразу|всегда|все|всем|любо\w+|кажд\w+|"
    r"одновременно|бесплатно|автоматически|самостоятельно|"
    r"after|before|more|less|later|earlier|within|over|under|always|all|any|every|each|free|once|same time|"
    r"automatically|multiple|several|нескольк\w+)\b"
)
"""Small words that change what is asked."""


@dataclass(frozen=True, slots=True)
class _Asked:
    """A sort of yes/no question: how it is asked and how a sentence says yes or no to it."""

    asks: re.Pattern[str]
    yes: re.Pattern[str]
    no: re.Pattern[str]


_SORTS = (
    _Asked(
        re.compile(
            r"\b(?:нужно|надо|необходимо|обязательно|требуется|нуж(?:ен|на|ны)|долж(?:ен|на|но|ны)|обязан\w*)\b|"
            r"^(?:must|should)\b|^(?:do|does) (?:\w+ ){1,3}(?:need|have) to\b|\brequired\b"
        ),
        re.compile(
            r"\b(?:нужно|надо|необходимо|обязательно|обязательн(?:ое|ый|ая)|требуется|нуж(?:ен|на|ны)|долж(?:ен|на|но|ны)|"
            r"must|needs? to|ha(?:ve|s) to|required)\b"
        ),
        re.compile(
            r"\bне (?:нужно|надо|требуется|обязательно|нуж(?:ен|на|ны)|долж(?:ен|на|но|ны)|обязан\w*)\b|"
            r"\bнеобязательн\w+|\b(?:not (?:need|required|have to)|no need|optional)\b|n['’]t (?:need|have to)\b"
        ),
    ),
    _Asked(
        re.compile(
            r"\b(?:можно|могу|можем|возможно|смогу|сможем|разрешено|разрешается|допустимо|допускается|получится|"
            r"нельзя ли|есть ли возможность)\b|^(?:can|could|may)\b|\b(?:possible|allowed)\b"
        ),
        re.compile(
            r"\b(?:можно|можете|сможете|возможн[оаы]|возможен|разрешен[оаы]?|разрешается|допускается|"
            r"(?:you|users|customers) (?:can|may)|can be|(?:is|are) (?:possible|allowed))\b"
        ),
        re.compile(
            r"\b(?:нельзя|невозможн\w+|запрещен\w*|запрещается|нет возможности|"
            r"не (?:можете|сможете|получится|допускается|разрешается|разрешен\w*|предусмотрен\w*|поддерживается)|"
            r"cannot|can not|(?:not|is no way to|isn['’]t|aren['’]t) (?:possible|allowed)|no way to|unable to|"
            r"impossible|may not)\b|\bcan['’]t\b"
        ),
    ),
    _Asked(
        re.compile(
            r"\b(?:есть|имеется|поддержива\w+|предусмотрен\w*|доступ(?:ен|на|но|ны)|предоставля\w+|бывает)\b|"
            r"^(?:is|are|does|do)\b.*\b(?:support\w*|available|includ\w+|compatible|affected|vulnerable|there)\b"
        ),
        re.compile(
            r"\b(?:есть|имеется|поддержива(?:ет|ют|ется|ются)|предусмотрен\w*|доступ(?:ен|на|но|ны)|"
            r"предоставля(?:ет|ют|ется|ются|ем)|supports?|(?:is|are) (?:\w+ )?(?:supported|available|"
            r"included|compatible|affected|vulnerable)|includes?|there (?:is|are))\b"
        ),
        re.compile(
            r"\bне (?:поддержива\w+|предусмотрен\w*|доступ(?:ен|на|но|ны)|предоставля\w+|имеется)\b|"
            r"\b(?:нет|недоступ\w+|отсутству\w+|unavailable|"
            r"not (?:\w+ )?(?:support\w*|available|includ\w+|compatible|affected|vulnerable)|there (?:is|are) no)\b|"
            r"n['’]t (?:\w+ )?(?:support\w*|available|includ\w+|compatible|affected|vulnerable)\b"
        ),
    ),
)
_VERB = re.compile(r"\b([а-я]{3,}?)((?:[еую]т|[ия]т|ат)(?:ся)?|н[оаы]?) ли\b")
_VERB_ENDINGS = r"(?:[еую]т|[ия]т|ат|[еи]м)(?:ся)?"
_PREDICATES = re.compile(
    r"\b(?:поддержива|предусмотрен|доступ|предоставля|support|availab|includ|compatib|affect|vulnerab)\w*"
)
_SAID = re.compile(r"\W*(?:да|нет|yes|no)(?=[\s,.!:;—–-])", re.IGNORECASE)
_FINAL = re.compile(
    r",?\s((?:только |лишь |only )?(?:если|при условии,? что|if|when|provided that|as long as)\s[^,;:.()]{3,90})"
    r"[.!]?\Z",
    re.IGNORECASE,
)
_INITIAL = re.compile(r"\A((?:если|if|when)\s[^,;:.()]{3,90}), (?:то |then )?(?=\S)", re.IGNORECASE)
_CONDITIONAL = re.compile(
    r"\b(?:если|когда|условии|только|лишь|кроме|исключени\w+|но|однако|иначе|пока|хотя|при этом|"
    r"if|when|only|unless|except|but|however|until|as long as|provided|although)\b"
)
_EXCEPTION = re.compile(r"\b(?:кроме|исключени\w+|unless|except)\b(?P<excepted>.*)")
_CONTRAST = re.compile(
    r"\W*(?:однако|но|кроме|исключени\w+|это (?:возможно|доступно) только|only|however|but|except)\b"
)

Answer = Literal["yes", "no"]


@dataclass(frozen=True, slots=True)
class Polarity:
    """`condition` is a clause of the sentence; `conditional` says that there is one, or a contrast, that is none."""

    answer: Answer
    condition: str = ""
    conditional: bool = False


def says_itself(sentence: str) -> bool:
    """Whether a sentence begins with yes or no."""
    return _SAID.match(sentence) is not None


def contrasts(sentence: str) -> bool:
    """Whether a sentence takes something back of the one before."""
    return _CONTRAST.match(fold(sentence)) is not None


def asks_whether_possible(question: str) -> bool:
    """Whether a question asks for a possibility, plainly enough that instructions say yes to it."""
    folded = fold(question)
    return bool(_SORTS[1].asks.search(folded)) and _plain(folded) and not _LIMITS.search(folded)


def polarity(question: str, sentence: str) -> Polarity | None:
    """What a sentence that is about the question says to it; whether it is about that is for the caller to know."""
    asks = fold(question)
    sort = next((one for one in _SORTS if one.asks.search(asks)), None) or _by_its_verb(asks)
    said = fold(sentence).strip()
    if sort is None or not _plain(asks) or said.endswith("?"):
        return None
    if not set(_LIMITS.findall(asks)) <= set(_LIMITS.findall(said)):
        return None
    if sort is _SORTS[2] and not _same_predicate(asks, said):
        return None
    if (exception := _EXCEPTION.search(said)) and set(stems(exception["excepted"])) & set(stems(asks)):
        return None
    clause = _FINAL.search(sentence) or _INITIAL.match(sentence)
    main = fold(sentence.replace(clause.group(), " ")) if clause else said
    answer = _answer(sort, main)
    if answer is None:
        return None
    if clause and not _CONDITIONAL.search(main):
        return Polarity(answer, clause[1][0].lower() + clause[1][1:])
    return Polarity(answer, conditional=_CONDITIONAL.search(said) is not None)


def _by_its_verb(asks: str) -> _Asked | None:
    """How "Шифруется ли …?" is asked and answered: by its verb, or by that verb denied."""
    if not (verb := _VERB.search(asks)):
        return None
    stem, ending = verb.groups()
    said = rf"\b{stem}{'н[оаы]?' if ending.startswith('н') else _VERB_ENDINGS}\b"
    return _Asked(_VERB, re.compile(said), re.compile(rf"\bне {said[2:]}"))


def _answer(sort: _Asked, main: str) -> Answer | None:
    negations = len(_NEGATION.findall(main))
    refusals = len(sort.no.findall(main))
    if refusals == 1:
        left = sort.no.sub(" ", main)
        return None if _NEGATION.search(left) or sort.yes.search(left) else "no"
    return "yes" if sort.yes.search(main) and not negations and not refusals else None


def _plain(question: str) -> bool:
    return not (
        _NEGATED_QUESTION.search(question) or _AMOUNT.search(question) or re.search(r"\b(?:или|or)\b", question)
    )


def _same_predicate(question: str, sentence: str) -> bool:
    asked = {match[:6] for match in _PREDICATES.findall(question)}
    return not asked or bool(asked & {match[:6] for match in _PREDICATES.findall(sentence)})
