"""`/contradictions` and `/agreements` over HTTP. The gate has checked the token and set the tenant.

To make one document take precedence, add an edge: `PUT /edges` with `supersedes`.
"""

from typing import Annotated

from fastapi import Query
from pydantic import BaseModel, ConfigDict, StringConstraints

from pipelines.ask.articles import contradictions
from pipelines.ask.articles.contradictions import Contradiction
from pipelines.routes import OpenRouter
from tenants.knowledge import agreements
from tenants.knowledge.agreements import Agreement

_CONTRADICTIONS, _AGREEMENTS = "/contradictions", "/agreements"
_BODY_BYTES = 2_000
_ChunkId = Annotated[str, StringConstraints(min_length=1, max_length=64, pattern=r"^[^\x00]*$")]


class PairRequest(BaseModel):
    """Two passages by chunk id, in any order."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    chunk_id: _ChunkId
    other_chunk_id: _ChunkId


class ContradictionsAnswer(BaseModel):
    """Open contradictions, newest first."""

    contradictions: tuple[Contradiction, ...]


class AgreementsAnswer(BaseModel):
    """Pairs of passages marked as consistent, newest first."""

    agreements: tuple[Agreement, ...]


router = OpenRouter("ingest", limit=_BODY_BYTES, tags=["relations"])


@router.get(_CONTRADICTIONS)
def list_contradictions() -> ContradictionsAnswer:
    """List documents that contradict each other."""
    return ContradictionsAnswer(contradictions=contradictions.undecided())


@router.get(_AGREEMENTS)
def list_agreements() -> AgreementsAnswer:
    """List pairs of passages marked as consistent."""
    return AgreementsAnswer(agreements=agreements.all())


@router.put(_AGREEMENTS)
def put_agreement(body: PairRequest) -> AgreementsAnswer:
    """Mark two passages as consistent. Returns all such pairs."""
    contradictions.agree(body.chunk_id, body.other_chunk_id)
    return AgreementsAnswer(agreements=agreements.all())


@router.delete(_AGREEMENTS)
def remove_agreement(query: Annotated[PairRequest, Query()]) -> AgreementsAnswer:
    """Undo the mark. Returns the remaining pairs."""
    agreements.remove(query.chunk_id, query.other_chunk_id)
    return AgreementsAnswer(agreements=agreements.all())
