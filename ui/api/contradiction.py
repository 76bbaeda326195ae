"""`/contradictions` and `/agreements` over HTTP. The gate has checked the token and set the tenant.

That one document goes before the other from now on is an edge: `PUT /edges` with `supersedes`.
"""

from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import BaseModel, ConfigDict, StringConstraints

from pipelines.ask.articles import contradictions
from pipelines.ask.articles.contradictions import Contradiction
from pipelines.gate import Route
from tenants.knowledge import agreements
from tenants.knowledge.agreements import Agreement

_CONTRADICTIONS, _AGREEMENTS = "/contradictions", "/agreements"
_BODY_BYTES = 2_000
_ChunkId = Annotated[str, StringConstraints(min_length=1, max_length=64, pattern=r"^[^\x00]*$")]


class PairRequest(BaseModel):
    """Two passages by the ids of their chunks, in any order."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    chunk_id: _ChunkId
    other_chunk_id: _ChunkId


class ContradictionsAnswer(BaseModel):
    """Contradictions that nobody has decided on, the newest first."""

    contradictions: tuple[Contradiction, ...]


class AgreementsAnswer(BaseModel):
    """Pairs of passages that do not contradict each other, the newest first."""

    agreements: tuple[Agreement, ...]


ROUTES = (
    Route("GET", _CONTRADICTIONS, scope="ingest"),
    Route("GET", _AGREEMENTS, scope="ingest"),
    Route("PUT", _AGREEMENTS, scope="ingest", body=PairRequest, limit=_BODY_BYTES),
    Route("DELETE", _AGREEMENTS, scope="ingest"),
)

router = APIRouter(tags=["relations"])


@router.get(_CONTRADICTIONS)
def list_contradictions() -> ContradictionsAnswer:
    """Documents that contradict each other."""
    return ContradictionsAnswer(contradictions=contradictions.undecided())


@router.get(_AGREEMENTS)
def list_agreements() -> AgreementsAnswer:
    """Pairs of passages that do not."""
    return AgreementsAnswer(agreements=agreements.all())


@router.put(_AGREEMENTS)
def put_agreement(body: PairRequest) -> AgreementsAnswer:
    """Note that two passages do not contradict each other; the answer is all that there are."""
    contradictions.agree(body.chunk_id, body.other_chunk_id)
    return AgreementsAnswer(agreements=agreements.all())


@router.delete(_AGREEMENTS)
def remove_agreement(query: Annotated[PairRequest, Query()]) -> AgreementsAnswer:
    """Take that back; the answer is what is left."""
    agreements.remove(query.chunk_id, query.other_chunk_id)
    return AgreementsAnswer(agreements=agreements.all())
