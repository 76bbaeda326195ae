"""A document encoded as it would be stored, to be asked before it is."""

from collections.abc import Mapping, Sequence

from components.ingest.analysis import Text
from components.ingest.document import Revision
from components.ingest.encode import embedded, encoded
from components.ingest.terms import explained_codes, stored_meta
from components.ingest.text_processes import TEXT_PROCESSES
from components.ingest.write import finalised, payload_of, text_of
from components.language.encoder_settings import EncoderSettings, settings_from
from tenants.core import context
from tenants.core.json import Json
from tenants.core.points import Dense
from tenants.index import open_collection
from tenants.knowledge import documents
from tenants.knowledge.lexicon import ChunkTerms
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
    old_texts = [
        Text(hit.id, str(stored_meta(hit)["title"]), str(stored_meta(hit)["heading"]), str(hit.payload["content"]))
        for hit in old
    ]
    return TrialDocument(
        tenant_id=context.current().tenant_id,
        record=final.record,
        chunks=_written(texts, payloads, settings, embedded(texts, settings)),
        encoder=encoder,
        dimensions=settings.dimensions,
        replaced=_written(old_texts, [hit.payload for hit in old], settings, {}),
    )


def _written(
    texts: Sequence[Text],
    payloads: Sequence[Mapping[str, Json]],
    settings: EncoderSettings,
    dense: Mapping[Text, Dense],
) -> WrittenChunks:
    analyses = list(TEXT_PROCESSES.analysed(texts, settings))
    points = [encoded(*parts, dense) for parts in zip(texts, payloads, analyses, strict=True)]
    terms = [
        ChunkTerms(analysis.stems, analysis.words, explained_codes(text.title, text.heading, text.text))
        for text, analysis in zip(texts, analyses, strict=True)
    ]
    return WrittenChunks(points, terms)
