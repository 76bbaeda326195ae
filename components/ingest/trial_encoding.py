"""A document encoded as it would be stored, to be asked before it is."""

from collections.abc import Mapping, Sequence

from components.ingest.document import Revision
from components.ingest.encode import Payload, Text, embedded, encoded, payload_of, terms_of
from components.ingest.write import finalised
from components.language.encoder_settings import EncoderSettings, settings_from
from tenants.core import context
from tenants.core.points import Dense
from tenants.index import open_collection
from tenants.knowledge import documents
from tenants.knowledge.trial_document import TrialDocument, WrittenChunks


def on_trial(revision: Revision, first: EncoderSettings) -> TrialDocument:
    """Return the document, ready for `tenants.knowledge.trial_document.including`. Raises `EmbeddingFailed`.

    :param revision: with its chunks, enriched.
    :param first: how chunks are encoded where the tenant has none yet.
    """
    collection = open_collection()
    encoder = collection.encoder or first.json_form
    settings = settings_from(encoder)
    doc_id = revision.document.doc_id
    records = documents.find([doc_id])
    [final] = finalised([revision], records)
    payloads = [payload_of(chunk) for chunk in final.revision.chunks]
    old = collection.fetch(records[doc_id].chunk_ids) if doc_id in records else []
    return TrialDocument(
        tenant_id=context.current().tenant_id,
        record=final.record,
        chunks=_written(payloads, settings, embedded(payloads, settings)),
        encoder=encoder,
        dimensions=settings.dimensions,
        replaced=_written([hit.payload for hit in old], settings, {}),
    )


def _written(payloads: Sequence[Payload], settings: EncoderSettings, dense: Mapping[Text, Dense]) -> WrittenChunks:
    points = [encoded(payload, settings, dense) for payload in payloads]
    return WrittenChunks(points, list(map(terms_of, payloads)))
