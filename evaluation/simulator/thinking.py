"""The rules that stand in for a model. All they know is in the prompt: words, numbers and codes of its own passages."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import log

from components.language.identifiers import codes
from components.language.marks import ITEM
from components.language.relatives import relatives
from components.language.sentences import sentence_spans
from components.language.words import content_words, stems
from evaluation.simulator.reading import Claim, Passage, Prompt, Sentence, Tool, sentence

_ITEM = re.compile(rf"\s*{ITEM}\s")
_MARKER = re.compile(rf"\A\s*{ITEM}\s+")
# What a stem of the same word is worth, one in the heading above, and one that every passage has beside the rarest.
_DERIVED = 0.8
_HEADED = 0.8
_FLOOR = 0.5
# Shares of the question's weight: from the first on a sentence answers, from the second on all is answered.
_LEAST = 0.34
_ENOUGH = 0.6
_BESIDE = 0.7
_SUPPORTED = 0.75
_SENTENCES = 3
_STEPS = 12


@dataclass(frozen=True, slots=True)
class Support:
    """How far a passage supports a claim, 0..1, and its words that do."""

    score: float
    quote: str


def answer(prompt: Prompt) -> str:
    """The sentences of the passages that cover the question best, each with its [N]; empty when none does."""
    weights = _weights(prompt)
    scored = [
        (_coverage(weights, passage, one), passage, place)
        for passage in prompt.passages
        if _about(prompt, passage)
        for place, one in enumerate(passage.sentences)
    ]
    if not scored:
        return ""
    best, passage, place = max(scored, key=lambda found: found[0])
    if best < _LEAST:
        return ""
    near = {at for score, other, at in scored if other is passage and score >= _BESIDE * best}
    chosen = sorted({place, *sorted(near, key=lambda at: abs(at - place))[:_SENTENCES]})
    return "\n".join(_marked(passage.sentences[at].text, passage.number) for at in _with_steps(passage, chosen))


def relevance(prompt: Prompt, passage: Passage) -> float:
    """How far the passage answers the question: 0..1."""
    if not _about(prompt, passage):
        return 0.0
    weights = _weights(prompt)
    whole = _covered(weights, passage, passage.stems)
    best = max((_coverage(weights, passage, one) for one in passage.sentences), default=0.0)
    return min(1.0, (whole + best) / 2 / _ENOUGH)


def relevant(prompt: Prompt) -> list[str]:
    """The sentences that cover enough of the question to answer it."""
    weights = _weights(prompt)
    return [
        one.text
        for passage in prompt.passages
        if _about(prompt, passage)
        for one in passage.sentences
        if _coverage(weights, passage, one) >= _LEAST
    ]


def settled(prompt: Prompt) -> float:
    """How far the answer in the prompt settles the question, read under the headings of what it cites: 0..1."""
    weights, said = _weights(prompt), sentence(prompt.answer).stems
    return min(1.0, max((_covered(weights, one, said | one.head) for one in prompt.passages), default=0.0) / _ENOUGH)


def support(claim: Claim, passages: Sequence[Passage]) -> Support:
    """How far one of the passages that the claim cites supports it.

    Numbers and codes of the claim that a passage lacks leave nothing of it.
    """
    said = sentence(claim.text)
    best = Support(0.0, "")
    for passage in passages:
        if passage.number not in claim.citations or not said.stems or not said.facts <= passage.facts | passage.head:
            continue
        score = len(said.stems & passage.stems) / len(said.stems)
        if score > best.score:
            nearest = max(passage.sentences, key=lambda one: len(one.stems & said.stems))
            best = Support(score, nearest.text)
    return best


def status(score: float) -> str:
    """The word for a claim's support."""
    if score >= _SUPPORTED:
        return "supported"
    return "partially_supported" if score >= _SUPPORTED * 2 / 3 else "unsupported"


def missing(prompt: Prompt) -> list[str]:
    """Words of the question that no passage holds, at most three."""
    held: frozenset[str] = frozenset().union(*(passage.stems for passage in prompt.passages))
    return [word for word in content_words(prompt.question) if stems(word)[0] not in held][:3]


def heart(prompt: Prompt) -> str:
    """The three weightiest words of the question, as a query."""
    weights = _weights(prompt)
    found = content_words(prompt.question)
    return " ".join(sorted(found, key=lambda word: -weights.get(stems(word)[0], 0.0))[:3])


def tool(prompt: Prompt) -> Tool | None:
    """The first tool whose description shares a word with the question."""
    asked = frozenset(stems(prompt.question))
    return next((one for one in prompt.tools if one.described & asked), None)


def argument(prompt: Prompt) -> str:
    """The word of the question with a digit in it; empty without one."""
    found = re.search(r"[\w-]*\d[\w-]*", prompt.question)
    return found[0] if found else ""


def _about(prompt: Prompt, passage: Passage) -> bool:
    """Whether the passage holds a code of the question, where it has any."""
    wanted = set(codes(prompt.question))
    return not wanted or bool(wanted & (passage.facts | passage.head))


def _weights(prompt: Prompt) -> Mapping[str, float]:
    """The question's stems, the rarer in the passages the weightier; they sum to 1."""
    everything = [one for passage in prompt.passages for one in passage.sentences]
    seen = Counter(stem for one in everything for stem in one.stems)
    rarest = log(2 + len(everything))
    raw = {stem: _FLOOR * rarest + rarest - log(1 + seen[stem]) for stem in dict.fromkeys(stems(prompt.question))}
    total = sum(raw.values())
    return {stem: weight / total for stem, weight in raw.items()} if total else {}


def _covered(weights: Mapping[str, float], passage: Passage, held: frozenset[str]) -> float:
    return sum(weight * _credit(stem, passage, held) for stem, weight in weights.items())


def _coverage(weights: Mapping[str, float], passage: Passage, one: Sentence) -> float:
    return sum(
        weight * max(_credit(stem, passage, one.stems), _HEADED * _credit(stem, passage, passage.head))
        for stem, weight in weights.items()
    )


def _credit(stem: str, passage: Passage, held: frozenset[str]) -> float:
    if stem in held:
        return 1.0
    return _DERIVED if relatives(stem, passage.families) & held else 0.0


def _with_steps(passage: Passage, chosen: Sequence[int]) -> list[int]:
    """The chosen places, and behind a sentence that introduces a list the list."""
    places = dict.fromkeys(chosen)
    for at in chosen:
        if passage.sentences[at].text.rstrip().endswith(":"):
            following = range(at + 1, min(at + 1 + _STEPS, len(passage.sentences)))
            for step in following:
                if not _ITEM.match(passage.sentences[step].text):
                    break
                places[step] = None
    return sorted(places)


def _marked(text: str, number: int) -> str:
    """The unit on one line, its bullet before it, every sentence of it with its mark."""
    bullet = _MARKER.match(text)
    said = " ".join(text[bullet.end() if bullet else 0 :].lstrip("# ").split())
    marked = (f"{said[start:end]} [{number}]" for start, end in sentence_spans(said))
    return f"{bullet[0].strip()} {' '.join(marked)}" if bullet else " ".join(marked)
