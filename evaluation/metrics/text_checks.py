"""Quality of an answer from its text and quotes only, independent of the product's judges."""

import re
from collections.abc import Sequence

from components.language.identifiers import codes, numbers
from components.language.normalise import clean, fold
from components.language.words import stems
from evaluation.cases import Quote, Record

ENTAILED_SHARE = 0.8
"""Share of a sentence's content stems that its quotes must hold: a sentence may add a heading's words, not a fact."""

_CITATION = re.compile(r"\s*\[\d+\]")
_PUNCTUATION = re.compile(r"[^\w%]+")
_ARTICLE = re.compile(r"\b(?:a|an|the)\b")
_NEGATIONS = frozenset({"не", "нет", "без", "нельзя", "no", "not", "without", "never"})


def without_citations(text: str) -> str:
    return _CITATION.sub("", text)


def normalised(text: str) -> str:
    """Return the normalised words, as SQuAD compares answers (Rajpurkar 2016), for two languages."""
    return " ".join(_ARTICLE.sub(" ", _PUNCTUATION.sub(" ", fold(clean(text)))).split())


def holds_span(text: str, spans: Sequence[str]) -> bool:
    padded = f" {normalised(text)} "
    return any(f" {span} " in padded for span in map(normalised, spans) if span)


def entails(quotes: Sequence[Quote], sentence: str) -> bool:
    """Whether the quotes together support the sentence, measured independently of the product's verifier.

    Every quote is in its passage word for word; the quotes contain every number and code of the sentence; both have the
    same negations; and the quotes contain at least four fifths of its content stems.
    """
    if not quotes or not all(quote.genuine for quote in quotes):
        return False
    quoted = "\n".join(quote.excerpt for quote in quotes)
    if normalised(sentence) in normalised(quoted):
        return True
    if not set(numbers(sentence, quoted)) <= set(numbers(quoted)) or not set(codes(sentence)) <= set(codes(quoted)):
        return False
    sentence_stems, quoted_stems = set(stems(sentence)), set(stems(quoted))
    if sentence_stems & _NEGATIONS != quoted_stems & _NEGATIONS:
        return False
    return len(sentence_stems & quoted_stems) >= ENTAILED_SHARE * len(sentence_stems)


def has_facts(record: Record) -> bool:
    text = f" {normalised(without_citations(record.text))} "
    has_all = all(normalised(wording) in text for wording in record.case.must_contain)
    return has_all and not any(normalised(wording) in text for wording in record.case.must_not_contain)


def answers_another_code(record: Record, code_asked_about: str) -> bool:
    """Whether a question about one code was shown an answer that speaks of, or quotes, a different one."""
    return record.shown and bool(_codes_of(record) - {code_asked_about})


def keeps_code(record: Record) -> bool:
    """Whether an answer to a question with codes speaks of, or quotes, at least one of them."""
    return bool(_codes_of(record) & set(record.codes))


def _codes_of(record: Record) -> set[str]:
    quoted = " ".join(quote.excerpt for sentence in record.sentences for quote in sentence.quotes)
    return set(codes(f"{record.text} {quoted}"))
