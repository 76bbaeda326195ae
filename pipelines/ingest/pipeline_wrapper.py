"""`POST /ingest/run`: the use case of ingesting, as Hayhooks serves it."""

import asyncio
import json
import logging
from functools import partial

from hayhooks.server.utils.base_pipeline_wrapper import BasePipelineWrapper
from pydantic import JsonValue, ValidationError
from starlette.responses import Response

from pipelines import problems
from pipelines.ingest.contract import IngestRequest
from pipelines.ingest.usecase import Ingest
from tenants.core.errors import InternalFault, OporaError, trail
from tenants.work.seats import Seats

log = logging.getLogger("opora.ingest")

_PATIENCE_SECONDS = 5.0
"""Time that a request waits for a job of its tenant; a job does not wait for requests."""

_AT_ONCE = 8
"""Number of tenants with a request in progress, one each, so that a large one does not block other tenants."""


class PipelineWrapper(BasePipelineWrapper):
    """Runs one ingest per tenant at a time; questions have priority."""

    skip_mcp = True
    skip_a2a = True

    def setup(self) -> None:
        """Build the use case; called once, while the host starts."""
        self.ingest = Ingest()
        self.seats = Seats(_AT_ONCE, _AT_ONCE, each=1)

    def warm_up(self) -> None:
        self.ingest.warm_up()

    def close(self) -> None:
        """Finish the request in progress; requests in the queue are dropped."""
        self.seats.close()

    async def run_api_async(self, documents: list[dict[str, JsonValue]]) -> Response:  # type: ignore[override]
        """Add or replace articles in the tenant's knowledge base.

        :param documents: articles with `doc_id`, `title`, `text`; further keys are kept as metadata.
        :returns: a report of what changed, or a problem object.
        """
        try:
            # Checked by the gate in strict form already; this is the same contract for callers without one.
            request = IngestRequest.model_validate({"documents": documents})
            work = self.seats.submit(partial(self._work, request))
            body = await asyncio.wrap_future(work)
        except OporaError as error:
            return problems.response(error)
        except ValidationError as error:
            return problems.response(problems.from_validation(error))
        except Exception as error:
            log.error("ingest: %s", trail(error))
            return problems.response(InternalFault())
        return Response(body, media_type="application/json")

    def _work(self, request: IngestRequest) -> bytes:
        documents = [article.to_document() for article in request.documents]
        report = self.ingest.run(documents, patience=_PATIENCE_SECONDS)
        if report.errors and not report.added + report.updated + report.unchanged:
            # Nothing was taken: a success would hide it.
            raise problems.UnreadableFields(
                tuple((f"documents.{refusal.doc_id}", refusal.error.code) for refusal in report.errors[:20])
            )
        return json.dumps(report.as_json(), ensure_ascii=False).encode()
