"""Running the cases of a set through the product's own use case, one by one or concurrently."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import replace
from datetime import UTC, datetime
from threading import Lock
from time import perf_counter

from pydantic import ValidationError

from components.turn import Article, Citation, Draft, Exchange, Passage, Turn
from evaluation.cases import Case, Offer, Page, Quote, RankedPassage, Record, Sentence
from evaluation.metrics.answers import without_citations
from pipelines.ask.answering import answer_of
from pipelines.ask.contract import AskRequest
from pipelines.ask.tracing.trace import Trace
from pipelines.ask.usecase import Ask, begin
from tenants.insight import traces

REJECTED = "rejected"
"""Outcome of a question that the contract does not admit, such as an empty one: HTTP 422."""
MAX_PASSAGES = 10


def ask_all(ask: Ask, cases: Sequence[Case], concurrency: int, progress: Callable[[int, int], None]) -> list[Record]:
    """Ask the cases for the tenant in context; return their records in the same order.

    :param concurrency: number of cases at once. Times are those of single questions only at 1.
    :param progress: called with the number of finished cases and the total.
    """
    finished = 0
    counting = Lock()

    def work(case: Case) -> Record:
        nonlocal finished
        record = ask_case(ask, case)
        with counting:
            finished += 1
            progress(finished, len(cases))
        return record

    if concurrency == 1:
        return [work(case) for case in cases]
    with ThreadPoolExecutor(concurrency) as pool:
        futures = [pool.submit(copy_context().run, work, case) for case in cases]
        return [future.result() for future in futures]


def ask_case(ask: Ask, case: Case) -> Record:
    """Ask one case after the earlier questions of its conversation. The records store nothing of it."""
    try:
        history, request = conversation(ask, case), _request(case.question, case.locale)
    except ValidationError:
        return Record(case, REJECTED)
    started_at, asked_at = perf_counter(), datetime.now(UTC)
    turn, steps = ask.finish(begin(request, history=history))
    spent = (perf_counter() - started_at) * 1_000
    trace_id = "" if ask.sender is None else traces.trace_id(turn.turn_id)
    answer = answer_of(turn, trace_id=trace_id, steps=steps, latency_ms=spent)
    record = replace(
        recorded(case, turn),
        milliseconds=spent,
        steps=steps.milliseconds,
        calls=answer.meta.llm_calls,
        tokens=answer.meta.tokens.get("total", 0),
        trace_id=trace_id,
    )
    if ask.sender is None:
        return record
    ask.sender.take(Trace.of(request, steps, answer, asked_at=asked_at, pipeline=ask.engine.digest))
    return record


def conversation(ask: Ask, case: Case) -> tuple[Exchange, ...]:
    """Ask the earlier questions of a case, and return the conversation."""
    history: tuple[Exchange, ...] = ()
    for question in case.history:
        turn, _ = ask.finish(begin(_request(question, case.locale), history=history))
        said = turn.standalone_question or turn.question
        history = (*history, Exchange(said, turn.outcome or "failed", turn.reply.clarification or ()))
    return history


def _request(question: str, locale: str) -> AskRequest:
    return AskRequest(question=question, locale=locale or None)


def recorded(case: Case, turn: Turn) -> Record:
    """Convert a finished turn to the record of its case."""
    draft = turn.draft
    record = Record(
        case=case,
        outcome=turn.outcome or "failed",
        reason=turn.reason or "",
        intent=turn.intent,
        codes=turn.query.codes,
        ranked=tuple(dict.fromkeys(passage.doc_id for passage in turn.evidence.passages)),
        text=turn.reply.text,
        passages=_ranked_passages(turn),
        score=turn.evidence.adequacy,
        passes=turn.passes,
        degraded=turn.degraded,
    )
    if case.key:
        record = _with_evidence(record, turn)
    elif case.gold_docs:
        record = replace(record, offered=tuple(map(_offer, turn.reply.articles)), cited=_cited(draft))
    if draft is None or not record.shown:
        return record
    supported = bool(draft.claims) and all(claim.status == "supported" for claim in draft.claims)
    return replace(
        record,
        sentences=_sentences(draft),
        confidence=draft.confidence,
        checked=draft.factuality_status == "checked" and supported,
        factuality=draft.factuality if draft.factuality_status == "checked" else 0.0,
    )


def _with_evidence(record: Record, turn: Turn) -> Record:
    """Add the evidence that an answer key is compared with, also for turns that show no answer."""
    draft = turn.draft
    record = replace(record, offered=tuple(map(_offer, turn.reply.articles)))
    if draft is None:
        return record
    return replace(record, draft=draft.text, confidence=draft.confidence, cited=_cited(draft))


def _cited(draft: Draft | None) -> tuple[Page, ...]:
    """Return the passages cited by the text of a draft."""
    citations = draft.citations if draft else ()
    text = draft.text if draft else ""
    return tuple(
        _page(citation.passage)
        for citation in citations
        if citation.origin == "primary" and f"[{citation.index}]" in text
    )


def _page(passage: Passage) -> Page:
    return Page(passage.doc_id, passage.title, passage.heading, passage.text)


def _offer(article: Article) -> Offer:
    passage = article.passage
    return Offer(
        passage.doc_id, passage.title, passage.heading, passage.url or "", article.snippet, round(article.score, 4)
    )


def _ranked_passages(turn: Turn) -> tuple[RankedPassage, ...]:
    judged = turn.evidence.relevance_by_chunk
    return tuple(
        RankedPassage(
            passage.doc_id,
            passage.title,
            passage.heading,
            passage.text,
            round(passage.score, 4),
            round(judged.get(passage.chunk_id, 0.0), 4),
        )
        for passage in turn.evidence.passages[:MAX_PASSAGES]
    )


def _sentences(draft: Draft) -> tuple[Sentence, ...]:
    by_index = {citation.index: citation for citation in draft.citations}
    return tuple(
        Sentence(
            without_citations(claim.text),
            tuple(_quote(by_index[index]) for index in claim.citations if index in by_index),
        )
        for claim in draft.claims
    )


def _quote(citation: Citation) -> Quote:
    start, end = citation.span
    passage = citation.passage
    return Quote(passage.doc_id, citation.excerpt, passage.text[start:end] == citation.excerpt)
