"""Rules that replace a model. Their only knowledge is the prompt: words, numbers and codes of its passages."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from math import log, sqrt

from components.language.identifiers import codes
from components.language.marks import ITEM
from components.language.sentences import sentence_spans
from components.language.words import families, relatives, stems, words
from components.understand.followup import leaning
from evaluation.simulator.knobs import DIMENSIONS
from evaluation.simulator.reading import Claim, Passage, Prompt, Sentence, Tool, sentence

_ITEM = re.compile(rf"\s*{ITEM}\s")
_CYRILLIC = re.compile("[а-яА-Я]")
# Words without a stem, which no claim is checked for.
_OPENINGS = {"ru": "Вот что:", "en": "Here it is:"}
_MARKER = re.compile(rf"\A\s*{ITEM}\s+")
# Weights of a derived word with the same stem, of a stem in the heading, and of a stem that all passages contain.
_DERIVED = 0.8
_HEADED = 0.8
_FLOOR = 0.5
# Shares of the question's weight: a sentence answers from the first on, and completely from the second on.
_MIN_COVERAGE = 0.34
_FULL_COVERAGE = 0.6
_SETTLED = 0.5
_BESIDE = 0.7
_GRAM = 4
_SUPPORTED = 0.75
_PROPOSED = 0.5
_SENTENCES = 3
_STEPS = 12


@dataclass(frozen=True, slots=True)
class Support:
    """Degree to which a passage supports a claim, 0..1, and its supporting words."""

    score: float
    quote: str


def answer(prompt: Prompt) -> str:
    """Return the sentences of the passages that cover the question best, each with its [N]; empty if none does."""
    return "\n".join(_marked(text, number) for text, number in sentences(prompt))


def sentences(prompt: Prompt) -> list[tuple[str, int]]:
    weights = _weights(prompt)
    scored = [
        (_coverage(weights, passage, candidate), passage, place)
        for passage in prompt.passages
        if _covers_codes(prompt, passage)
        for place, candidate in enumerate(passage.sentences)
    ]
    if not scored:
        return []
    best, passage, place = max(scored, key=lambda found: found[0])
    if best < _MIN_COVERAGE:
        return []
    nearby = {at for score, other, at in scored if other is passage and score >= _BESIDE * best}
    places = sorted({place, *sorted(nearby, key=lambda at: abs(at - place))[:_SENTENCES]})
    return [(passage.sentences[at].text, passage.number) for at in _with_steps(passage, places)]


def in_other_words(found: Sequence[tuple[str, int]]) -> list[tuple[str, int]]:
    """Return the sentences, the first statement with an extra opening, so that it is no quotation."""
    lines = [(" ".join(text.lstrip("# ").split()), number) for text, number in found]
    first = next((place for place, (text, _) in enumerate(lines) if not text.endswith(":")), None)
    if first is not None:
        text, number = lines[first]
        bullet = match[0] if (match := _MARKER.match(text)) else ""
        opening = _OPENINGS["ru" if _CYRILLIC.search(text) else "en"]
        lines[first] = (f"{bullet}{opening} {text.removeprefix(bullet)}", number)
    return lines


def standalone(prompt: Prompt) -> str:
    """Return the question, with the customer's last message before it if it is a follow-up."""
    leans = prompt.history and leaning(prompt.question) != "no"
    return f"{prompt.question} ({prompt.history[-1]})" if leans else prompt.question


def relevance(prompt: Prompt, passage: Passage) -> float:
    if not _covers_codes(prompt, passage):
        return 0.0
    weights = _weights(prompt)
    passage_coverage = _covered(weights, passage, passage.stems)
    best = max((_coverage(weights, passage, candidate) for candidate in passage.sentences), default=0.0)
    return min(1.0, (passage_coverage + best) / 2 / _FULL_COVERAGE)


def relevant(prompt: Prompt) -> list[str]:
    weights = _weights(prompt)
    return [
        candidate.text
        for passage in prompt.passages
        if _covers_codes(prompt, passage)
        for candidate in passage.sentences
        if _coverage(weights, passage, candidate) >= _MIN_COVERAGE
    ]


def settled(prompt: Prompt) -> float:
    """Return how well the answer in the prompt settles the question, 0..1. An answer with its codes settles it."""
    asked = set(codes(prompt.question))
    if asked and asked <= set(codes(prompt.answer)):
        return 1.0
    weights, answered = _weights(prompt), sentence(prompt.answer).stems
    kin = families(answered)
    share = sum(w for stem, w in weights.items() if stem in answered or relatives(stem, kin))
    return min(1.0, share / _SETTLED)


def support(claim: Claim, passages: Sequence[Passage]) -> Support:
    """Return the best support for the claim among the passages it cites.

    A passage without a number or code of the claim does not support it at all.
    """
    claimed = sentence(claim.text)
    best = Support(0.0, "")
    for passage in passages:
        if (
            passage.number not in claim.citations
            or not claimed.stems
            or not claimed.facts <= passage.facts | passage.head
        ):
            continue
        score = len(claimed.stems & passage.stems) / len(claimed.stems)
        if score > best.score:
            closest = max(passage.sentences, key=lambda candidate: len(candidate.stems & claimed.stems))
            best = Support(score, closest.text)
    return best


def proposals(prompt: Prompt) -> list[tuple[int, int]]:
    """Return the numbers of the claims that share enough words with a rejected approach, each with its number."""
    return [
        (claim.number, approach.number)
        for claim in prompt.claims
        for approach in prompt.rejected
        if len(sentence(claim.text).stems & (named := sentence(approach.text).stems)) >= _PROPOSED * len(named)
    ]


def status(score: float) -> str:
    if score >= _SUPPORTED:
        return "supported"
    return "partially_supported" if score >= _SUPPORTED * 2 / 3 else "unsupported"


def missing(prompt: Prompt) -> list[str]:
    """Return words of the question that no passage contains, at most three."""
    passage_stems: frozenset[str] = frozenset().union(*(passage.stems for passage in prompt.passages))
    return [word for word in _content_words(prompt.question) if stems(word)[0] not in passage_stems][:3]


def key_terms(prompt: Prompt) -> str:
    """Return the three words of the question with the largest weights, as a query."""
    weights = _weights(prompt)
    content = _content_words(prompt.question)
    return " ".join(sorted(content, key=lambda word: -weights.get(stems(word)[0], 0.0))[:3])


def tool(prompt: Prompt) -> Tool | None:
    question_stems = frozenset(stems(prompt.question))
    return next((candidate for candidate in prompt.tools if candidate.described & question_stems), None)


def argument(prompt: Prompt) -> str:
    match = re.search(r"[\w-]*\d[\w-]*", prompt.question)
    return match[0] if match else ""


def _covers_codes(prompt: Prompt, passage: Passage) -> bool:
    question_codes = set(codes(prompt.question))
    return not question_codes or bool(question_codes & (passage.facts | passage.head))


def _weights(prompt: Prompt) -> Mapping[str, float]:
    """Return the weights of the question's stems, larger for rarer ones in the passages; they sum to 1."""
    all_sentences = [candidate for passage in prompt.passages for candidate in passage.sentences]
    counts = Counter(stem for candidate in all_sentences for stem in candidate.stems)
    rarest = log(2 + len(all_sentences))
    raw = {stem: _FLOOR * rarest + rarest - log(1 + counts[stem]) for stem in dict.fromkeys(stems(prompt.question))}
    total = sum(raw.values())
    return {stem: weight / total for stem, weight in raw.items()} if total else {}


def _covered(weights: Mapping[str, float], passage: Passage, sentence_stems: frozenset[str]) -> float:
    return sum(weight * _credit(stem, passage, sentence_stems) for stem, weight in weights.items())


def _coverage(weights: Mapping[str, float], passage: Passage, candidate: Sentence) -> float:
    return sum(
        weight * max(_credit(stem, passage, candidate.stems), _HEADED * _credit(stem, passage, passage.head))
        for stem, weight in weights.items()
    )


def _credit(stem: str, passage: Passage, sentence_stems: frozenset[str]) -> float:
    if stem in sentence_stems:
        return 1.0
    return _DERIVED if relatives(stem, passage.families) & sentence_stems else 0.0


def _with_steps(passage: Passage, places: Sequence[int]) -> list[int]:
    """Return the chosen positions; a sentence that introduces a list is followed by the list."""
    shown = dict.fromkeys(places)
    for at in places:
        if passage.sentences[at].text.rstrip().endswith(":"):
            following = range(at + 1, min(at + 1 + _STEPS, len(passage.sentences)))
            for step in following:
                if not _ITEM.match(passage.sentences[step].text):
                    break
                shown[step] = None
    return sorted(shown)


def _marked(text: str, number: int) -> str:
    bullet = _MARKER.match(text)
    line = " ".join(text[bullet.end() if bullet else 0 :].lstrip("# ").split())
    marked = (f"{line[start:end]} [{number}]" for start, end in sentence_spans(line))
    return f"{bullet[0].strip()} {' '.join(marked)}" if bullet else " ".join(marked)


def _content_words(text: str) -> list[str]:
    return [word.text for word in words(text) if not word.stop]


@lru_cache(maxsize=5_000)
def embed(text: str) -> tuple[float, ...]:
    """Return a normalised vector: texts that share words, or parts of words, are near each other.

    Feature hashing with signs (Weinberger et al. 2009), so that collisions cancel out.
    """
    vector = [0.0] * DIMENSIONS
    counted = Counter(stems(text))
    for stem, times in counted.items():
        _add_feature(vector, stem, 1.0 + log(times))
        padded = f"<{stem}>"
        for start in range(len(padded) - _GRAM + 1):
            _add_feature(vector, padded[start : start + _GRAM], 0.3)
    length = sqrt(sum(value * value for value in vector))
    if length == 0.0:
        return (1.0, *vector[1:])
    return tuple(value / length for value in vector)


def _add_feature(vector: list[float], feature: str, weight: float) -> None:
    digest = int.from_bytes(blake2b(feature.encode(), digest_size=8).digest())
    vector[digest % DIMENSIONS] += weight if digest & (1 << 40) else -weight
