"""The record of a turn: what happened and what is needed to replay it, without personal data.

The content is one JSON object, `audit.v1`:

- `request`: question (redacted), session, locale, quality, filters, whether it was anonymous;
- `history`: the earlier conversation (redacted) as the turn received it;
- `state`: digest of the pipeline and generation of the index that answered;
- `found`: the documents of all passages that were retrieved, in order;
- `retrieved`: these passages with all their scores, by id;
- `calls`: the model calls with step, model, prompt version, outcome, and digest and size of the prompt; its text
  (redacted) if the tenant's policy traces content;
- `answer`: the `turn.v1` object, redacted.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from hashlib import sha256

from components.language.normalise import fold
from components.language.personal import mask
from components.language.words import stems
from components.models.calls import Call
from components.turn import UNANSWERED, Evidence, Passage, Turn
from pipelines.ask.contract import QUESTION_LIMIT, AskRequest, TurnAnswer
from tenants.accounts import policy, registry
from tenants.audit.entry import Entry, canonical
from tenants.core.context import current
from tenants.knowledge.gaps import Miss
from tenants.privacy import persons

SCHEMA = "audit.v1"

_WORDED = frozenset(
    "text notice missing title heading excerpt page_content snippet quote original search suggested_questions options "
    "offer question filters".split()
)
"""Keys of the answer that hold text, all that is below them included. Others hold numbers, codes and ids, which must
not be masked."""

_FOLLOWED_UP = frozenset({"low_confidence", "budget_exhausted"})
"""Reasons of a handoff that the knowledge base could have made unnecessary."""
_NEAREST = 3

PROMPT_LIMIT = 50_000


def entry(
    request: AskRequest,
    turn: Turn,
    answer: TurnAnswer,
    *,
    at: datetime,
    pipeline: str,
    gaps: bool = True,
    calls: Sequence[Call] = (),
) -> Entry:
    """Return the record of a turn, for the tenant in context."""
    question = mask(request.question)[:QUESTION_LIMIT]
    session_id = "" if request.anonymous else answer.session_id
    redacted_answer = redacted(answer, keep_session=not request.anonymous)
    with_prompts = bool(calls) and policy.current().trace_content
    about = canonical(
        {
            "schema": SCHEMA,
            "request": {
                "question": question,
                "session_id": session_id or None,
                "locale": request.locale,
                "quality": request.quality,
                "filters": _masked(request.filters.model_dump(), worded=True) if request.filters else None,
                "anonymous": request.anonymous,
                "context": mask(request.context) if request.context else None,
            },
            "state": {"pipeline": pipeline, "generation": _generation()},
            "history": [
                [mask(exchange.question), exchange.outcome, exchange.options, mask(exchange.reply)]
                for exchange in turn.history
            ],
            "found": list(dict.fromkeys(passage.doc_id for passage in turn.evidence.passages)),
            "retrieved": [_passage(passage, turn.evidence) for passage in turn.evidence.passages],
            "calls": [_call(call, with_prompt=with_prompts) for call in calls],
        }
    )
    caller = current()
    return Entry(
        tenant_id=caller.tenant_id,
        turn_id=answer.turn_id,
        at=at,
        outcome=answer.outcome,
        reason=answer.refusal_reason,
        person="" if request.anonymous else persons.digest(caller.tenant_id, caller.subject),
        session_id=session_id,
        misses=misses(turn, answer) if gaps else (),
        body=f'{{"answer":{redacted_answer},{about[1:]}',
    )


def _passage(passage: Passage, evidence: Evidence) -> dict[str, object]:
    """Return a retrieved passage with its scores; the text of those that were used is in the answer."""
    return {
        "chunk_id": passage.chunk_id,
        "doc_id": passage.doc_id,
        "title": mask(passage.title),
        "heading": mask(passage.heading),
        "score": round(passage.score, 4),
        "scores": {name: round(value, 4) for name, value in passage.scores.items()},
        "relevance": round(evidence.relevance_by_chunk.get(passage.chunk_id, 0.0), 4),
        "relevant": passage.chunk_id in evidence.relevant_ids,
    }


def _call(call: Call, *, with_prompt: bool) -> dict[str, object]:
    prompt = mask(call.request)
    return {
        "step": call.caller or call.step,
        "provider": call.provider,
        "model": call.model,
        "prompt": call.prompt,
        "outcome": call.outcome,
        "milliseconds": round(call.milliseconds, 1),
        "tokens": [call.prompt_tokens, call.completion_tokens],
        "characters": len(prompt),
        "sha256": sha256(prompt.encode("utf-8", "replace")).hexdigest(),
        "text": prompt[:PROMPT_LIMIT] if with_prompt else None,
    }


def redacted(answer: TurnAnswer, *, keep_session: bool = True) -> str:
    if keep_session and all(map(_clean, _passages(answer))) and mask(words := _words(answer)) == words:
        return answer.encoded
    content = answer.model_dump(mode="json") | ({} if keep_session else {"session_id": ""})
    # Keys keep their order, so the steps of a turn stay in the order in which they ran.
    return json.dumps(_masked(content), ensure_ascii=False, separators=(",", ":"))


def _passages(answer: TurnAnswer) -> Iterator[str]:
    """Yield the texts that come from the knowledge base; they repeat often, so masking them is cached."""
    for source in answer.sources:
        yield source.page_content
    for citation in answer.citations:
        yield f"{citation.title}\n{citation.heading}"
    for article in answer.articles:
        yield f"{article.title}\n{article.heading}\n{article.snippet}\n{article.text}"


def _words(answer: TurnAnswer) -> str:
    """Return all other texts of the answer. Quotations are covered by their passages."""
    words = [answer.answer.text, answer.answer.notice or "", *answer.answer.missing, *answer.suggested_questions]
    words += [answer.meta.query.original, answer.meta.query.search, *(claim.text for claim in answer.claims)]
    words += answer.clarification.options if answer.clarification else ()
    words += [answer.handoff.offer or ""] if answer.handoff else ()
    for values in answer.meta.filters.values():
        words += [values] if isinstance(values, str) else values
    return "\n".join(words)


@lru_cache(maxsize=4_096)
def _clean(text: str) -> bool:
    return mask(text) == text


def _masked(value: object, *, worded: bool = False) -> object:
    if isinstance(value, str):
        return mask(value) if worded else value
    if isinstance(value, Mapping):
        return {name: _masked(part, worded=worded or name in _WORDED) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_masked(part, worded=worded) for part in value]
    return value


def _generation() -> int:
    try:
        return registry.current().placement.generation
    except Exception:
        # The database may be unavailable, and the turn must be recorded anyway.
        return 0


def misses(turn: Turn, answer: TurnAnswer) -> tuple[Miss, ...]:
    """Return the knowledge gaps that this turn reveals, each once.

    A request that was filtered (blocked, off topic, small talk, nonsense) or has no content word reveals none.
    """
    if turn.intent != "answerable":
        return ()
    nearest = tuple(dict.fromkeys(passage.doc_id for passage in turn.evidence.passages))[:_NEAREST]
    asked = mask(turn.question)
    if answer.outcome == "partially_answered":
        topics = [mask(topic) for topic in answer.answer.missing if topic not in turn.filtered]
        # Several topics of one message are several gaps, so each is worded by itself.
        missed = (_miss("missing_topic", asked if len(topics) == 1 else topic, topic, nearest) for topic in topics)
        return tuple({miss.key: miss for miss in missed}.values())
    reason = answer.refusal_reason or str(answer.outcome)
    if answer.outcome in UNANSWERED or (answer.outcome == "human_followup" and reason in _FOLLOWED_UP):
        about = mask(turn.standalone_question or turn.question)
        return (_miss(reason, asked, about, nearest),) if stems(about) else ()
    return ()


def _miss(reason: str, question: str, about: str, nearest: tuple[str, ...]) -> Miss:
    """:param about: the standalone form of the question, or what an answer to it left open. It names the gap."""
    found = tuple(dict.fromkeys(stems(about)))
    return Miss(reason, question, " ".join(found) or fold(about), tuple(sorted(found)), nearest)
