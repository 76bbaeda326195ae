"""Does a text hold what a question of its kind demands: an amount of the right sort, a yes or no, steps, a cause?

A text that does may still answer another question; one that does not answers none of that kind. The thresholds were
chosen on graded passages of two help centres, Yandex Cloud and Microsoft: of 369 that answer 96% hold what is demanded,
of 6,041 that do not 79%; where an amount is asked for, 95% and 35%.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from components.judge.answer_form import CAUSES, POLARITY, STEPS
from components.judge.coverage import share_said
from components.language.amounts import figures
from components.language.normalise import fold
from components.language.question_kind import QuestionKind
from components.language.sentences import sentence_spans
from components.language.words import stems

_SAME = 0.8
"""Share of the question that a heading repeats which asks the very question."""

_NAMED = 0.5
"""Share of the question that the heading of a procedure repeats which shows that the thing can be done."""

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
            r"\bhow (?:large|big|heavy)\b|\bstorage\b"
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
_COUNT = re.compile(
    rf"\d|{_PART}|"
    r"\b(?:один|одна|одно\w*|одну|два|две|дв(?:ух|ум)|три|трех|четыр\w+|пят\w+|шест\w+|сем[ьи]|восемь|девять|"
    r"десят\w+|нескольк\w+|любо\w* (?:числ|количеств)\w+|не ограничен\w*|неограничен\w*|"
    r"one|two|three|four|five|six|seven|eight|nine|ten|several|single|unlimited|no limits?|any number)\b"
)
_DEFINITION_ASKED = re.compile(
    r"[а-я]|\bmeans?\b|\bdifference\b|^what(?:['’]s| is| are) (?:an? |the )?[\w-]+(?: [\w-]+){0,2}\W*$"
)
"""In English "What is the name of …?" is asked in the words of a definition."""

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
        r"^\s*(?:[-*•+]|\d+[.)])\s|^\s*\||\w, |\b(?:и|или|либо|только|люб\w+|все|and|or|only|any|all)\b|:\s*$",
        re.MULTILINE,
    ),
}
_ABOUT: Mapping[QuestionKind, float] = {"yesno": 0.1, "howto": 0.25, "why": 0.25, "quantity": 0.2, "what_is": 0.05}
"""Least share of the question that the sentence which holds the sign covers, read under its heading."""

_STEPS = _SIGNS["howto"]

_SOMEWHERE = re.compile(
    r"\b(?:[Вв]о?|[Нн]а|[Ии]з|[Уу]|[Дд]о|[Вв]доль|[Бб]лиз|[Ii]n|[Aa]t|[Nn]ear|[Ff]rom|[Oo]n) "
    r"(?:[а-яёa-z]+ ){0,2}[A-ZА-ЯЁ]"
)
"""A place by its name, which only its capital letter tells from other words."""

_INFORMATION_ASKED = re.compile(r"\b(?:узнать|ознаком\w+|(?:по)?читать|прочитать|подробн\w+|learn|read|find out)\b")
_SOURCE = re.compile(
    r"https?://|@|\b(?:раздел|страниц|стать|документ|инструкц|почт|сайт|портал|форм[еу]|личн\w+ кабинет|консол|обрат|"
    r"напи[шс]|менеджер|поддержк|page|section|article|documentation|site|contact|account|dashboard)\w*"
)
"""Where something is to be read or asked, which no place of another sort tells."""

_ELSEWHERE = re.compile(
    r"\b(?:подробн\w+|информаци\w+|сведени\w+|описани\w+)\b.*\b(?:раздел\w*|стать\w*|страниц\w*|документаци\w+|"
    r"инструкци\w+|справочник\w*)\b|\bсм\. |^(?:for (?:more|further|details)|(?:see|refer to|learn|read) )\b"
)
"""A sentence that only sends its reader elsewhere."""

_ENDS_IN_LINK = re.compile(r"https?://\S+\Z")

_MARK = re.compile(r"\s*\[\d+\]")
_CHOICE = re.compile(r"\b(?:или|or)\b")

_ASKING = frozenset(
    stems("такое значит означает означают понимается разница отличие отличается mean means difference есть ли почему")
)
"""Stems that say what is asked for, not what it is asked about."""


def answers_kind(kind: QuestionKind, question: str, text: str, head: str, weights: Mapping[str, float]) -> bool:
    """Whether `text` under the titles and headings in `head` holds what a question of this kind demands.

    :param weights: the weight of each content stem of the question.
    """
    text = _MARK.sub("", text)
    sentences = [text[start:end] for start, end in sentence_spans(text)]
    if kind != "where" and _only_sends_elsewhere(sentences):
        return False
    says = _sign(kind, fold(question))
    if says is None:
        return True
    weights = {stem: weight for stem, weight in weights.items() if stem not in _ASKING}
    if not weights:
        return True
    under = frozenset(stems(head))
    named = share_said(weights, under)
    if kind != "quantity" and named >= _SAME:
        return True
    if kind == "yesno" and named >= _NAMED and _STEPS.search(fold(text)):
        return True
    least = _ABOUT.get(kind, 0.0)
    return any(share_said(weights, under | set(stems(one))) >= least for one in sentences if says(one))


def _only_sends_elsewhere(sentences: Sequence[str]) -> bool:
    """Whether nothing is said but where more is: captions, which end in no full stop, say nothing by themselves."""
    said = [fold(one) for one in sentences if one.endswith((".", "!", ":", ";")) or _ENDS_IN_LINK.search(one)]
    return bool(said) and all(map(_ELSEWHERE.search, said))


def _sign(kind: QuestionKind, question: str) -> Callable[[str], bool] | None:
    """A test whether a sentence holds what a question demands; None when every text does."""
    if kind == "quantity":
        measure = next((one for one in _MEASURES if one.asked.search(question)), None)
        if measure is None:
            return lambda sentence: _COUNT.search(fold(sentence)) is not None
        return lambda sentence: bool(
            measure.said.search(fold(sentence)) or measure.units & figures(sentence).amounts.keys()
        )
    if kind == "where" and _INFORMATION_ASKED.search(question):
        return lambda sentence: _SOURCE.search(fold(sentence)) is not None
    if kind == "where":
        return lambda sentence: bool(_SOMEWHERE.search(sentence) or _SIGNS["where"].search(fold(sentence)))
    if kind == "yesno" and _CHOICE.search(question):
        # "Before or after?" is answered by neither yes nor no.
        return None
    if kind == "what_is" and not _DEFINITION_ASKED.search(question):
        return None
    compared = kind == "what_is" and _DIFFERENCE_ASKED.search(question)
    pattern = _DIFFERENCE if compared else _SIGNS.get(kind)
    return None if pattern is None else lambda sentence: pattern.search(fold(sentence)) is not None
