"""Intent of the visitor: an answer from the knowledge base, a person, or a message that no document can answer."""

from collections.abc import Container, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from haystack import component

from components.judge.terms import known_share
from components.language.asking import asks, to_the_point
from components.language.identifiers import codes
from components.language.normalise import clean
from components.language.recovery import repair_layout
from components.serialisation import Nested
from components.turn import Exchange, Frozen, Intent, Outcome, Reason, Risk
from components.understand.features import MAX_LENGTH, features
from components.understand.followup import leaning, named, previous, standalone
from components.understand.gibberish import is_gibberish
from components.understand.meaning import MEANING_MODEL, WORDS_MODEL, model, vector_of
from tenants.knowledge import lexicon

FIXED: Mapping[Intent, tuple[Outcome, Reason]] = MappingProxyType(
    {
        "nonsense": ("nonsense", "no_intent"),
        "irrelevant": ("irrelevant", "off_topic"),
        "chitchat": ("irrelevant", "off_topic"),
        "out_of_scope": ("out_of_scope", "out_of_scope"),
        "high_stakes": ("high_stakes", "high_risk"),
        "wants_human": ("human_followup", "user_request"),
    }
)
"""The outcome of every intent that no document can answer."""
SMALL_TALK = ("greeting", "wellbeing", "thanks", "farewell", "acknowledgement", "about_assistant", "chitchat")
"""The kinds of small talk, each with another reply; `chitchat` is the rest."""
PLEA = "plea"
"""A call for help that does not say what it is about ("help", "not working"): the customer is asked to describe it."""
_MAX_NAMED_IN_PLEA = 4
"""Number of things above which a message describes its matter: "there is a key symbol and the buttons don't work"."""
CALLBACK = "callback"
"""A request for a phone call: the customer is asked for the number."""
# The model's labels. Risk classes are labels too and add up to `high_stakes`, the kinds of small talk to `chitchat`.
_LABELS: Mapping[str, tuple[Intent, Risk]] = MappingProxyType(
    {
        "answerable": ("answerable", "none"),
        "irrelevant": ("irrelevant", "none"),
        PLEA: ("answerable", "none"),
        **dict.fromkeys(SMALL_TALK, ("chitchat", "none")),
        "out_of_scope": ("out_of_scope", "none"),
        "wants_human": ("wants_human", "none"),
        CALLBACK: ("wants_human", "none"),
        "cancellation": ("high_stakes", "cancellation"),
        "billing_dispute": ("high_stakes", "billing_dispute"),
        "complaint": ("high_stakes", "complaint"),
        "lost_access": ("high_stakes", "lost_access"),
        "medical": ("high_stakes", "medical"),
        "danger": ("high_stakes", "danger"),
        "legal": ("high_stakes", "legal"),
    }
)


@dataclass(frozen=True, slots=True)
class Reading(Frozen):
    """The intent of a message, its probability (0..1), its risk class, and its kind, a label of the model."""

    intent: Intent
    probability: float
    risk: Risk = "none"
    kind: str = ""


def _by_words(message: str) -> Mapping[str, float]:
    return model(WORDS_MODEL).probabilities(features(message))


def _reading(probabilities: Mapping[str, float]) -> Reading:
    """Return the likeliest intent other than a question, given the probability of each label."""
    labels: dict[Intent, list[str]] = {}
    for label in probabilities:
        if label != "answerable":
            labels.setdefault(_LABELS[label][0], []).append(label)
    by_intent = {intent: sum(probabilities[one] for one in members) for intent, members in labels.items()}
    best = max(by_intent, key=lambda intent: by_intent[intent])
    kind = max(labels[best], key=lambda label: probabilities[label])
    return Reading(best, by_intent[best], _LABELS[kind][1], kind)


_MATTER_FROM = 0.5
"""Probability of a matter by meaning, above which a question follows a greeting, and a message that is a plea or off
topic by its words is neither. Of 90 messages of CLINC150 that are off topic in the demo shop, none that its words or
both models say so has more than 0.33."""
_MATTERS = frozenset({"answerable", "cancellation", "billing_dispute", "lost_access", "medical", "danger", "legal"})
"""Labels of messages about a matter. Any other label is a tone, by which the models agree better than by matters."""


_TALK_BELOW = 0.2
"""Probability of a matter or a plea by meaning, from which a message is no small talk: "no lights at all". Of 45
messages to the demo shops that are small talk and have a word of their articles, none has more than 0.13."""


def _by_meaning(message: str, labels: Container[str]) -> float:
    """Return the probability of labels by the meaning of a message; 0 if it has no vector."""
    vector = vector_of(repair_layout(message))
    by_meaning = model(MEANING_MODEL).probabilities(vector) if vector is not None else {}
    return sum(share for label, share in by_meaning.items() if label in labels)


def _is_talk(message: str) -> bool:
    """Return whether small talk is no more: it names nothing of the knowledge base, or has no matter by meaning."""
    known = lexicon.current().stems
    names_thing = any(stem in known for stem in named(message))
    return not names_thing or _by_meaning(message, {*_MATTERS, PLEA}) < _TALK_BELOW


_UNCLEAR: frozenset[Intent] = frozenset({"answerable", "nonsense", "irrelevant", "out_of_scope"})
"""Intents that a fragment of a conversation ("the second", "and outside it?", "what do I do?") may seem to have."""


@component
class IntentClassifier(Nested):
    """Let questions through that a document could answer, and recognise all other messages.

    If in doubt, a message is answerable: for any other intent, the probability must reach a threshold. A wrong keyboard
    layout and Russian in Latin letters are repaired first. A follow-up that says little by itself is completed from the
    conversation. A plea that names nothing is also recognised, with the intent `answerable`. A message that names a
    code, or is about a matter by its meaning, is neither a plea nor off topic, and a message in the words of the
    knowledge base is never off topic.

    A message with a lower probability is let through with a `doubt`: the intent that it has if the knowledge base has
    no match for it. If messages have vectors, the doubt may be any intent but that of a question, by the mean of two
    models: one by words, one by meaning. Without vectors, the only doubt is that the message is off topic.

    :param threshold: minimum probability (0..1) of any intent but `answerable`.
    :param thresholds: the same for single intents; a value above 1 turns an intent off.
    :param doubt_from: minimum probability of a doubt by words alone.
    :param tone_from: the same for a doubt by both models. Of 800 everyday messages to the demo shops, 11 without an
        answer or a near article reach 0.65, and the articles answer one of them; from 0.55 to 0.65 they answer about
        half.
    :param plea_from: the same for a plea, to which the reply asks what happened.
    :param familiar_from: minimum share of a message's words, weighted by rarity, that the knowledge base has, for the
        message not to be off topic. In the demo shops, the words of off-topic messages reach 0.59.
    """

    def __init__(
        self,
        threshold: float = 0.6,
        thresholds: dict[str, float] | None = None,
        doubt_from: float = 0.5,
        tone_from: float = 0.65,
        plea_from: float = 0.45,
        familiar_from: float = 0.7,
    ) -> None:
        self.threshold = threshold
        self.thresholds = thresholds or {}
        self.doubt_from = doubt_from
        self.tone_from = tone_from
        self.plea_from = plea_from
        self.familiar_from = familiar_from
        if unknown := set(self.thresholds) - set(FIXED):
            raise ValueError(f"no such intents: {sorted(unknown)}; there are {', '.join(FIXED)}")

    def warm_up(self) -> None:
        """Load the model, once."""
        model(WORDS_MODEL)

    @component.output_types(question=str, fixed=Reading, doubt=Reading)
    def run(self, question: str, history: list[Exchange] | None = None) -> dict[str, Any]:
        """Return the `question` if a document could answer it, with any `doubt`; else its intent as `fixed`."""
        typed = clean(question).strip()
        reading = self._read(typed)
        if reading is not None and reading.kind == PLEA:
            # "Подскажите, пожалуйста" pleads for help with anything.
            reading = self._read(to_the_point(typed))
        elif reading is not None and reading.kind == "greeting":
            # "Hello, are you a robot?" asks something, "Hello, hope all is well" does not.
            point = self._read(to_the_point(typed))
            if point is not None and point.kind != "acknowledgement":
                reading = point
            elif point is None and _by_meaning(to_the_point(typed), _MATTERS) > _MATTER_FROM:
                reading = None
        elif reading is not None and reading.intent == "chitchat" and asks(to_the_point(typed)):
            # "Thanks, where is the store?" asks something after it.
            reading = self._read(to_the_point(typed))
        if reading is not None and reading.intent == "chitchat" and not _is_talk(typed):
            reading = None
        completed = standalone(typed, history or ()) or typed
        if reading is not None and reading.intent in _UNCLEAR and (reading.kind != PLEA or leaning(typed) == "surely"):
            reading = self._read(completed)
        if reading is not None:
            return {"fixed": reading}
        doubt = self._doubt(completed, has_topic=previous(history or ()) is not None)
        return {"question": question, **({"doubt": doubt} if doubt is not None else {})}

    def _doubt(self, question: str, *, has_topic: bool) -> Reading | None:
        """Return the intent that a message has if no document answers it; None if it is a question in any case.

        :param has_topic: whether the conversation has a topic; then a plea is about that.
        """
        typed = repair_layout(to_the_point(question))
        by_words = _by_words(typed)
        vector = vector_of(typed)
        if vector is None:
            doubt = _reading({label: share for label, share in by_words.items() if label not in _MATTERS})
            is_doubtful = doubt.intent == "irrelevant" and doubt.probability >= self.doubt_from
        else:
            by_meaning = model(MEANING_MODEL).probabilities(vector)
            tones = {
                label: (share + by_words[label]) / 2 for label, share in by_meaning.items() if label not in _MATTERS
            }
            doubt = replace(_reading(tones), probability=sum(tones.values()))
            if doubt.intent == "chitchat" and tones[doubt.kind] < doubt.probability / 2:
                # Sarcasm resembles thanks, a greeting and a complaint at once. The reply to the rest suits all of them.
                doubt = replace(doubt, kind="chitchat")
            if doubt.intent == "chitchat" and not _is_talk(typed):
                doubt = replace(doubt, intent=_LABELS[PLEA][0], kind=PLEA)
            is_doubtful = doubt.probability >= (self.plea_from if doubt.kind == PLEA else self.tone_from)
            is_doubtful = is_doubtful and not (doubt.kind == PLEA and has_topic)
        is_familiar = doubt.intent == "irrelevant" and self._is_on_topic(question)
        is_off = self._threshold(doubt.intent) > 1
        return doubt if is_doubtful and not is_off and not is_familiar and not codes(question) else None

    def _read(self, question: str) -> Reading | None:
        """Return the intent if it settles the question; None if a document could answer it."""
        if self._threshold("nonsense") <= 1 and is_gibberish(question[:MAX_LENGTH]):
            return Reading("nonsense", 1.0, kind="nonsense")
        reading = _reading(_by_words(repair_layout(question)))
        if reading.probability < self._threshold(reading.intent):
            return None
        names_topic = (reading.kind == PLEA and (codes(question) or len(named(question)) > _MAX_NAMED_IN_PLEA)) or (
            reading.intent == "irrelevant" and self._is_on_topic(question)
        )
        may_be_matter = reading.kind in (PLEA, "irrelevant") and _by_meaning(question, _MATTERS) > _MATTER_FROM
        return None if names_topic or may_be_matter else reading

    def _is_on_topic(self, question: str) -> bool:
        """Return whether the message names a code or is in the words of the knowledge base."""
        return bool(codes(question)) or known_share(repair_layout(question)) >= self.familiar_from

    def _threshold(self, intent: Intent) -> float:
        return self.thresholds.get(intent, self.threshold)
