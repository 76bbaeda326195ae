"""Follow-up questions ("а если E10?", "how long does it take?") completed by rules.

A question is a follow-up if it names nothing at all, or names little and opens like a continuation or points back with
a pronoun. If a question names a single thing, the knowledge base tells whether it leans on the conversation. A
follow-up is completed with the content words of the previous question.
"""

import re
from collections.abc import Mapping, Sequence, Set
from typing import Literal

from components.language.asking import GENERIC
from components.language.identifiers import codes
from components.language.normalise import clean, fold
from components.language.recovery import repair_layout
from components.language.words import Word, stems, words
from components.turn import SHOWN, Exchange

_OPENING = re.compile(
    r"\W*(?:да|ага|угу|а|и|но|или|тогда|ну а|yes|yeah|yep|and|but|or|then|so|what about|how about|what if)(?![\w-])",
    re.IGNORECASE,
)
_REFERRING = frozenset(
    """
    он она оно они его ее их ему ей им него нее них ним ней нем это этот эта эти этого этой этому этим этом этих туда
    там тут оттуда тогда теперь потом дальше тоже также еще такой такая такое такие такого такую
    it its they them their that this those these there then now too also one ones instead
    """.split()
)
_EXISTING = re.compile(r"\b(?:(?:is|are) there|do you (?:have|offer)|есть)\b", re.IGNORECASE)
"""Words that ask whether there is a thing: "there" points to no place, and the thing may be a new topic."""
_CONDITION = re.compile(r"\b(?:если|if)\b", re.IGNORECASE)
"""Words before a condition, which asks nothing: "and if there is a receipt?"."""
_NUMBER = re.compile(r"\W*(?:№\s*)?(\d{1,2})\W*\Z")
_ORDINALS: tuple[frozenset[str], ...] = tuple(
    frozenset(stems(forms))
    for forms in (
        "первый первая первое первую one first",
        "второй вторая второе вторую two second",
        "третий третья третье третью three third",
    )
)
_TOPICAL: frozenset[str] = frozenset(
    "answered partially_answered low_confidence clarify refused cannot_answer human_followup high_stakes".split()
)
"""Outcomes of messages that had a topic; small talk and blocked messages have none to return to."""

_ADDRESSING = frozenset("вы вас вам вами ваш ваша ваше ваши you your u".split())
"""Words for the company itself: "where are you?" names a topic without any other word."""
_ARTICLES = frozenset("a an the".split())
_COMPANY = "магазин компания офис салон фирма store shop company office".split()
"""Words that articles use for the company itself."""
_MAX_INFORMATIVE_AFTER_OPENING = 3
_MAX_INFORMATIVE_WITH_PRONOUN = 3
MAX_NAMED_GOING_ON = 3
"""Number of things that a message names, up to which it may go on with the question before it."""


def standalone(question: str, history: Sequence[Exchange], max_words: int = 6) -> str:
    """Return the question completed from its history; empty if it cannot lean on it (`leaning`).

    A reply to offered choices (a number, an ordinal, words of one option) becomes that option.

    :param history: earlier turns, oldest first.
    :param max_words: words taken from the earlier question at most.
    """
    before = previous(history)
    if before is None or not (typed := repair_layout(clean(question).strip())):
        return ""
    if (option := chosen_option(typed, before.options)) is not None:
        return _joined(option, [word.text for word in words(before.question) if not word.stop])
    if leaning(typed) == "no":
        return ""
    topic = [*_topic(typed, before.question, max_words), *_topic(typed, before.reply, max_words)]
    return _joined(typed, list(dict.fromkeys(topic))) if topic else ""


def replaced_topic(question: str, history: Sequence[Exchange]) -> str:
    """Return the previous question with its topic replaced: "how long is delivery?" for "and delivery?".

    Return an empty string unless the follow-up and the previous question each name exactly one topic.
    """
    before, topic = previous(history), new_topic(question)
    topics = [word for word in words(before.question) if _is_informative(word)] if before else []
    if before is None or len(topics) != 1 or not topic:
        return ""
    return f"{before.question[: topics[0].start]}{topic}{before.question[topics[0].end :]}"


def new_topic(question: str) -> str:
    """Return the one word that a question goes on with: "delivery" of "and delivery?"; empty if there are others."""
    opening = _OPENING.match(question)
    if opening is None or codes(question):
        return ""
    rest = [word for word in words(question[opening.end() :]) if fold(word.text) not in _ARTICLES]
    return rest[0].text if len(rest) == 1 and _is_informative(rest[0]) else ""


def previous(history: Sequence[Exchange]) -> Exchange | None:
    """Return the last turn that had a topic, or None."""
    return next(filter(_has_topic, reversed(history)), None)


def last_topic(history: Sequence[Exchange]) -> str:
    """Return the last question that had a topic, after the one before it if it names little and was not answered.

    After "the door is stuck" and "no water visible", the topic of "still locked" is both. Empty without a topic.
    """
    topical = [exchange for exchange in history if _has_topic(exchange)][-2:]
    if len(topical) == 2 and (topical[1].outcome in SHOWN or len(named(topical[1].question)) > MAX_NAMED_GOING_ON):
        topical = topical[1:]
    return " ".join(exchange.question for exchange in topical)


def _has_topic(exchange: Exchange) -> bool:
    """Return whether a turn was about something; a plea without a topic is clarified without options."""
    return exchange.outcome in _TOPICAL and (exchange.outcome != "clarify" or bool(exchange.options))


def _topic(question: str, previous: str, max_words: int) -> list[str]:
    """Return the content words of the previous question that this one omits.

    Its codes are left out if this question has its own, or names anything and does not go on ("and if that fails?"): an
    answer must be about every code, and "where is that filter?" is about the filter.
    """
    question_stems = set(stems(question))
    has_own = bool(codes(question) or (named(question) and not _OPENING.match(question)))
    replaced = {fold(code) for code in codes(previous)} if has_own else set()
    topic = [
        word.text
        for word in words(previous)
        if not word.stop and word.stem not in question_stems and word.stem not in replaced
    ]
    return list(dict.fromkeys(topic))[:max_words]


def leaning(question: str) -> Literal["surely", "perhaps", "no"]:
    """Return whether a question leans on the conversation.

    A question that names a single thing may be a new topic ("Есть рассрочка?") or not ("Сколько длится ремонт?"): only
    the knowledge base can tell. The same goes for a question after "and" that asks something about that thing.
    """
    asks_existence = bool(_EXISTING.search(question)) and not _CONDITION.search(question)
    question_words = words(question)
    informative = sum(map(_is_informative, question_words))
    folded = {fold(word.text) for word in question_words} - ({"there"} if asks_existence else set())
    points_back = not folded.isdisjoint(_REFERRING) and informative <= _MAX_INFORMATIVE_WITH_PRONOUN
    goes_on = bool(_OPENING.match(question)) and informative <= _MAX_INFORMATIVE_AFTER_OPENING
    # "And how much is delivery?" is complete, "and is there an instalment plan?" may be.
    is_complete = informative == 1 and any(word.stem in GENERIC for word in question_words)
    if points_back or (goes_on and not is_complete and not (asks_existence and informative)):
        return "surely"
    if goes_on and asks_existence:
        return "perhaps"
    if codes(question) or informative > 1:
        return "no"
    return "perhaps" if informative or not folded.isdisjoint(_ADDRESSING) else "surely"


def with_company(question: str, known_stems: Mapping[str, int]) -> str:
    """Replace "you" with the articles' most frequent word for the company, if the question names nothing else. "Where
    are you?" becomes "Where are store?": ungrammatical, but it finds the store's address.

    :param known_stems: stems of the knowledge base with their frequencies.
    """
    addresses = [word for word in words(question) if fold(word.text) in _ADDRESSING]
    company = max(_COMPANY, key=lambda word: known_stems.get(stems(word)[0], 0))
    if not addresses or named(question) or not known_stems.get(stems(company)[0]):
        return question
    return f"{question[: addresses[0].start]}{company}{question[addresses[0].end :]}"


def addresses_company(question: str) -> bool:
    """Return whether a question addresses the company: "when are you open?"."""
    return any(fold(word.text) in _ADDRESSING for word in words(question))


def named(question: str) -> frozenset[str]:
    """Return the stems of the things that a question names."""
    return frozenset(word.stem for word in words(question) if _is_informative(word))


def _is_informative(word: Word) -> bool:
    return not (word.stop or word.text.isdigit() or word.stem in GENERIC or fold(word.text) in _REFERRING)


def chosen_option(reply: str, options: Sequence[str]) -> str | None:
    """Return the option that a reply picks: by number, by ordinal, or by words that only one option has."""
    if not options:
        return None
    if number := _NUMBER.match(reply):
        place = int(number[1])
        return options[place - 1] if 1 <= place <= len(options) else None
    reply_stems = set(stems(reply))
    if (ordinal := _ordinal(reply_stems)) is not None:
        return options[ordinal] if ordinal < len(options) else None
    fitting = [option for option in options if reply_stems and reply_stems <= set(stems(option))]
    return fitting[0] if len(fitting) == 1 else None


def _ordinal(reply_stems: Set[str]) -> int | None:
    return next((place for place, forms in enumerate(_ORDINALS) if reply_stems and forms.issuperset(reply_stems)), None)


def _joined(text: str, history_words: Sequence[str]) -> str:
    question_stems = set(stems(text))
    added = [word for word in history_words if not question_stems.issuperset(stems(word))]
    return f"{text} ({' '.join(added)})" if added else text
