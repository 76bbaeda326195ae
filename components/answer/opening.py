"""The yes or no that an answer to a yes/no question opens with, where the quoted text says so."""

import re
from collections.abc import Sequence, Set

from components.answer.section import steps
from components.answer.units import Unit, plain
from components.judge.analysis import analyse
from components.judge.coverage import Question, share_said
from components.language.normalise import fold
from components.language.polarity import Polarity, asks_whether_possible, contrasts, polarity, says_itself
from components.language.question_kind import kind_of
from components.language.questions import asked
from components.language.relatives import families, relatives
from components.language.texts import text
from components.language.words import stems

_LOOKED_AT = 2
"""Sentences from the beginning in which a reader would look for a yes or no."""

_ABOUT = 0.9
"""Share of the question that a sentence and its headings must cover to speak of the very thing."""

_ITSELF = 0.5
"""The same of the sentence alone, which must also name every action that is asked about."""

_JOINED = 0.9
"""The same where several things are asked about at once."""

_ACTION = re.compile(
    r"\b[а-яё]{2,}(?<!ос)(?:ть|ти|чь|ться|тись)\b|(?<=\b[iI] )[a-z]{3,}\b|(?<=\byou )[a-z]{3,}\b|(?<=\bwe )[a-z]{3,}\b"
)
_AND = re.compile(r"\b(?:и|and)\b")
_MIN_STEPS = 2
_SAYING = frozenset({"sentence", "item", "lead"})
_PREDICATES = frozenset(
    stems(
        """
        можно возможно могу можем смогу нужно надо необходимо обязательно требуется нужен должен поддерживает
        поддерживается поддержка доступен доступно предусмотрен предоставляется имеется есть разрешено допускается
        possible need required support supported available allowed must should
        """
    )
)
"""Stems that ask for a yes or no, not about what."""


def opening(units: Sequence[Unit], question: Question, typed: str, locale: str) -> str:
    """The words to stand before an answer; empty where the text does not say yes or no, or says it itself.

    :param units: what is quoted, in order.
    :param typed: the question.
    """
    asking = asked(typed)
    among = [unit for unit in units if unit.kind in _SAYING]
    if kind_of(typed) != "yesno" or not among or says_itself(plain(among[0])):
        return ""
    for at, unit in enumerate(among[:_LOOKED_AT]):
        if (said := decision(unit, question, asking)) is not None:
            restricted = said.conditional or (at + 1 < len(among) and contrasts(plain(among[at + 1])))
            return _words(said, locale, restricted=restricted, first=at == 0)
    if asks_whether_possible(asking) and steps(units) >= _MIN_STEPS and _is_headed(among[0], question):
        return text("outcomes.polarity.yes", locale)
    return ""


def decision(unit: Unit, question: Question, asking: str) -> Polarity | None:
    """What a unit says to a yes/no question, where it is about the very thing."""
    if unit.kind not in _SAYING or not _is_about(unit, question, asking):
        return None
    return polarity(asking, plain(unit).rstrip(":"))


def _words(said: Polarity, locale: str, *, restricted: bool, first: bool) -> str:
    if said.condition:
        return text(f"outcomes.polarity.{said.answer}_if", locale, condition=said.condition)
    if restricted:
        # What restricts it must stand right behind.
        return text(f"outcomes.polarity.{said.answer}_but", locale) if first else ""
    return text(f"outcomes.polarity.{said.answer}", locale)


def _is_about(unit: Unit, question: Question, asking: str) -> bool:
    places = frozenset(unit.sentence.places)
    if _share(places | analyse(unit.passage).head, question) < _ABOUT:
        return False
    itself = _JOINED if _AND.search(asking.lower()) else _ITSELF
    actions = [stem for stem in stems(" ".join(_ACTION.findall(fold(asking)))) if stem not in _PREDICATES]
    kin = families(places)
    return _share(places, question) >= itself and all(one in places or relatives(one, kin) for one in actions)


def _is_headed(unit: Unit, question: Question) -> bool:
    return _share(frozenset(stems(f"{unit.passage.title}\n{unit.passage.heading}")), question) >= _ABOUT


def _share(said: Set[str], question: Question) -> float:
    """The share of what the question is about that is said; nothing is where it is about nothing."""
    return share_said({stem: weight for stem, weight in question.weights.items() if stem not in _PREDICATES}, said)
