"""What a question asks for: steps, a yes or no, an amount, a place, a definition, a cause, a choice, a list."""

import re
from functools import lru_cache
from typing import Literal, TypeAlias

from components.language.normalise import fold
from components.language.questions import asked

QuestionKind: TypeAlias = Literal["howto", "yesno", "quantity", "where", "what_is", "why", "which", "list", "other"]

_MEASURED = (
    r"(?:врем\w+|срок\w*|объем\w*|размер\w*|лимит\w*|стоимост\w+|цен\w+|скорост\w+|сумм\w+|длин\w+|вес\w*|процент\w*|"
    r"дол[яи]|емкост\w+|мощност\w+|частот\w+|интервал\w*|период\w*|задержк\w+|тариф\w*|максим\w+|минимал\w+|sla)"
)
_MEASURED_EN = r"(?:size|limit|price|cost|length|rate|number|amount|maximum|minimum|duration|capacity|speed|fee)s?"
_INFINITIVE = r"\w+(?<!ос)(?:ть|ти|чь|ться|тись)\b"
_STEPS_VERB = r"(?:(?:я|мне|нам|мы) )?(?:могу |можем |можно |нужно |надо |следует )?"

# The first rule that matches decides, so that the more specific kinds come first.
_PATTERNS: tuple[tuple[QuestionKind, str], ...] = (
    ("other", r"^почему (?:стоит|не )(?:использовать|\w+ (?:копия|копи))|^why (?:should|would|use)\b"),
    (
        "why",
        r"\bпочему\b|\bпо какой причине\b|\bиз-за чего\b|\bотчего\b|"
        r"\bв чем (?:может быть )?(?:причина|проблема|дело)\b",
    ),
    ("why", r"\bчто (?:мне |нам )?(?:теперь )?(?:делать|предпринять)\b|\bчто (?:можно|нужно) сделать, если\b"),
    (
        "why",
        r"\bкак (?:это |его |ее |их |такую )?(?:исправить|устранить|решить|избавиться|починить|"
        r"быть)\b|\bчто не так\b",
    ),
    ("why", r"^(?:не (?:работает|удается|получается|открывается|приходит|могу|запускается|включается)|ошибка)\b"),
    ("why", r"\bwhy\b|\bwhat (?:causes|caused|is wrong)\b|\bhow (?:do i|can i|to) (?:fix|resolve|solve)\b"),
    ("which", r"^как (?:\w+ )?(?:называ|зовут|звали)\w*"),
    (
        "where",
        r"^как (?:\w+ ){0,2}?(?:связаться|обратиться|дозвониться|написать вам)\b|"
        r"^how (?:do|can|could|should) i (?:contact|reach|get in touch)\b",
    ),
    (
        "howto",
        rf"^как (?!буд|част|долг|быстро (?:я|мо)){_STEPS_VERB}(?:[^?.]+ )??{_INFINITIVE}|"
        rf"\b(?:как|каким образом) {_STEPS_VERB}{_INFINITIVE}",
    ),
    (
        "quantity",
        r"\bсколько\b|\bскольк\w+|\bкакое (?:\w+ )?(?:количество|число)\b|"
        r"\bкак(?: \w+)? (?:долго|часто|быстро|много)\b",
    ),
    ("quantity", rf"\bкак(?:ой|ая|ое|ов|ова|ово|овы|ого|ие|им)\b(?: \w+){{0,3}}? {_MEASURED}\b|\bчему рав"),
    ("quantity", r"\bhow (?:many|much|long|often|far|fast|large|big|soon)\b"),
    ("quantity", rf"\bwhat(?:'s| is| are)? (?:the )?(?:\w+ )?{_MEASURED_EN}\b"),
    ("where", r"^(?:и |а |но )?(?:где|куда|откуда)\b|\bв каком (?:разделе|меню|месте|дата-центре)\b|\bwhere\b"),
    (
        "where",
        r"\b(?:где|куда) (?:еще )?(?:мне |я |мы )?(?:можно|могу|найти|взять|посмотреть|"
        r"находит\w*|хран\w+|располож\w+|"
        r"искать|узнать|увидеть|скачать|обра\w+|сообщ\w+|пис\w+|звон\w+)\b",
    ),
    (
        "yesno",
        r"^(?:и |а |но )?(?:можно|можем|могу|может|могут|сможет|смогу|возможно|нужно|надо|"
        r"необходимо|требуется|есть|стоит|"
        r"следует|должен|должна|должно|должны|обязательно|обязан\w*|будет|будут|является|существу\w+|имеет\w*|"
        r"поддержива\w+|правда|верно|предусмотрен\w*|доступн\w+|предоставля\w+|допустим\w*|разрешено|планируется|"
        r"нельзя|бывают|бывает)\b|\b\w+ ли\b|\bэто возможно\b",
    ),
    ("yesno", r"^(?:can|could|is|are|was|were|do|does|did|will|would|should|may|must|has|have|am|shall)\b"),
    (
        "what_is",
        r"\bчто (?:такое|значит|означает|означают|представля\w+|подразумева\w+|понимается|собой|"
        r"из себя)\b|\bкто так(?:ой|ая|ие)\b",
    ),
    (
        "what_is",
        r"\bв чем (?:\w+ )?(?:разница|отличи\w+|различи\w+|смысл|заключается|состоит|роль|суть)\b|\bчем отлича\w+|"
        r"\b(?:для чего|зачем) (?:нуж\w+|служ\w+|использу\w+|предназнач\w+)\b",
    ),
    (
        "what_is",
        r"\bwhat(?:'s| is| are| does)\b(?! (?:happen|the best|i do))|\bwhat do \w+ mean|\bdifference between\b",
    ),
    (
        "list",
        r"\bкак(?:ие|их|ими)\b|\bчто (?:\w+ )?(?:входит|включ\w+|учитывается)\b|\bперечисл\w+|"
        r"\bсписок\b|\bкаковы\b|"
        r"\bв чем (?:преимуществ|недостат)|\bчто (?:я могу|можно) делать\b",
    ),
    ("list", r"\bwhat (?:\w+ )?(?:types|kinds|options|features|benefits|requirements)\b|\blist of\b"),
    ("other", r"^(?:каким образом|в какой момент|на каком основании)\b"),
    ("which", r"\bкак(?:ой|ая|ое|ого|ому|им|ую|ом|ов|ова|ово)\b|\bкотор(?:ый|ая|ое|ые) из\b|\bwhich\b"),
    (
        "howto",
        r"\bс помощью чего\b|\bчто (?:мне |нам )?(?:нужно |надо |необходимо |требуется )?(?:для|чтобы|сделать)\b|"
        r"\b(?:инструкци\w+|порядок|шаги)\b",
    ),
    ("howto", r"\bhow (?:do|can|to|should|would|could|does one)\b|\bsteps?\b|\binstructions?\b|\bguide\b"),
)
_RULES: tuple[tuple[QuestionKind, re.Pattern[str]], ...] = tuple((kind, re.compile(rule)) for kind, rule in _PATTERNS)
_SENTENCE = 4
"""Words from which on a question without a word that asks is more than a topic."""

_ASKING = re.compile(
    r"\b(?:как|какой|каков\w?|что|чем|чего|кто|кого|кому|кем|чей|чь[яеиюё]\w?|когда|зачем|насколько|куда|где|"
    r"откуда|каким|от чего|назовите|перечислите|опишите|укажите|name|list|how|what|when|who|whom|whose)\b"
)


@lru_cache(maxsize=1_000)
def kind_of(question: str) -> QuestionKind:
    """The kind of `question`, by the words of the sentence that asks. Russian and English."""
    folded = fold(asked(question)).strip(' \t\n"«»—-¿')
    kind: QuestionKind = next((name for name, pattern in _RULES if pattern.search(folded)), "other")
    # A sentence that ends in a question mark and has no word that asks wants a yes or a no; "Гарантия?" is none.
    unmarked = kind == "other" and folded.endswith("?") and not _ASKING.search(folded)
    return "yesno" if unmarked and len(folded.split()) >= _SENTENCE else kind
