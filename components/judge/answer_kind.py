"""Does a text hold what a question of its kind demands, and say it of what is asked about?

A text that does may still answer another question; one that does not answers none of that kind. The thresholds were
chosen on graded passages of two help centres, Yandex Cloud and Microsoft: of those that a judge fitted on the other
vendor puts first with 0.4 or more, 91% of the 181 that answer hold what is demanded and 74% of the 101 that do not; for
yes/no questions 82% of 40 and 41% of 22, for definitions 93% of 14 and 50% of 16.
"""

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache

from components.judge.coverage import share_said
from components.judge.demands import asked_about, demand, shows_steps
from components.language.captions import HEADING_SEPARATOR, is_question
from components.language.normalise import fold
from components.language.question_kind import QuestionKind
from components.language.sentences import sentence_spans
from components.language.words import stems

_SAME = 0.8
"""Share of the question that a heading repeats which asks the very question, or names the very thing."""

_NAMED = 0.7
"""Share of the question that the heading of a procedure repeats which shows that the thing can be done."""

_NAMED_ALONE = 0.7
"""Share of a heading that a question covers where the heading names what is asked about and nothing else."""

_ABOUT: Mapping[QuestionKind, float] = {"yesno": 0.7, "howto": 0.25, "why": 0.25, "quantity": 0.2, "what_is": 0.05}
"""Least share of the question that the sentence which holds the sign covers, read under its heading."""

_TOLD_AT_LENGTH: frozenset[QuestionKind] = frozenset({"howto", "why", "where", "list", "other"})
"""Kinds of questions that hardly a word answers."""

_REPEATED, _SOME = 0.9, 8
"""The share of a text's content words, and how many there must be, from which on it only repeats the question."""

_ELSEWHERE = re.compile(
    r"\b(?:подробн\w+|информаци\w+|сведени\w+|описани\w+)\b.*\b(?:раздел\w*|стать\w*|страниц\w*|документаци\w+|"
    r"инструкци\w+|справочник\w*)\b|\bсм\. |"
    r"^в эт(?:ом|ой) (?:раздел|стать|руководств|документ|инструкци)\w+ (?:рассм|опис|показан|приведен|содерж|объясн|"
    r"представлен)\w*|"
    r"^(?:the|this) (?:article|section|topic|guide|document) (?:describes|explains|shows|covers|discusses|outlines)\b|"
    r"^(?:for (?:more|further|details)|(?:see|refer to|learn|read) )\b"
)
"""A sentence that only sends its reader elsewhere."""

_ASIDE = re.compile(r"\([^)]*\)")
_ENDS_IN_LINK = re.compile(r"https?://\S+\Z")

_MEANS = re.compile(
    r"\b(?:через|с помощью|при помощи|без|вместо|via|through|using|without|instead of) (\w+(?: \w+)?)\b"
)
_FIGURE = re.compile(r"\d+(?:[.,]\d+)*")
_MARK = re.compile(r"\s*\[\d+\]")


def answers_kind(kind: QuestionKind, question: str, text: str, head: str, weights: Mapping[str, float]) -> bool:
    """Whether `text` under the titles and headings in `head` holds what a question of this kind demands.

    :param weights: the weight of each content stem of the question.
    """
    text = _MARK.sub("", text)
    sentences = _sentences(text)
    if (kind != "where" and _only_sends_elsewhere(sentences)) or _mostly_asks(sentences):
        return False
    if kind in _TOLD_AT_LENGTH and _only_repeats(text, question):
        return False
    says = demand(kind, question, weights)
    weights = asked_about(weights)
    if says is None or not weights:
        return True
    headings = re.split(rf"\n|{re.escape(HEADING_SEPARATOR)}", head)
    if kind != "quantity" and any(_announces(heading, kind, weights) for heading in headings):
        return True
    under = frozenset(stems(head))
    if kind == "yesno" and not _says_how(question, f"{head}\n{text}"):
        return False
    if kind == "yesno" and share_said(weights, under) >= _NAMED and shows_steps(text):
        return True
    least = _ABOUT.get(kind, 0.0)
    return any(
        share_said(weights, under | set(stems(one))) >= least
        for one in sentences
        if says(one) and (kind == "where" or not _sends_elsewhere(one))
    )


@lru_cache(maxsize=2_000)
def _sentences(text: str) -> tuple[str, ...]:
    return tuple(text[start:end] for start, end in sentence_spans(text))


def _announces(heading: str, kind: QuestionKind, weights: Mapping[str, float]) -> bool:
    """Whether a heading asks the very question, or is the name of what is to be explained and nothing else: one that
    merely mentions it stands over many other things.
    """
    named = frozenset(stems(heading))
    if share_said(weights, named) < _SAME:
        return False
    alone = kind == "what_is" and share_said(dict.fromkeys(named, 1.0), weights.keys()) >= _NAMED_ALONE
    return alone or is_question(heading)


def _mostly_asks(sentences: Sequence[str]) -> bool:
    """Whether a text is a list of questions, which answers none."""
    return len(sentences) > 1 and sum(map(is_question, sentences)) * 2 >= len(sentences)


def _only_repeats(text: str, question: str) -> bool:
    """Whether a text of some length says little but the words of the question."""
    asked = frozenset(stems(question))
    if len(asked) < _REPEATED * _SOME:
        return False
    said = frozenset(stems(text))
    return len(said) >= _SOME and len(said & asked) >= _REPEATED * len(said)


def _says_how(question: str, text: str) -> bool:
    """Whether a text holds the numbers of a question and the means it names: what can be done in an app may not be done
    in a browser.
    """
    if not set(_FIGURE.findall(question)) <= set(_FIGURE.findall(text)):
        return False
    means = [stem for named in _MEANS.findall(fold(question)) for stem in stems(named)[-1:]]
    return not means or share_said(dict.fromkeys(means, 1.0), frozenset(stems(text))) == 1


def _only_sends_elsewhere(sentences: Sequence[str]) -> bool:
    """Whether nothing is said but where more is: captions, which end in no full stop, say nothing by themselves."""
    said = [one for one in sentences if one.endswith((".", "!", ":", ";")) or _ENDS_IN_LINK.search(one)]
    return bool(said) and all(map(_sends_elsewhere, said))


def _sends_elsewhere(sentence: str) -> bool:
    return _ELSEWHERE.search(_ASIDE.sub("", fold(sentence))) is not None
