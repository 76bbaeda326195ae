"""A document encoded as it would be stored, to be asked before it is."""

from collections.abc import Iterable, Mapping, Sequence

from components.ingest.document import Revision
from components.ingest.encode import Text, embedded, encoded, stored_text, terms_of, text_of
from components.ingest.write import finalised, payload_of
from components.language.encoder_settings import EncoderSettings, settings_from
from tenants.core import context
from tenants.core.json import Json
from tenants.core.points import Dense
from tenants.index import open_collection
from tenants.knowledge import documents
from tenants.knowledge.trial import TrialDocument, WrittenChunks


def on_trial(revision: Revision, first: EncoderSettings) -> TrialDocument:
    """Return the document, ready for `tenants.knowledge.trial.including`. Raises `EmbeddingFailed`.

    :param revision: with its chunks, enriched.
    :param first: how chunks are encoded where the tenant has none yet.
    """
    collection = open_collection()
    encoder = collection.encoder or first.json_form
    settings = settings_from(encoder)
    doc_id = revision.document.doc_id
    records = documents.find([doc_id])
    [final] = finalised([revision], records)
    texts = [text_of(chunk) for chunk in final.revision.chunks]
    payloads = [payload_of(chunk) for chunk in final.revision.chunks]
    old = collection.fetch(records[doc_id].chunk_ids) if doc_id in records else []
    return TrialDocument(
        tenant_id=context.current().tenant_id,
        record=final.record,
        chunks=_written(texts, payloads, settings, embedded(texts, settings)),
        encoder=encoder,
        dimensions=settings.dimensions,
        replaced=_written(map(stored_text, old), [hit.payload for hit in old], settings, {}),
    )


def _written(
    texts: Iterable[Text],
    payloads: Sequence[Mapping[str, Json]],
    settings: EncoderSettings,
    dense: Mapping[Text, Dense],
) -> WrittenChunks:
    texts = list(texts)
    points = [encoded(text, payload, settings, dense) for text, payload in zip(texts, payloads, strict=True)]
    return WrittenChunks(points, [terms_of(text) for text in texts])
