"""Traces: every turn, step by step, for people who investigate how an answer was produced.

A trace is built after its turn, off the critical path: turns are immutable, so keeping references to them is all that a
turn does for its trace. A thread (`sender`) then takes the outputs of each step (`step_outputs`), describes them as
spans with the conventions of OpenInference (`spans`) and exports them by OTLP (`export`). No global tracer is set,
nothing is read from a client's headers, and without a configured address none of this runs.

Contents of a span: always figures, ids and reasons; texts (questions and numbers in them, prompts, passages, answers,
claims) only for tenants whose policy allows it (`trace_content`), and without personal data.

This module holds the data from which the trace of one turn is built.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Self

from pipelines.ask.contract import AskRequest, TurnAnswer
from pipelines.ask.steps import Steps
from tenants.accounts import policy
from tenants.core.context import current
from tenants.privacy import persons


@dataclass(frozen=True, slots=True)
class Trace:
    """A turn, kept until its trace is sent.

    :param person: digest of the person; empty, like `session_id`, for an anonymous turn.
    :param asked_at: nanoseconds since 1970.
    :param pipeline: digest of the pipeline that answered.
    :param content: whether its texts may be sent, without personal data.
    """

    tenant_id: str
    person: str
    session_id: str
    asked_at: int
    steps: Steps
    answer: TurnAnswer
    pipeline: str
    content: bool

    @classmethod
    def of(cls, request: AskRequest, steps: Steps, answer: TurnAnswer, *, asked_at: datetime, pipeline: str) -> Self:
        caller = current()
        return cls(
            tenant_id=caller.tenant_id,
            person="" if request.anonymous else persons.digest(caller.tenant_id, caller.subject),
            session_id="" if request.anonymous else answer.session_id,
            asked_at=int(asked_at.timestamp() * 1e9),
            steps=steps,
            answer=answer,
            pipeline=pipeline,
            content=policy.current().trace_content,
        )
