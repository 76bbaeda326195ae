"""The use case of asking, as Hayhooks serves it: `POST /ask/run`, OpenAI's chat completions, a tool of MCP."""

import logging
from collections.abc import AsyncGenerator, Mapping, Sequence
from time import monotonic
from uuid import uuid4

from fastapi_openai_compat.chat_completions import ChatCompletion
from hayhooks.server.utils.base_pipeline_wrapper import BasePipelineWrapper
from starlette.datastructures import Headers
from starlette.responses import Response

from components.language.texts import text
from components.models.calls import collect_calls
from components.turn import Quality
from pipelines import problems
from pipelines.ask import openai_chat
from pipelines.ask.contract import AskFilters, AskRequest
from pipelines.ask.runner import Runner
from pipelines.ask.usecase import Ask
from settings import get_settings
from tenants.accounts.registry import Registry
from tenants.core.context import Tenant, acting_as
from tenants.core.errors import InternalFault, OporaError, trail

log = logging.getLogger("opora.ask")

REHEARSED = 8
"""Number of tenants whose embedded index is opened at startup; opening one takes some 0.5 s at 10k chunks."""

REHEARSAL_SECONDS = 5.0
"""Time limit of model calls in all rehearsals: a model that takes longer to load goes on loading after the start."""


class PipelineWrapper(BasePipelineWrapper):
    """Passes questions from Hayhooks to the runner."""

    skip_a2a = True

    def setup(self) -> None:
        """Build the use case; called once, while the host starts."""
        settings = get_settings()
        self.ask = Ask()
        self.runner = Runner(
            self.ask,
            settings.workers,
            settings.turn_timeout_seconds,
            model_workers=settings.model_workers,
        )

    def warm_up(self) -> None:
        """Load what the first question needs and rehearse one with the first tenants, so no visitor waits for it."""
        self.ask.warm_up()
        ends_at = monotonic() + REHEARSAL_SECONDS
        for tenant in Registry().list()[: 1 if get_settings().qdrant_url else REHEARSED]:
            question = AskRequest(question=text("service.rehearsal", tenant.locale))
            with acting_as(Tenant(tenant.tenant_id, "rehearsal")), collect_calls(ends_at):
                try:
                    self.ask.turn(question)
                except OporaError as error:
                    log.warning("no rehearsal for %r: %s", tenant.tenant_id, error.code)

    def close(self) -> None:
        """Finish the running questions, drop the queued ones, release the engine."""
        self.runner.close()
        self.ask.close()

    async def run_api_async(  # type: ignore[override]
        self,
        question: str,
        session_id: str | None = None,
        locale: str | None = None,
        quality: Quality = "balanced",
        filters: AskFilters | None = None,
        anonymous: bool = False,
        context: str | None = None,
        contact: str | None = None,
        headers: Headers | None = None,
    ) -> Response:
        """Answer a question from the tenant's knowledge base.

        :param question: 1 to 2000 characters.
        :param session_id: the conversation it belongs to.
        :param locale: language of the reply, `ru` or `en`.
        :param quality: how many extra passes may be spent: `quick`, `balanced`, `thorough`.
        :param filters: which passages may be retrieved.
        :param anonymous: keep nothing about the person.
        :param context: the product or page that the customer looks at.
        :param contact: how a member of staff can reach the customer: an e-mail address or a phone number.
        :returns: the `turn.v1` object, or a problem object.
        """
        turn_id = None
        try:
            # Hayhooks has turned `filters` into a mapping by now; the contract checks it again.
            request = problems.checked(
                AskRequest,
                question=question,
                session_id=session_id,
                locale=locale,
                quality=quality,
                filters=filters,
                anonymous=anonymous,
                context=context,
                contact=contact,
            )
            turn_id = str(uuid4())
            answer = await self.runner.answer(request, turn_id, (headers or Headers()).get("idempotency-key"))
        except OporaError as error:
            return problems.response(error, turn_id=turn_id)
        except Exception as error:
            log.error("turn %s: %s", turn_id, trail(error))
            return problems.response(InternalFault(), turn_id=turn_id)
        return problems.TextResponse(answer.encoded, media_type="application/json")

    async def run_chat_completion_async(  # type: ignore[override]
        self,
        model: str,  # noqa: ARG002 - Hayhooks chose this wrapper by it
        messages: Sequence[Mapping[str, object]],
        body: Mapping[str, object],
        headers: Headers | None = None,
    ) -> ChatCompletion | AsyncGenerator[ChatCompletion, None]:
        """Answer the last message of the user from the tenant's knowledge base.

        :raises ProblemException: the caller's mistake, or a reason to try again.
        """
        try:
            request = problems.checked(openai_chat.ChatRequest, **{**body, "messages": messages})
            return await openai_chat.complete(self.runner, request, (headers or Headers()).get("idempotency-key"))
        except OporaError as error:
            raise problems.ProblemException(error) from error
        except Exception as error:
            log.error("chat completion: %s", trail(error))
            raise problems.ProblemException(InternalFault()) from error
