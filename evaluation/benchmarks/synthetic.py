"""Knowledge bases of any size, made of real sentences in a random order: for measuring how search time grows."""

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from uuid import UUID, uuid5

from components.ingest.encode import terms_of
from components.language.encoder import encode_passage
from components.language.encoder_settings import STANDARD
from tenants.accounts.registry import Registry
from tenants.core.context import Tenant, acting_as
from tenants.core.json import Json
from tenants.core.points import Point
from tenants.index import SPARSE, open_collection
from tenants.knowledge import lexicon
from tenants.knowledge.lexicon import ChunkTerms

SENTENCES_PER_CHUNK = 6
_BATCH = 2_000
_SEED = 20
_NAMESPACE = UUID("0d8b1f5a-6f0d-5a57-9f43-3f6a1c7f2b11")


@dataclass(frozen=True, slots=True)
class _Sentence:
    """A sentence with all that a chunk inherits from it, computed once: encoding every chunk would take minutes."""

    text: str
    vector: dict[int, float]
    terms: ChunkTerms


def fill(tenant: Tenant, size: int, sentences: Sequence[str], progress: Callable[[int, int], None]) -> None:
    """Make `tenant` a knowledge base of `size` chunks, unless it is one already.

    :param sentences: random sentences for the chunks; each chunk is drawn anew, so no two are near-duplicates.
    """
    registry = Registry()
    if not registry.exists(tenant.tenant_id):
        registry.add(tenant.tenant_id)
    with acting_as(tenant):
        collection = open_collection(create=True)
        if collection.count() == size and lexicon.current().chunks == size:
            return
        lexicon.rebuild(())
        chunks = _chunks(size, [_analysed(sentence) for sentence in sentences])
        count = 0
        while batch := list(islice(chunks, _BATCH)):
            collection.upsert([point for point, _ in batch])
            lexicon.apply(terms for _, terms in batch)
            count += len(batch)
            progress(count, size)


def _analysed(sentence: str) -> _Sentence:
    terms = terms_of({"content": sentence, "meta": {"chunk_id": "", "title": "", "heading": ""}})
    return _Sentence(sentence, encode_passage("", "", sentence, STANDARD), terms)


def _chunks(size: int, sentences: Sequence[_Sentence]) -> Iterator[tuple[Point, ChunkTerms]]:
    rng = random.Random(_SEED)  # noqa: S311 - reproducible, not a secret
    for number in range(size):
        parts = rng.sample(sentences, SENTENCES_PER_CHUNK)
        stems = frozenset().union(*(part.terms.stems for part in parts))
        words = frozenset().union(*(part.terms.words for part in parts))
        yield _point(number, parts), ChunkTerms(stems, words)


def _point(number: int, parts: Sequence[_Sentence]) -> Point:
    chunk_id = str(uuid5(_NAMESPACE, str(number)))
    spans: list[Json] = []
    position = 0
    for part in parts:
        spans.append([position, position + len(part.text)])
        position += len(part.text) + 1
    vector: dict[int, float] = {}
    for part in parts:
        vector.update(part.vector)
    meta: dict[str, Json] = {
        "doc_id": f"synthetic-{number // 10}",
        "chunk_id": chunk_id,
        "chunk_index": number % 10,
        "title": "",
        "heading": "",
        "source": "synthetic",
        "url": None,
        "lang": "ru",
        "updated_at": "2026-01-01",
        "trust": "auto",
        "status": "active",
        "priority": 0,
        "sentences": spans,
    }
    return Point(chunk_id, {SPARSE: vector}, {"content": "\n".join(part.text for part in parts), "meta": meta})
