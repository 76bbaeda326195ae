"""The spans of a turn: one for the turn, one per step, one per model call.

Names of attributes are those of OpenInference (`openinference.span.kind`, `retrieval.documents.0.document.id`, …),
which Phoenix reads; `tenant.id` is ours. A step's second run is called `verify #2`.
"""

from collections.abc import Iterator, Mapping, Sequence

from haystack import Document
from opentelemetry.sdk.trace import Event

from components.language.personal import mask
from components.models.calls import Call
from components.passages import to_passage
from pipelines.ask.iterations import iterations
from pipelines.ask.record import PROMPT_LIMIT
from pipelines.ask.steps import Step
from pipelines.ask.tracing.export import Span, Value
from pipelines.ask.tracing.step_outputs import Words, as_json, described, masked, withheld
from pipelines.ask.tracing.trace import Trace
from tenants.insight import traces

_KIND = "openinference.span.kind"
_JSON = "application/json"
_TEXT = "text/plain"
_JUDGES = "components.judge."


def spans(trace: Trace) -> list[Span]:
    words: Words = masked if trace.content else withheld
    made = [_turn(trace, words)]
    previous, iteration = "", 1
    for step in trace.steps.finished:
        iteration = (step.outputs or {}).get("attempt", iteration)
        made.append(_step(step, previous, iteration, trace.steps.clock, words))
        previous = step.name
    for call in trace.steps.calls:
        made.append(_call(call, _place(call, trace.steps.finished), trace.steps.clock, content=trace.content))
    return made


def resource(trace: Trace) -> Mapping[str, str]:
    return {"service.name": "opora", "openinference.project.name": traces.project(trace.tenant_id)}


def _turn(trace: Trace, words: Words) -> Span:
    answer = trace.answer
    ended = trace.asked_at + int(answer.meta.latency_ms * 1e6)
    ended = max([ended, *(trace.steps.clock + step.ended for step in trace.steps.finished[-1:])])
    attributes: dict[str, Value] = {
        _KIND: "CHAIN",
        "tenant.id": trace.tenant_id,
        "tag.tags": [answer.outcome, *([answer.refusal_reason] if answer.refusal_reason else [])],
        "metadata": as_json(_about(trace)),
    }
    if trace.session_id:
        attributes["session.id"] = traces.session(trace.tenant_id, trace.session_id)
    if trace.person:
        attributes["user.id"] = trace.person
    if (question := words(answer.meta.query.original)) is not None:
        attributes |= {"input.value": question, "input.mime_type": _TEXT}
    if (reply := words(f"{answer.answer.notice or ''}\n\n{answer.answer.text}".strip())) is not None:
        attributes |= {"output.value": reply, "output.mime_type": _TEXT}
    else:
        ending = {"outcome": answer.outcome, "reason": answer.refusal_reason}
        attributes |= {"output.value": as_json(ending), "output.mime_type": _JSON}
    events = [*_passes(trace), _outcome(trace, ended)]
    error = (answer.refusal_reason or answer.outcome) if answer.outcome == "failed" else None
    return Span("ask", trace.asked_at, ended, attributes, parent=None, events=events, error=error)


def _about(trace: Trace) -> dict[str, object]:
    answer = trace.answer
    return {
        "tenant": trace.tenant_id,
        "session": trace.session_id,
        "turn_id": answer.turn_id,
        "locale": answer.locale,
        "quality": answer.meta.quality,
        "outcome": answer.outcome,
        "reason": answer.refusal_reason,
        "routing": answer.routing.model_dump(),
        "scores": answer.scores.model_dump(),
        "iterations": answer.verdict.iterations,
        "recovery": answer.meta.query.recovery,
        "provider": answer.meta.provider,
        "model": answer.meta.model,
        "prompt_version": answer.meta.prompt_version,
        "llm_calls": answer.meta.llm_calls,
        "tokens": dict(answer.meta.tokens),
        "cost_usd": answer.meta.cost_usd,
        "degraded": answer.meta.degraded,
        "pipeline": trace.pipeline,
    }


def _passes(trace: Trace) -> Iterator[Event]:
    """Yield the result of each retrieval pass, when its last step has ended."""
    for part, ended in iterations(trace.steps.finished):
        figures = part.model_dump(exclude_none=True)
        found = {f"retriever.{name}": value for name, value in figures.pop("retriever").items()}
        limit = {"max_iterations": trace.answer.verdict.max_iterations}
        yield Event("rag_iteration", {**figures, **found, **limit}, trace.steps.clock + ended)


def _outcome(trace: Trace, at: int) -> Event:
    answer = trace.answer
    attributes: dict[str, Value] = {
        "outcome": answer.outcome,
        "reason": answer.refusal_reason or "",
        "route": answer.verdict.route,
        "reasons": answer.verdict.reasons,
        "iterations": answer.verdict.iterations,
        "max_iterations": answer.verdict.max_iterations,
        "verified": answer.answer.verified,
    }
    return Event("graph_outcome", attributes, at)


def _step(step: Step, previous: str, iteration: int, clock: int, words: Words) -> Span:
    kind = _kind(step.component)
    attributes: dict[str, Value] = {_KIND: kind, "graph.node.id": step.name}
    if previous:
        attributes["graph.node.parent_id"] = previous
    if step.outputs is None:
        return Span(step.label, clock + step.started, clock + step.ended, attributes, error="raised")
    attributes["metadata"] = as_json({"iteration": iteration, "component": step.component})
    prefix = {"RETRIEVER": "retrieval.documents", "RERANKER": "reranker.output_documents"}.get(kind)
    if prefix is not None:
        attributes |= _documents(prefix, step.outputs.get("documents", ()), words)
    if sent := described(step.outputs, words):
        attributes |= {"output.value": as_json(sent), "output.mime_type": _JSON}
    return Span(step.label, clock + step.started, clock + step.ended, attributes)


def _kind(component: str) -> str:
    """Return the span kind, by Haystack's names for components and our folder of judges."""
    name = component.rpartition(".")[2]
    if name.endswith("Retriever"):
        return "RETRIEVER"
    if name.endswith("anker"):
        return "RERANKER"
    if name.endswith("Guard"):
        return "GUARDRAIL"
    return "EVALUATOR" if component.startswith(_JUDGES) else "CHAIN"


def _documents(prefix: str, documents: Sequence[Document], words: Words) -> dict[str, Value]:
    attributes: dict[str, Value] = {}
    for position, document in enumerate(documents):
        passage = to_passage(document)
        at = f"{prefix}.{position}.document."
        attributes[f"{at}id"] = passage.chunk_id
        attributes[f"{at}score"] = passage.score
        about: dict[str, object] = {
            "doc_id": passage.doc_id,
            "scores": {name: round(score, 4) for name, score in passage.scores.items()},
            "trust": passage.trust,
            "status": passage.status,
            "updated_at": passage.updated_at,
        }
        if (title := words(passage.title)) is not None:
            about |= {"title": title, "heading": words(passage.heading), "url": passage.url}
        attributes[f"{at}metadata"] = as_json(about)
        if (content := words(passage.text)) is not None:
            attributes[f"{at}content"] = content
    return attributes


def _place(call: Call, steps: Sequence[Step]) -> int:
    """Return the position of the step that made the call; that of the turn when no step did."""
    return next((position for position, step in enumerate(steps, 1) if step.label == call.caller), 0)


def _call(call: Call, parent: int, clock: int, *, content: bool) -> Span:
    started = clock + int(call.started * 1e9)
    attributes: dict[str, Value] = {
        _KIND: "LLM",
        "llm.provider": call.provider,
        "llm.model_name": call.model,
        "llm.prompt_template.version": call.prompt,
        "llm.token_count.prompt": call.prompt_tokens,
        "llm.token_count.completion": call.completion_tokens,
        "llm.token_count.total": call.prompt_tokens + call.completion_tokens,
        "metadata": as_json({"step": call.step, "tier": call.tier, "outcome": call.outcome}),
        "output.value": call.outcome,
        "output.mime_type": _TEXT,
    }
    if content:
        attributes |= {"input.value": mask(call.request[:PROMPT_LIMIT]), "input.mime_type": _TEXT}
    if call.cost_usd is not None:
        attributes["llm.cost.total"] = call.cost_usd
    ended = started + int(call.milliseconds * 1e6)
    error = None if call.outcome == "ok" else call.outcome
    return Span(f"{call.step} · {call.model}", started, ended, attributes, parent=parent, error=error)
