"""The metadata of chunks."""

import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime

from haystack import component

from components.ingest.document import Chunk, Revision
from components.ingest.metadata import checked_metadata, storable
from components.turn import DocumentStatus, Trust
from tenants.core import context, fairness
from tenants.core.json import Json

_CYRILLIC = re.compile("[а-яё]", re.IGNORECASE)
_LATIN = re.compile("[a-z]", re.IGNORECASE)
_SAMPLE = 20_000
_DEFAULTS = ("trust", "status", "priority", "source_type", "evidence_tier", "project_key")


@component
class ChunkEnricher:
    """Give every chunk its metadata. The document's own metadata override the defaults set here.

    :param trust: trust of documents that do not set it: `accepted` (canonical), `auto` or `raw`.
    :param status: `active`, `superseded`, `deprecated` or `archived`.
    :param priority: 0–100.
    :param source_type: what kind of source it is, for filtering.
    :param evidence_tier: how strong evidence it is, for filtering.
    :param project_key: the product or project it belongs to, for filtering.
    :param tags: for filtering; a document's own tags replace them.
    """

    def __init__(
        self,
        trust: Trust = "auto",
        status: DocumentStatus = "active",
        priority: int = 0,
        source_type: str = "article",
        evidence_tier: str = "",
        project_key: str = "",
        tags: list[str] | None = None,
    ) -> None:
        self.trust = trust
        self.status = status
        self.priority = priority
        self.source_type = source_type
        self.evidence_tier = evidence_tier
        self.project_key = project_key
        self.tags = tags
        defaults: dict[str, Json] = {name: getattr(self, name) for name in _DEFAULTS} | {"tags": tags or []}
        # An empty value is left unchanged and matches no filter.
        self._defaults = defaults | checked_metadata({name: value for name, value in defaults.items() if value != ""})

    @component.output_types(revisions=list[Revision])
    def run(self, revisions: list[Revision]) -> dict[str, list[Revision]]:
        """Complete the metadata of each revision's chunks."""
        today = datetime.now(UTC).date().isoformat()
        return {"revisions": [self._enriched(revision, today) for revision in revisions]}

    def _enriched(self, revision: Revision, today: str) -> Revision:
        fairness.yield_to_questions()
        document = revision.document
        shared: dict[str, Json] = {
            "updated_at": today,
            **storable(document.meta),
            **{name: document.meta.get(name, default) for name, default in self._defaults.items()},
            # From here on nothing that came with the document may interfere: the tenant comes from the token alone.
            "tenant": context.current().tenant_id,
            "doc_id": document.doc_id,
            "title": revision.title,
            "source": document.source,
            "url": document.url,
            "lang": document.lang or language(document.text),
        }
        return replace(revision, chunks=tuple(_described(chunk, shared) for chunk in revision.chunks))


def _described(chunk: Chunk, shared: Mapping[str, Json]) -> Chunk:
    chunk_meta: dict[str, Json] = {
        "chunk_id": chunk.chunk_id,
        "chunk_index": chunk.index,
        "heading": chunk.heading,
        "sentences": [[start, end] for start, end in chunk.sentences],
    }
    return replace(chunk, meta={**shared, **chunk.meta, **chunk_meta})


def language(text: str) -> str:
    """Return `ru` or `en`. Technical Russian has many Latin words, so a quarter of Cyrillic letters is enough."""
    sample = text[:_SAMPLE]
    cyrillic, latin = len(_CYRILLIC.findall(sample)), len(_LATIN.findall(sample))
    return "ru" if cyrillic * 3 >= latin else "en"
