"""Running the cases of a set through the product's own use case."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import replace
from datetime import UTC, datetime
from itertools import count
from time import perf_counter
from typing import TypeVar

from pydantic import ValidationError

from components.turn import Article, Citation, Draft, Exchange, Passage, Turn
from evaluation.cases import Case, Offer, Page, Quote, RankedPassage, Record, Sentence
from evaluation.metrics.text_checks import without_citations
from pipelines.ask.answering import answer_of
from pipelines.ask.contract import AskRequest
from pipelines.ask.tracing.trace import Trace
from pipelines.ask.usecase import Ask, begin
from tenants.insight import traces

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")

REJECTED = "rejected"
"""Outcome of a question that the contract does not admit, such as an empty one: HTTP 422."""
MAX_PASSAGES = 10


def concurrently(
    work: Callable[[_Item], _Result],
    items: Sequence[_Item],
    threads: int,
    progress: Callable[[int, int], None] = lambda *_: None,
) -> list[_Result]:
    """Do the work for every item with so many threads, in the context of the caller; return the results in order."""
    finished = count(1)

    def counted(item: _Item) -> _Result:
        result = work(item)
        progress(next(finished), len(items))
        return result

    with ThreadPoolExecutor(threads) as pool:
        futures = [pool.submit(copy_context().run, counted, item) for item in items]
        return [future.result() for future in futures]


def ask_case(ask: Ask, case: Case) -> Record:
    """Ask one case after the earlier questions of its conversation. Nothing is recorded."""
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
    history: tuple[Exchange, ...] = ()
    for question in case.history:
        turn, _ = ask.finish(begin(_request(question, case.locale), history=history))
        said = turn.standalone_question or turn.question
        history = (*history, Exchange(said, turn.outcome or "failed", turn.reply.clarification or ()))
    return history


def _request(question: str, locale: str) -> AskRequest:
    return AskRequest(question=question, locale=locale or None)


def recorded(case: Case, turn: Turn) -> Record:
    draft, labelled = turn.draft, bool(case.key or case.gold_docs)
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
        offered=tuple(map(_offer, turn.reply.articles)) if labelled else (),
        offers_articles=bool(turn.reply.articles) and turn.reason == "no_relevant_context",
        cited=_cited(draft) if labelled else (),
        # An answer key also judges turns that show no answer.
        draft=draft.text if draft and case.key else "",
        confidence=draft.confidence if draft and case.key else 0.0,
    )
    if draft is None or not record.shown:
        return record
    supported = bool(draft.claims) and all(claim.status == "supported" for claim in draft.claims)
    return replace(
        record,
        sentences=_sentences(draft),
        confidence=draft.confidence,
        checked=draft.factuality_status == "checked" and supported,
    )


def _cited(draft: Draft | None) -> tuple[Page, ...]:
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
