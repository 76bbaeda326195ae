"""Embedders for stock retrievers: they encode as the index in force does."""

import pytest
from haystack import Document

from components.embed.sparse import SparseDocumentEmbedder, SparseTextEmbedder
from components.embed.text import IndexTextEmbedder
from components.faults import collect_degraded
from components.language.encoder import encode_passage, encode_query
from components.language.encoder_settings import STANDARD, DenseSettings, EncoderSettings
from tenants.index import open_collection

pytestmark = pytest.mark.usefixtures("tenant")


def test_a_question_is_encoded_as_the_index() -> None:
    standard = SparseTextEmbedder().run("Вернуть товар")["sparse_embedding"]
    assert dict(zip(standard.indices, standard.values, strict=True)) == encode_query("Вернуть товар", STANDARD)
    other = EncoderSettings(gram_sizes=(2,))
    open_collection(create=True, encoder=other.json_form)
    chosen = SparseTextEmbedder().run("Вернуть товар")["sparse_embedding"]
    assert set(chosen.indices) == encode_query("Вернуть товар", other).keys()


def test_a_document_is_encoded_with_its_title_and_heading() -> None:
    given = Document(content="Четырнадцать дней.", meta={"title": "Возврат", "heading": None})
    [embedded] = SparseDocumentEmbedder().run([given])["documents"]
    assert given.sparse_embedding is None
    assert embedded.sparse_embedding is not None
    weights = dict(zip(embedded.sparse_embedding.indices, embedded.sparse_embedding.values, strict=True))
    assert weights == encode_passage("Возврат", "", "Четырнадцать дней.", STANDARD)


def test_an_index_without_dense_vectors_embeds_nothing() -> None:
    assert IndexTextEmbedder().run("Вернуть товар") == {"embedding": []}


def test_a_failed_embedder_leaves_the_turn_degraded() -> None:
    dense = DenseSettings(space="tiny", dimensions=2, embedder={})
    open_collection(create=True, encoder=EncoderSettings(dense=dense).json_form, dimensions=2)
    with collect_degraded() as failed:
        assert IndexTextEmbedder().run("Вернуть товар") == {"embedding": []}
    assert list(failed) == ["embedder"]
