"""Built-in figures: their names and groups, and the contribution of each question to each of them.

Haystack's evaluators score rankings, at article level.

Retrieval and generation are separate: a figure of the first group depends on the ranking only, one of the second on
the visible answer.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType
from typing import Literal, TypeAlias

from haystack import Document
from haystack.components.evaluators import (
    DocumentMRREvaluator,
    DocumentNDCGEvaluator,
    DocumentRecallEvaluator,
)

from evaluation.cases import Case, Record
from evaluation.metrics.answer_key import OFFERS_READ, key_marks
from evaluation.metrics.intervals import Mark, Marks, many, one
from evaluation.metrics.text_checks import (
    answers_another_code,
    entails,
    has_facts,
    holds_span,
    keeps_code,
    normalised,
    without_citations,
)

DEPTHS = (1, 3, 5, 10)

Group: TypeAlias = Literal["key", "outcome", "retrieval", "answer", "refusal", "routing", "cost"]
Direction: TypeAlias = Literal["higher", "lower", "neither"]

GROUPS: Mapping[Group, tuple[str, ...]] = MappingProxyType(
    {
        "key": (
            "answer_precision",
            "answer_recall",
            "right_or_offered",
            "labelled@1",
            "labelled@3",
            "labelled@10",
            "claimed",
            "tier",
            "unjudged",
        ),
        "outcome": ("outcome_accuracy", "facts_in_answer", "survived"),
        "retrieval": (
            *(f"hit@{depth}" for depth in DEPTHS),
            "recall@5",
            "all_articles@5",
            "mrr",
            "ndcg@10",
            "keywords_found",
            "article_shown",
            "hit@5_over_reference",
            "hit@5_lost",
        ),
        "answer": (
            "gold_span_in_answer",
            "citation_precision_entailed",
            "citation_precision_gold",
            "claims_verified",
            "code_integrity",
            "answered_with_another_code",
        ),
        "refusal": ("over_refusal", "false_answer_rate", "refusal_precision", "refusal_recall", "answered_outright"),
        "routing": ("routed",),
        "cost": ("passes", "llm_calls", "tokens"),
    }
)
"""Every figure that is a ratio over cases, by topic, in the order of a report."""
LOWER_IS_BETTER = frozenset(
    {
        "over_refusal",
        "false_answer_rate",
        "answered_with_another_code",
        "hit@5_lost",
        "evaluator_failed",
    }
)
NEITHER_IS_BETTER = frozenset({"claimed", "tier", "unjudged", *GROUPS["cost"]})
GATED = (
    "answer_precision",
    "answer_recall",
    "right_or_offered",
    "labelled@1",
    "outcome_accuracy",
    "facts_in_answer",
    "survived",
    "hit@5",
    "mrr",
    "gold_span_in_answer",
    "citation_precision_entailed",
    "citation_precision_gold",
    "claims_verified",
    "code_integrity",
    "answered_with_another_code",
    "over_refusal",
    "false_answer_rate",
    "answered_outright",
    "routed",
)
"""Figures whose drop fails a comparison; the others depend on them or explain them."""


def better_direction(figure: str) -> Direction:
    name = figure.partition(":")[0]
    if name in NEITHER_IS_BETTER:
        return "neither"
    return "lower" if name in LOWER_IS_BETTER else "higher"


def question_marks(
    records: Sequence[Record],
    reference: Sequence[Record] = (),
    clean_hits: Mapping[str, float] = MappingProxyType({}),
) -> list[dict[str, Mark]]:
    """Return the contribution of each case to each figure.

    :param reference: the same cases answered by the yardstick, in the same order, where there is one.
    :param clean_hits: `hit@5` by case id of the same questions without noise.
    """
    ranking = _ranking_marks(records)
    reference_ranking = _ranking_marks(reference)
    absent = any(record.case.answerable is False for record in records)
    marks = []
    for place, record in enumerate(records):
        mark = {**_outcome_marks(record), **ranking[place], **_answer_marks(record), **_refusal_marks(record, absent)}
        mark |= {**_routing_marks(record), **_cost_marks(record), **_judged_marks(record), **key_marks(record)}
        if record.case.gold_docs:
            mark["article_shown"] = one(_shows_article(record))
        hit = mark.get("hit@5")
        if hit and reference_ranking:
            mark["hit@5_over_reference"] = one(hit[0] - reference_ranking[place]["hit@5"][0])
        if hit and record.case.case_id in clean_hits:
            mark["hit@5_lost"] = one(clean_hits[record.case.case_id] - hit[0])
        marks.append(mark)
    return marks


def _shows_article(record: Record) -> bool:
    """Whether a visitor has a right article before them: cited by the answer, else among those offered to read."""
    shown = record.cited if record.shown else record.offered[:OFFERS_READ]
    return any(page.doc_id in record.case.gold_docs for page in shown)


def reference_marks(records: Sequence[Record]) -> list[dict[str, Mark]]:
    """Return the contributions of the baseline's answers to the figures that apply to it."""
    return [{**ranking, **_span_mark(r)} for ranking, r in zip(_ranking_marks(records), records, strict=True)]


def ranking_scores(
    ranked: Sequence[Sequence[str]],
    gold: Sequence[Sequence[str]],
    grades: Sequence[Mapping[str, int]] = (),
) -> dict[str, list[float]]:
    """Return scores by question, 0..1: `hit@1` .. `hit@10`, `recall@5`, `all_articles@5`, `mrr`, `ndcg@10`.

    `ranked` and `gold` are document ids. Call with at least one question; each must have gold documents.

    :param grades: by question, the grades of gold documents for `ndcg@10`; empty where all are equally good.
    """
    truth = [_documents(documents) for documents in gold]
    graded = [_graded(documents, by_id) for documents, by_id in zip(gold, grades or [{}] * len(gold), strict=True)]

    def run(
        evaluate: Callable[..., dict[str, list[float]]], depth: int, truth: list[list[Document]] = truth
    ) -> list[float]:
        retrieved = [_documents(documents[:depth]) for documents in ranked]
        return evaluate(ground_truth_documents=truth, retrieved_documents=retrieved)["individual_scores"]

    recall = run(DocumentRecallEvaluator(mode="multi_hit").run, 5)
    hits = {f"hit@{depth}": run(DocumentRecallEvaluator(mode="single_hit").run, depth) for depth in DEPTHS}
    return hits | {
        "recall@5": recall,
        "all_articles@5": [float(share == 1) for share in recall],
        "mrr": run(DocumentMRREvaluator().run, 10),
        "ndcg@10": run(DocumentNDCGEvaluator().run, 10, graded),
    }


def _documents(doc_ids: Sequence[str]) -> list[Document]:
    # An evaluator logs a warning at an empty list; a document that equals no other means the same.
    return [_document(doc_id) for doc_id in doc_ids] or [_document("\0")]


def _graded(doc_ids: Sequence[str], grades: Mapping[str, int]) -> list[Document]:
    return [Document(content=doc_id, score=float(grades.get(doc_id, 1))) for doc_id in doc_ids]


@lru_cache(maxsize=100_000)
def _document(doc_id: str) -> Document:
    return Document(content=doc_id)


def _ranking_marks(records: Sequence[Record]) -> list[dict[str, Mark]]:
    marks: list[dict[str, Mark]] = [{} for _ in records]
    labelled = [place for place, record in enumerate(records) if record.case.gold_docs]
    if not labelled:
        return marks
    scores = ranking_scores(
        [records[at].ranked for at in labelled],
        [records[at].case.gold_docs for at in labelled],
        [_grades(records[at].case) for at in labelled],
    )
    for name, values in scores.items():
        for place, value in zip(labelled, values, strict=True):
            marks[place][name] = one(value)
    return marks


def _grades(case: Case) -> dict[str, int]:
    grades: dict[str, int] = {}
    for passage in case.key.passages if case.key else ():
        grades[passage.doc_id] = max(passage.grade, grades.get(passage.doc_id, 0))
    return grades


def _outcome_marks(record: Record) -> Marks:
    case, marks = record.case, {"survived": one(record.outcome != "failed")}
    if case.outcome:
        marks["outcome_accuracy"] = one(record.outcome == case.outcome and case.reason in ("", record.reason))
    if case.demands:
        marks["facts_in_answer"] = one(has_facts(record))
    if case.must_contain and record.passages:
        passages_text = normalised(" ".join(passage.text for passage in record.passages))
        marks["keywords_found"] = many([float(normalised(word) in passages_text) for word in case.must_contain])
    return marks


def _span_mark(record: Record) -> Marks:
    return {"gold_span_in_answer": one(right_answer(record))} if record.case.gold_spans else {}


def right_answer(record: Record) -> bool:
    return record.shown and holds_span(without_citations(record.text), record.case.gold_spans)


def _answer_marks(record: Record) -> Marks:
    spans = _span_mark(record)
    if not record.shown:
        return spans
    quotes = [quote for sentence in record.sentences for quote in sentence.quotes]
    entailed = [float(entails(s.quotes, s.text)) for s in record.sentences for _ in s.quotes]
    marks = {
        **spans,
        "citation_precision_entailed": many(entailed),
        "claims_verified": one(record.checked),
    }
    if record.case.gold_docs:
        marks["citation_precision_gold"] = many([float(q.doc_id in record.case.gold_docs) for q in quotes])
    if record.codes:
        marks["code_integrity"] = one(keeps_code(record))
    return marks


def _refusal_marks(record: Record, absent: bool) -> Marks:
    """Compare refusals with the known answerability; a question of unknown status is not counted.

    `over_refusal`: answerable and nothing shown. `false_answer_rate`: unanswerable and an answer shown.
    `answered_outright`: answerable and answered without a warning above it. Refusals can be precise only where some
    answers are `absent`.
    """
    is_answerable = record.case.answerable
    if is_answerable is None:
        return {}
    marks = (
        {"over_refusal": one(not record.shown), "answered_outright": one(record.outcome == "answered")}
        if is_answerable
        else {"false_answer_rate": one(record.shown), "refusal_recall": one(not record.shown)}
    )
    return {**marks, "refusal_precision": one(not is_answerable)} if absent and not record.shown else marks


def _routing_marks(record: Record) -> Marks:
    """Whether one of the right intents was recognised, over all and by category."""
    if not record.case.intents:
        return {}
    right = one(record.intent in record.case.intents)
    by_category = {f"routed:{record.case.category}": right} if record.case.category else {}
    return {"routed": right, **by_category}


def _cost_marks(record: Record) -> Marks:
    return {"passes": one(record.passes), "llm_calls": one(record.calls), "tokens": one(record.tokens)}


def _judged_marks(record: Record) -> Marks:
    judged_marks = {name: one(score) for name, score in record.judged.items() if not isinstance(score, str)}
    failed = many([float(isinstance(score, str)) for score in record.judged.values()])
    return {**judged_marks, "evaluator_failed": failed} if record.judged else {}


def code_marks(records: Sequence[Record]) -> list[Marks]:
    """Return the marks of questions about unknown codes; a case's category is the code asked for."""
    return [{"answered_with_another_code": one(answers_another_code(r, r.case.category))} for r in records]
