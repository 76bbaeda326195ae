"""Counting what the asked questions show. Rankings are judged by Haystack's evaluators, at article level."""

import re
from collections.abc import Callable, Mapping, Sequence

from haystack import Document
from haystack.components.evaluators import (
    AnswerExactMatchEvaluator,
    DocumentMAPEvaluator,
    DocumentMRREvaluator,
    DocumentNDCGEvaluator,
    DocumentRecallEvaluator,
)

from components.language.identifiers import codes, numbers
from components.language.normalise import clean, fold
from components.language.sentences import sentence_spans
from components.language.words import stems
from evaluation.cases import Quote, Record, Sentence
from evaluation.intervals import Figure, exact, mean, percentile

DEPTHS = (1, 3, 5, 10)
ENTAILED_SHARE = 0.8
"""Share of a sentence's content stems that its quotes must hold: a sentence may add a heading's words, not a fact."""
SENTENCE_LIMIT = 3

_CITATION = re.compile(r"\s*\[\d+\]")
_PUNCTUATION = re.compile(r"[^\w%]+")
_ARTICLE = re.compile(r"\b(?:a|an|the)\b")
_NEGATIONS = frozenset({"не", "нет", "без", "нельзя", "no", "not", "without", "never"})

Figures = Mapping[str, Figure | None]


def without_citations(text: str) -> str:
    """The text as read, [N] taken out."""
    return _CITATION.sub("", text)


def ranking_scores(ranked: Sequence[Sequence[str]], gold: Sequence[Sequence[str]]) -> dict[str, list[float]]:
    """Per question: `hit@1` .. `hit@10`, `recall@5`, `mrr`, `map` and `ndcg@10` of ranked document ids, each in 0..1.

    Call with at least one question; each must have gold documents.
    """
    truth = [_documents(documents) for documents in gold]

    def run(evaluate: Callable[..., dict[str, list[float]]], depth: int) -> list[float]:
        found = [_documents(documents[:depth]) for documents in ranked]
        return evaluate(ground_truth_documents=truth, retrieved_documents=found)["individual_scores"]

    hits = {f"hit@{depth}": run(DocumentRecallEvaluator(mode="single_hit").run, depth) for depth in DEPTHS}
    return hits | {
        "recall@5": run(DocumentRecallEvaluator(mode="multi_hit").run, 5),
        "mrr": run(DocumentMRREvaluator().run, 10),
        "map": run(DocumentMAPEvaluator().run, 10),
        "ndcg@10": run(DocumentNDCGEvaluator().run, 10),
    }


def _documents(doc_ids: Sequence[str]) -> list[Document]:
    # An evaluator logs a warning at an empty list; a document that equals no other means the same.
    return [Document(content=doc_id) for doc_id in doc_ids] or [Document(content="\0")]


def normalised(text: str) -> str:
    """Words alone, in one spelling: how SQuAD compares answers (Rajpurkar 2016), for two languages."""
    return " ".join(_ARTICLE.sub(" ", _PUNCTUATION.sub(" ", fold(clean(text)))).split())


def holds_span(text: str, spans: Sequence[str]) -> bool:
    """Whether the text holds one of the gold spans, whole words only."""
    padded = f" {normalised(text)} "
    return any(f" {span} " in padded for span in map(normalised, spans) if span)


def first_sentences(text: str, limit: int = SENTENCE_LIMIT) -> str:
    """The first `limit` sentences of an answer, [N] taken out."""
    text = without_citations(text)
    return "\n".join(text[start:end] for start, end in sentence_spans(text)[:limit])


def sentence_count(text: str) -> int:
    """How many sentences, list items and headings a reader sees."""
    return len(sentence_spans(without_citations(text)))


def entails(quotes: Sequence[Quote], sentence: str) -> bool:
    """Whether the quotes together say what the sentence says, by a measure that owes nothing to the product's verifier.

    Every quote is in its passage word for word; every number and code of the sentence is in the quotes; so are its
    negations, and they have no other; and the quotes hold its content stems but for a fifth.
    """
    if not quotes or not all(quote.genuine for quote in quotes):
        return False
    quoted = "\n".join(quote.excerpt for quote in quotes)
    if normalised(sentence) in normalised(quoted):
        return True
    if not set(numbers(sentence, quoted)) <= set(numbers(quoted)) or not set(codes(sentence)) <= set(codes(quoted)):
        return False
    said, held = set(stems(sentence)), set(stems(quoted))
    if said & _NEGATIONS != held & _NEGATIONS:
        return False
    return len(said & held) >= ENTAILED_SHARE * len(said)


def citation_scores(sentences: Sequence[Sentence]) -> list[float]:
    """1 or 0 for every [N]: the quote entails the sentence it stands on (with the other quotes of that sentence)."""
    return [float(entails(sentence.quotes, sentence.text)) for sentence in sentences for _ in sentence.quotes]


def retrieval(records: Sequence[Record]) -> Figures:
    """Ranking figures over the questions with gold documents."""
    known = [record for record in records if record.case.gold_docs]
    if not known:
        return {}
    scores = ranking_scores([record.ranked for record in known], [record.case.gold_docs for record in known])
    return {name: mean(values) for name, values in scores.items()}


def answering(records: Sequence[Record]) -> Figures:
    """What the shown answers hold, how long they are, and what their citations are worth."""
    shown = [record for record in records if record.shown]
    lengths = [sentence_count(record.text) for record in shown]
    cited = [record for record in shown if record.case.gold_docs]
    return {
        **spans_shown(records),
        "sentences_mean": mean([float(length) for length in lengths]),
        "sentences_max": exact(max(lengths), len(lengths)) if lengths else None,
        "cited_sentences": mean([float(bool(s.quotes)) for record in shown for s in record.sentences]),
        "citation_precision_entailed": mean([v for record in shown for v in citation_scores(record.sentences)]),
        "citation_precision_gold": mean(
            [float(q.doc_id in record.case.gold_docs) for record in cited for s in record.sentences for q in s.quotes]
        ),
    }


def spans_shown(records: Sequence[Record]) -> Figures:
    """How often the answer holds a gold span. Where nothing was shown, it was missed."""
    spanned = [record for record in records if record.case.gold_spans]
    return {
        "gold_span_in_answer": mean([_span_shown(r, r.text) for r in spanned]),
        "gold_span_in_three_sentences": mean([_span_shown(r, first_sentences(r.text)) for r in spanned]),
    }


def _span_shown(record: Record, text: str) -> float:
    return float(record.shown and holds_span(text, record.case.gold_spans))


def refusing(records: Sequence[Record]) -> Figures:
    """Refusals against what is known to be (un)answerable; a question of unknown status counts nowhere.

    `over_refusal`: answerable and nothing shown. `false_answer`: unanswerable and an answer shown.
    """
    answerable = [record for record in records if record.case.answerable is True]
    unanswerable = [record for record in records if record.case.answerable is False]
    refused = [record for record in (*answerable, *unanswerable) if not record.shown]
    return {
        "over_refusal": mean([float(not record.shown) for record in answerable]),
        "false_answer": mean([float(record.shown) for record in unanswerable]),
        "refusal_precision": mean([float(r.case.answerable is False) for r in refused]) if unanswerable else None,
        "refusal_recall": mean([float(not record.shown) for record in unanswerable]),
    }


def outcomes(records: Sequence[Record]) -> Figures:
    """Outcome, and reason where one is demanded, equal to what the case demands."""
    demanding = [record for record in records if record.case.outcome]
    if not demanding:
        return {}
    wanted = [_spelled(record.case.outcome, record.case.reason) for record in demanding]
    got = [_spelled(record.outcome, record.reason if record.case.reason else "") for record in demanding]
    matched = AnswerExactMatchEvaluator().run(ground_truth_answers=wanted, predicted_answers=got)
    return {
        "outcome_accuracy": mean([float(value) for value in matched["individual_scores"]]),
        "facts_in_answer": mean([float(has_facts(record)) for record in demanding]),
    }


def has_facts(record: Record) -> bool:
    """Whether the shown text holds every demanded wording and none of the forbidden ones."""
    text = f" {normalised(without_citations(record.text))} "
    held = all(normalised(wording) in text for wording in record.case.must_contain)
    return held and not any(normalised(wording) in text for wording in record.case.must_not_contain)


def _spelled(outcome: str, reason: str) -> str:
    return f"{outcome} / {reason}" if reason else outcome


def latency(records: Sequence[Record]) -> Figures:
    """Milliseconds of one whole turn in this process, one at a time."""
    times = [record.milliseconds for record in records]
    return {"latency_ms_p50": percentile(times, 50), "latency_ms_p99": percentile(times, 99)}


def answers_another_code(record: Record, asked: str) -> bool:
    """Whether a question about one code was shown an answer that speaks of, or quotes, a different one."""
    quoted = " ".join(quote.excerpt for sentence in record.sentences for quote in sentence.quotes)
    return record.shown and bool(set(codes(f"{record.text} {quoted}")) - {asked})
