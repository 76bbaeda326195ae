"""A finished turn as the contract's object."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict

from components import turn as turns
from components.answer.generative import WRITING
from components.language.marks import HEADING_LINE
from components.models.calls import NOT_ATTEMPTED, Call
from components.turn import SHOWN
from pipelines.ask.contract import (
    AnswerPart,
    ArticlePart,
    ChunkCounts,
    CitationPart,
    Clarification,
    Factuality,
    Handoff,
    Meta,
    QueryPart,
    Scores,
    SourcePart,
    TurnAnswer,
    VerdictPart,
)
from pipelines.ask.help_links import HelpLinks
from pipelines.ask.iterations import iterations
from pipelines.ask.steps import Steps

_CARD_LENGTH = 2_000
"""Characters of a section that an article's card shows."""


def answer_of(
    turn: turns.Turn,
    *,
    trace_id: str = "",
    steps: Steps | None = None,
    latency_ms: float = 0.0,
    handoff: Handoff | None = None,
    links: HelpLinks | None = None,
) -> TurnAnswer:
    """Return the contract object of a finished turn.

    :param turn: a turn whose `outcome` is decided.
    :param steps: of the pipeline, with the calls of models.
    :param latency_ms: the whole turn, as the use case measured it.
    :param links: to the help centre, for documents without a `url`.
    :raises ValueError: the turn has no outcome yet.
    """
    if turn.outcome is None:
        raise ValueError("turn has no outcome")
    draft = turn.draft if turn.outcome in SHOWN else None
    citations = draft.citations if draft else ()
    return TurnAnswer(
        turn_id=turn.turn_id,
        trace_id=trace_id,
        session_id=turn.session_id,
        locale=turn.locale,
        outcome=turn.outcome,
        refusal_reason=turn.reason,
        verdict=VerdictPart(
            route=turn.verdict.route,
            reasons=turn.verdict.reasons,
            iterations=turn.passes,
            max_iterations=turn.max_passes,
            gates=turn.verdict.gates,
        ),
        answer=AnswerPart(
            text=turn.reply.text,
            notice=turn.reply.notice,
            verified=_verified(draft),
            missing=draft.missing if draft else (),
        ),
        citations=tuple(_citation(citation, draft, links) for citation in citations),
        sources=tuple(_source(citation) for citation in citations),
        claims=draft.claims if draft else (),
        scores=_scores(turn, draft),
        routing=turn,
        articles=tuple(_article(article, turn.query.search, links) for article in turn.reply.articles),
        suggested_questions=turn.reply.suggestions,
        clarification=Clarification(options=turn.reply.clarification) if turn.reply.clarification else None,
        handoff=handoff,
        meta=_meta(turn, citations, steps or Steps(), latency_ms),
    )


def _verified(draft: turns.Draft | None) -> bool:
    return (
        draft is not None
        and draft.factuality_status == "checked"
        and all(claim.status == "supported" for claim in draft.claims)
    )


def _citation(citation: turns.Citation, draft: turns.Draft | None, links: HelpLinks | None) -> CitationPart:
    passage = citation.passage
    return CitationPart(
        index=citation.index,
        doc_id=passage.doc_id,
        chunk_id=passage.chunk_id,
        title=passage.title,
        heading=passage.heading,
        excerpt=citation.excerpt,
        span=citation.span,
        url=_address(passage, citation.excerpt, links),
        cited=draft is not None and f"[{citation.index}]" in draft.text,
        origin=citation.origin,
        trust=passage.trust,
        score=passage.score,
        updated_at=passage.updated_at,
    )


def _article(article: turns.Article, query: str, links: HelpLinks | None) -> ArticlePart:
    passage = article.passage
    return ArticlePart(
        doc_id=passage.doc_id,
        title=passage.title,
        heading=passage.heading,
        url=_address(passage, article.snippet, links),
        snippet=article.snippet,
        score=article.score,
        text=HEADING_LINE.sub(r"\1", passage.text)[:_CARD_LENGTH],
        sections=links.sections(article, query) if links else (),
    )


def _address(passage: turns.Passage, quoted: str, links: HelpLinks | None) -> str | None:
    return passage.url or (links.to(passage, quoted) if links else None)


def _source(citation: turns.Citation) -> SourcePart:
    passage = citation.passage
    return SourcePart(
        source=passage.source or passage.doc_id,
        page_content=passage.text,
        snippet=citation.excerpt,
        score=passage.score,
    )


def _scores(turn: turns.Turn, draft: turns.Draft | None) -> Scores:
    if draft is None:
        draft = turns.Draft("", (), (), relevance=turn.evidence.relevance)
    return Scores(
        quality=draft.quality,
        relevance=draft.relevance,
        factuality=Factuality(value=draft.factuality, status=draft.factuality_status),
        adequacy=turn.evidence.adequacy,
        confidence=draft.confidence,
        hallucination=1.0 - draft.factuality / 100.0,
    )


def _meta(
    turn: turns.Turn,
    citations: tuple[turns.Citation, ...],
    steps: Steps,
    latency_ms: float,
) -> Meta:
    completed = [call for call in steps.calls if call.outcome not in NOT_ATTEMPTED]
    costs = [call.cost_usd for call in completed if call.cost_usd is not None]
    wrote = _writer(turn, completed)
    return Meta(
        provider=wrote.provider if wrote else "local",
        model=wrote.model if wrote else "extractive",
        quality=turn.quality,
        cached=turn.evidence.cached,
        latency_ms=latency_ms,
        latency_ms_by_step=steps.milliseconds,
        iterations=tuple(part for part, _ in iterations(steps.finished)),
        llm_calls=len(completed),
        tokens=_tokens(completed),
        cost_usd=round(sum(costs), 8) if costs else None,
        chunks=ChunkCounts(
            retrieved=turn.evidence.retrieved,
            graded=len(turn.evidence.relevant_ids),
            used=len({citation.passage.chunk_id for citation in citations if citation.origin == "primary"}),
        ),
        # A refusal reveals nothing of what was retrieved.
        beside=turn.evidence if turn.outcome in SHOWN else turns.Evidence(),
        filters={name: value for name, value in asdict(turn.filters).items() if value is not None},
        query=QueryPart(
            original=turn.question, search=turn.query.search, hyde=turn.query.hyde, recovery=turn.query.recovery
        ),
        degraded=tuple(dict.fromkeys((*turn.degraded, *_served_by_fallback(steps.calls)))),
        prompt_version=", ".join(dict.fromkeys(call.prompt for call in completed)),
    )


def _writer(turn: turns.Turn, completed: Sequence[Call]) -> Call | None:
    """Return the call that wrote the answer; None for a quoted answer and for a turn without an answer."""
    if turn.outcome not in SHOWN or turn.draft is None or turn.draft.quoted:
        return None
    if named := turn.draft.model:
        return next((call for call in completed if not call.prompt and call.model == named), None)
    return next((call for call in reversed(completed) if call.step == WRITING), None)


def _served_by_fallback(calls: Sequence[Call]) -> Iterator[str]:
    """Steps that a fallback model served after another one failed. Where all failed, the step itself reports it."""
    served = {call.step for call in calls if call.outcome == "ok"}
    yield from (call.step for call in calls if call.outcome != "ok" and call.step in served)


def _tokens(completed: Sequence[Call]) -> Mapping[str, int]:
    if not completed:
        return {}
    prompt, completion = (
        sum(call.prompt_tokens for call in completed),
        sum(call.completion_tokens for call in completed),
    )
    return {"prompt": prompt, "completion": completion, "total": prompt + completion}
