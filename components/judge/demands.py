"""What a question of its kind demands of the sentence that answers it: an amount of the right sort, a yes or no, steps,
a cause, what a thing is.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import takewhile

from components.judge.answer_form import CAUSES, POLARITY, STEPS
from components.judge.coverage import share_said
from components.language.amounts import figures
from components.language.normalise import fold
from components.language.question_kind import QuestionKind
from components.language.relatives import families, relatives
from components.language.words import stems, words

_SUBJECT = 0.5
"""Share of the question that a sentence itself covers which says what the thing is, or that it has no limit."""

_ITSELF = 0.7
"""The same of one that says yes in the words of the question."""

_COUNTED_WORDS = 2
"""Words that may name what is counted: "сколько новых складов"."""

_NEAR = 4
"""Words between a number and what it counts."""

_BARE = 3
"""Words of a sentence that is nothing but an amount: "До 30 минут"."""

_IMPERATIVE = r"\w{3,}(?:йте|ите|ьте)(?:сь)?"


@dataclass(frozen=True, slots=True)
class _Measure:
    """A kind of measure: how a question asks for it, and which units and words express it in a text."""

    asked: re.Pattern[str]
    units: frozenset[str]
    said: re.Pattern[str]


_PART = r"\b(?:половин\w+|трет[ьи]\w*|четверт\w+|большинств\w*|half|thirds?|quarters?|majority|most)\b"
_MEASURES = (
    _Measure(
        re.compile(
            r"\bвремени?\b|\bсрок\w*|\b(?:долго|часто|скоро|быстро)\b|\bинтервал\w*|\bпериод\w*|\bзадержк\w+|"
            r"\b(?:дней|часов|минут|секунд|суток|недель|месяцев|лет)\b|\bhow (?:long|often|soon|fast|quickly)\b|"
            r"\bduration\b|\b(?:days|hours|minutes|seconds|weeks|months|years)\b"
        ),
        frozenset({"day", "hour", "minute", "second", "week", "month", "year"}),
        re.compile(
            r"\b(?:сразу|мгновенно|немедленно|бессрочн\w+|неограничен\w+|постоянно|регулярно|"
            r"еж(?:едневн|ечасн|енедельн|емесячн|еминутн|егодн|еквартальн)\w+|"
            r"пол(?:года|месяца|недели|дня|часа|минуты)|полугод\w+|квартал\w*|"
            r"immediately|instantly|indefinitely|daily|hourly|weekly|monthly|quarterly|annually)\b|"
            r"\b(?:сут\w+|дн[яей]+|день|час\w*|минут\w*|секунд\w*|недел\w+|месяц\w*|год\w*)\b|"
            r"\b(?:days?|hours?|minutes?|seconds?|weeks?|months?|years?)\b|\d ?(?:мс|с|ч|мин|сек|ms|s|h|min)\b|"
            r"\b\d{1,2}:\d\d\b"
        ),
    ),
    _Measure(
        re.compile(
            r"\bсто(?:ит|ят|ить)\b|\bстоимост\w+|\bцен[аыуе]\b|\bтариф\w*|\bплат[аыуе]\b|\bплатить\b|\bоплат\w+|"
            r"\bденег\b|\bсумм\w+|\bкомисси\w+|\bрубл\w+|\bcosts?\b|\bprices?\b|\bfees?\b|\bpay\b|\bcharged?\b|"
            r"\bhow much (?:is|does|do|are)\b"
        ),
        frozenset({"rouble", "dollar", "euro", "percent"}),
        re.compile(
            r"\bбесплатн\w*|\bбез (?:\w+ )?(?:оплаты|платы|комисси\w+)|\bплатн\w+|\bтариф\w*|\bвзима\w+|\bоплачива\w+|"
            r"\bцен[аыуе]\b|\bстоимост\w+|\b(?:руб|usd|eur)\b|[₽$€]|\bfree\b|\bpric\w+|\bcosts?\b|\bcharge\w*|\bbilled\b|"
            r"\bno (?:extra |additional )?fees?\b"
        ),
    ),
    _Measure(
        re.compile(r"\bпроцент\w*|\bдол[яи]\b|\bsla\b|\bpercent\w*"), frozenset({"percent"}), re.compile(rf"%|{_PART}")
    ),
    _Measure(
        re.compile(r"\bскорост\w+|\bпропускн\w+|\bпроизводительност\w+|\bspeed\b|\bbandwidth\b|\biops\b"),
        frozenset({"percent"}),
        re.compile(
            r"\d\s*(?:[кмгkmg]i?(?:бит|байт|b|б|bit|bps)|iops|оборот|об/мин|км/ч|rpm|кадр|запрос|rps)|\bзависит\b|\bsla\b|"
            r"\bdepends\b"
        ),
    ),
    _Measure(
        re.compile(
            r"\bразмер\w*|\bоб[ъь]ем\w*|\bпамят\w+|\bместа\b|\bемкост\w+|\bвес(?:ит|а|у)?\b|\bsize\b|\bcapacity\b|"
            r"\bhow (?:large|big|heavy)\b|\bhow much (?:\w+ )?storage\b|\bstorage (?:size|space|limit)\b"
        ),
        frozenset({"percent", "rouble", "dollar", "euro"}),
        re.compile(
            r"\d\s*(?:[кмгтkmgtp]i?[бb]\b|байт|килобайт|мегабайт|гигабайт|терабайт|символ|знак|пиксел|строк|запис|"
            r"bytes?|characters|pixels|rows|px|[x×х*]\s?\d|(?:см|мм|км|кг|м|г|л|га|kg|cm|mm|km)\b|core|ядер|ядр|vcpu|"
            r"млн|млрд|тыс|миллион|миллиард|million|billion|метр|акр|гектар|feet|foot|miles?|acres?)|"
            r"\b(?:не ограничен\w*|неограничен\w*|unlimited)\b"
        ),
    ),
)
_COUNTED = re.compile(r"\b(?:сколько|скольк\w+|какое (?:\w+ )?(?:количество|число)|how many) (?:of (?:the )?|из )?(.*)")
_NUMBER = re.compile(
    r"\d+(?:[.,]\d+)*|два|две|дв(?:ух|ум)|три|трех|четыр\w+|пят\w+|шест\w+|сем[ьи]|восемь|девять|десят\w+|"
    r"сот\w+|сотн\w+|тысяч\w*|миллион\w*|"
    r"two|three|four|five|six|seven|eight|nine|ten|twelve|twenty|hundreds?|thousands?|dozens?|millions?"
)
_NO_NUMBER = re.compile(
    rf"{_PART}|\b(?:(?:только|лишь|всего|ровно|не (?:более|больше)|максимум|по) од(?:ин|н\w+)|"
    r"(?:only|just|at most) one|a single)\b"
)
"""Said of how many without a number; "one" alone may be any one."""

_UNLIMITED = re.compile(
    r"\b(?:любо\w* (?:числ|количеств)\w+|не ограничен\w*|неограничен\w*|од(?:ин|н\w+) или (?:несколько|более)|"
    r"unlimited|no limits?|any number|one or (?:more|several))\b"
)
_VERSION_ASKED = re.compile(r"\bкак(?:ую|ая|ой) верси|\b(?:what|which) version")
_VERSION = re.compile(r"\d")
_WHEN_ASKED = re.compile(r"^(?:а |и )?(?:когда|when)\b")
_WHEN = re.compile(
    r"\d|\b(?:когда|если|при|после|до|перед|пока|во время|в течение|через|сразу|кажд\w+|еже\w+|"
    r"when|if|after|before|until|once|during|within|every|daily|weekly|monthly|immediately)\b"
)
"""A time or a condition."""

_DEFINITION_ASKED = re.compile(
    r"[а-я]|\bmeans?\b|\bdifference\b|^what(?:['’]s| is| are) (?:an? |the )?[\w-]+(?: [\w-]+){0,2}\W*$"
)
"""In English "What is the name of …?" is asked in the words of a definition."""

_THING_ASKED = re.compile(r"\b(?:что|кто) (?:так(?:ое|ой|ая|ие)|представля\w+|из себя)\b|^what(?:['’]s| is| are)\b")
"""What a thing is, unlike what a word or an error means."""

_TELLS_WHAT = re.compile(
    r"\s[—–-]\s|\b(?:это|представля\w+|называ\w+|явля\w+|позволя\w+|предназнач\w+|служ\w+|означа\w+|понима\w+|"
    r"обеспечива\w+|предоставля\w+|is|are|refers to|means|allows?|lets|enables?|provides?|helps?)\b"
)
_DIFFERENCE_ASKED = re.compile(r"разниц|отлич|различ|differen")
_DIFFERENCE = re.compile(
    r"\b(?:отлич\w+|различ\w+|разниц\w+|в то время|тогда как|а не|differ\w*|unlike|whereas|while|than|by contrast)\b"
)
_SIGNS: Mapping[QuestionKind, re.Pattern[str]] = {
    "yesno": re.compile(
        rf"\b(?:{POLARITY}|можем|сможете|невозможн\w+|возможн\w+|требу\w+|достаточно|поддержив\w+|разреш\w+|запрещ\w+|"
        r"допуст\w+|недопуст\w+|должн[оы]|должна|предусмотр\w+|рекоменду\w+|позволя\w+|будет|будут|не|нет|есть|всегда|"
        r"никогда|no|unavailable|allow(?:s|ed)?|need|never|always|only|possible|impossible|recommended)\b|n['’]t\b"
    ),
    "howto": re.compile(
        rf"\b{_IMPERATIVE}\b|"
        rf"\b(?:{STEPS}|use|add|set|navigate|log in|sign in|"
        r"type|remove|delete|enable|disable|follow|contact|check|make sure|download|change|update)\b|"
        r"\b(?:можно|нужно|необходимо(?:ст\w+)?|следует|достаточно|можете|сможете|требуется|долж(?:ен|на|но|ны)|"
        r"you (?:can|need|must))\b|```|^\s*\d+[.)]\s"
    ),
    "why": re.compile(
        rf"\b(?:{CAUSES}|ввиду|вследствие|по умолчанию|когда|чтобы|для того|"
        r"означает|связан\w*|возника\w+|невозможн\w+|нельзя|может|могут|необходимо|нужно|требу\w+|"
        r"долж(?:ен|на|но|ны)|только|исправ\w+|устран\w+|since|caus\w+|reasons?|if|when|"
        r"means|must|only|fix\w*|resolv\w+|not|to)\b|"
        rf"\b{_IMPERATIVE}\b"
    ),
    "where": re.compile(
        r"\s[>→➔/]\s|https?://|`[^`]*[/\\][^`]*`|\b(?:раздел|меню|вкладк|страниц|ссылк|адрес|папк|каталог|консол|"
        r"интерфейс|панел|сервис|пол[ея]|кнопк|настройк|окн|файл|хранилищ|кабинет|приложени|зон|центр|офис|город|"
        r"склад|форм|в формате|пример|статья|статье|график|инструкц|документаци|репозитори|по кодам?)\w*|"
        r"\b(?:menu|section|tab|page|link|folder|directory|console|panel|field|button|settings|window|file|dashboard|"
        r"account|portal|site|region|example|article|form)s?\b|[«*\"]{1,2}[^«»*\"]{2,60}[»*\"]{1,2}"
    ),
    "what_is": re.compile(
        r"\s[—–-]\s|\b(?:это|представляет|называ\w+|явля\w+|позволя\w+|предназнач\w+|служ\w+|нуж\w+|использу\w+|"
        r"означа\w+|обеспечива\w+|предоставля\w+|применя\w+|отвеча\w+|содерж\w+|показыва\w+|состо\w+|отлич\w+|"
        r"включа\w+|возника\w+|дает|поддержива\w+|определя\w+|помога\w+|контролир\w+|управля\w+|созда\w+|"
        r"is|are|refers to|means|allows?|lets|enables?|provides?|used|defines?|contains?|consists?|helps?)\b"
    ),
    "list": re.compile(
        r"^\s*(?:[-*•+]|\d+[.)])\s|\|.*\||\b(?:только|все|люб\w+|включа\w+|состо[ия]\w+|заключа\w+|например|only|all|any|"
        r"includ\w+|consists? of|such as)\b|"
        r"\w, (?!(?:как|что|котор\w+|если|когда|где|но|а|поэтому|which|that|but|so|because|if|when|where)\b)"
        r"[^,.;:]{2,50}(?:,| и| или| либо| а также| and| or) \w",
        re.MULTILINE,
    ),
}
_SOMEWHERE = re.compile(
    r"\b(?:[Вв]о?|[Нн]а|[Ии]з|[Уу]|[Дд]о|[Вв]доль|[Бб]лиз|[Ii]n|[Aa]t|[Nn]ear|[Ff]rom|[Oo]n) "
    r"(?:[а-яёa-z]+ ){0,2}[A-ZА-ЯЁ]"
)
"""A place by its name, which only its capital letter tells from other words."""

_INFORMATION_ASKED = re.compile(
    r"\b(?:узнать|ознаком\w+|(?:по)?читать|прочитать|подробн\w+|связаться|обратиться|дозвониться|"
    r"написать|learn|read|find out|contact|reach|get in touch)\b"
)
_SOURCE = re.compile(
    r"https?://|@|\+?\d[\d ()-]{5,}\d|\b(?:раздел|страниц|стать|документ|инструкц|почт|сайт|портал|форм[еу]|"
    r"личн\w+ кабинет|консол|обрат|напи[шс]|менеджер|поддержк|телефон|звон|чат|бот|"
    r"page|section|article|documentation|site|contact|account|dashboard|phone|call|chat)\w*"
)
"""Where something is to be read or asked, which no place of another sort tells."""

_MARKER = re.compile(r"^\s*\d+[.)]\s")
_VERB_ASKED = re.compile(r"(\w+) ли\b")
_CHOICE = re.compile(r"\b(?:или|or)\b")

_ASKING = frozenset(
    stems("такое значит означает означают понимается разница отличие отличается mean means difference есть ли почему")
)
"""Stems that say what is asked for, not what it is asked about."""


def demand(kind: QuestionKind, question: str, weights: Mapping[str, float]) -> Callable[[str], bool] | None:
    """A test whether a sentence holds what a question of this kind demands; None when every text does.

    :param weights: the weight of each content stem of the question.
    """
    question = fold(question)
    if kind == "quantity":
        measure = next((one for one in _MEASURES if one.asked.search(question)), None)
        if measure is None:
            return _counts(question, weights)
        return lambda sentence: bool(
            measure.said.search(fold(sentence)) or measure.units & figures(sentence).amounts.keys()
        )
    if kind == "where" and _INFORMATION_ASKED.search(question):
        return lambda sentence: _SOURCE.search(fold(sentence)) is not None
    if kind == "where":
        return lambda sentence: bool(_SOMEWHERE.search(sentence) or _SIGNS["where"].search(fold(sentence)))
    if kind == "yesno":
        # "Before or after?" is answered by neither yes nor no.
        return None if _CHOICE.search(question) else _decides(question, weights)
    if kind == "which" and _VERSION_ASKED.search(question):
        return lambda sentence: _VERSION.search(sentence) is not None
    if kind == "other" and _WHEN_ASKED.search(question):
        return lambda sentence: _WHEN.search(fold(sentence)) is not None
    if kind == "what_is" and not _DEFINITION_ASKED.search(question):
        return None
    if kind == "what_is" and _THING_ASKED.search(question):
        return _tells_what(asked_about(weights))
    compared = kind == "what_is" and _DIFFERENCE_ASKED.search(question)
    pattern = _DIFFERENCE if compared else _SIGNS.get(kind)
    return None if pattern is None else lambda sentence: pattern.search(fold(sentence)) is not None


def shows_steps(text: str) -> bool:
    """Whether a text says what to do."""
    return _SIGNS["howto"].search(fold(text)) is not None


def asked_about(weights: Mapping[str, float]) -> Mapping[str, float]:
    """The weights of what a question is about, without the words that only say what is asked of it."""
    return {stem: weight for stem, weight in weights.items() if stem not in _ASKING}


def _counts(question: str, weights: Mapping[str, float]) -> Callable[[str], bool]:
    """A test whether a sentence says how many: a number next to what is counted or by itself, or that there is no
    limit, which must itself name what it is about: what is kept without a limit may be asked for with one.
    """
    asked = _COUNTED.search(question)
    named = takewhile(lambda word: not word.stop, words(asked.group(1))) if asked else ()
    counted = [word.stem for word in named][:_COUNTED_WORDS]
    kin = families(counted)

    def says(sentence: str) -> bool:
        folded = fold(sentence)
        if _NO_NUMBER.search(folded):
            return True
        if _UNLIMITED.search(folded):
            return share_said(weights, frozenset(stems(sentence))) >= _SUBJECT
        said = words(_MARKER.sub("", folded))
        numbers = [at for at, word in enumerate(said) if _NUMBER.fullmatch(word.text)]
        if not counted or not numbers:
            return bool(numbers)
        if len(said) <= _BARE and all(word.stop for word in said[: numbers[0]]):
            return True
        things = [at for at, word in enumerate(said) if word.stem in counted or relatives(word.stem, kin)]
        return any(abs(number - thing) <= _NEAR for number in numbers for thing in things)

    return says


def _tells_what(weights: Mapping[str, float]) -> Callable[[str], bool]:
    """A test whether a sentence about the thing says what it is."""
    return lambda sentence: (
        _TELLS_WHAT.search(fold(sentence)) is not None and share_said(weights, frozenset(stems(sentence))) >= _SUBJECT
    )


def _decides(question: str, weights: Mapping[str, float]) -> Callable[[str], bool]:
    """A test whether a sentence may say yes or no: by a word that does, or by saying the very thing that is asked."""
    asked = frozenset(stem for verb in _VERB_ASKED.findall(question) for stem in stems(verb))

    def says(sentence: str) -> bool:
        if _SIGNS["yesno"].search(fold(sentence)):
            return True
        said = frozenset(stems(sentence))
        return not asked.isdisjoint(said) and share_said(weights, said) >= _ITSELF

    return says
