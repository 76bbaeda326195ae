"""Qdrant Edge: the server's engine inside this process. One folder is one collection.

Requirements on the caller (measured, qdrant-edge-py 0.9): every call holds the interpreter lock, so calls must be few
and short; `update` reaches the disk at `flush`; a second process on the same folder is refused; only `optimize` moves
chunks out of the memory they were written to, and it takes seconds.
"""

import json
import logging
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Lock, RLock
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeAlias
from uuid import uuid4

from cachetools import LRUCache
from qdrant_edge import (
    CountRequest,
    Distance,
    EdgeConfig,
    EdgeOptimizersConfig,
    EdgeShard,
    EdgeSparseVectorParams,
    EdgeVectorParams,
    HnswIndexConfig,
    Memory,
    Modifier,
    PayloadSchemaType,
    Query,
    QueryBatchRequest,
    QueryRequest,
    ScrollRequest,
    SparseVector,
    UpdateOperation,
)
from qdrant_edge import Point as EdgePoint

from tenants.accounts.registry import Placement
from tenants.core import fairness
from tenants.core.errors import Busy, IndexDamaged, InternalFault, OporaError, TryAgain
from tenants.core.json import Json
from tenants.core.points import Conditions, Hit, Point, Vector
from tenants.index.layout import (
    DATES,
    DENSE,
    KEYWORDS,
    SPARSE,
    canonical_id,
    check_points,
    matches_nothing,
    searchable_vectors,
)
from tenants.index.protocol import Collection, Engine
from tenants.index.qdrant_edge_faults import is_damage, refusal
from tenants.index.qdrant_edge_values import as_dense, as_filter, as_hit, as_vector, as_vectors
from tenants.storage import disk

if TYPE_CHECKING:  # the engine's stubs name these; the compiled module does not
    from qdrant_edge import PointId

_MARK = "tenant.json"
_SHARD = "shard"
_SLICE = 4
"""Points per engine call: 4 ms of holding the interpreter lock, so that questions get through during an ingest."""

_REMEMBERED = 8192
"""Payloads kept as Python objects. Reading one from the engine costs 0.05 ms, and a question looks at a hundred."""

_COMPACT_AFTER = 3_000
"""Chunks written before an idle process compacts them. Compacting takes a second; until then each thousand chunks
take 10 to 25 MB."""

_SEGMENTS = 16
"""Compact segments that are not merged. Merging takes memory by size: 120 MB for 45,000 chunks with half as many
segments. Each segment costs a search 0.3 ms."""

_COMPACT_KILOBYTES = 12_000
"""Size of vectors that `close` leaves in growing segments: 2,400 chunks of 640 weights, 900 of 1,700."""

_NO_GRAPH = HnswIndexConfig(m=0, ef_construct=100, full_scan_threshold=10_000)

Payload: TypeAlias = Mapping[str, Json]
_NO_PAYLOAD: Payload = MappingProxyType({})
_LOG = logging.getLogger("opora.index")


class EdgeFolder(Engine):
    """Collections in the folders of one folder, a folder for each generation.

    :param root: need not be there before the first collection is made.
    """

    def __init__(self, root: Path) -> None:
        self.root = root

    def exists(self, placement: Placement) -> bool:
        return (self.root / placement.physical / _MARK).is_file()

    def create(self, placement: Placement, tenant_id: str, dimensions: int = 0) -> None:
        """Make an empty generation. It appears whole or not at all. Raises `storage_full` as `upsert` does."""
        disk.check()
        folder = self.root / placement.physical
        self.root.mkdir(parents=True, exist_ok=True, mode=0o700)
        draft = folder.with_name(f"{folder.name}.{uuid4().hex}")
        (draft / _SHARD).mkdir(parents=True, mode=0o700)
        shard = EdgeShard.create(str(draft / _SHARD), _config(dimensions))
        for name in KEYWORDS:
            shard.update(UpdateOperation.create_field_index(f"meta.{name}", PayloadSchemaType.Keyword))
        for name in DATES:
            shard.update(UpdateOperation.create_field_index(f"meta.{name}", PayloadSchemaType.Datetime))
        shard.flush()
        shard.close()
        with (draft / _MARK).open("w", encoding="utf-8") as mark:
            json.dump({"tenant_id": tenant_id}, mark, ensure_ascii=False)
            mark.flush()
            os.fsync(mark.fileno())
        try:
            draft.rename(folder)
        except OSError:
            shutil.rmtree(draft)
            if not self.exists(placement):
                raise

    def open(self, placement: Placement, tenant_id: str, encoder: str, dimensions: int = 0) -> "EdgeCollection":
        return EdgeCollection(self.root / placement.physical, tenant_id, encoder, dimensions)

    def set_aside(self, placement: Placement) -> None:
        """Rename an unreadable folder, for inspection; only the last one is kept."""
        folder = self.root / placement.physical
        aside = folder.with_name(f"{folder.name}.damaged")
        if folder.exists():
            shutil.rmtree(aside, ignore_errors=True)
            folder.rename(aside)

    def remove(self, placement: Placement) -> None:
        """Delete a generation and the drafts of it that `create` may have left.

        An open generation stays readable for its users; its files are deleted when it is released.
        """
        folder = self.root / placement.physical
        # The mark goes first: half a collection must not look like one.
        (folder / _MARK).unlink(missing_ok=True)
        for leftover in (folder, *self.root.glob(f"{folder.name}.*")):
            shutil.rmtree(leftover, ignore_errors=True)


class EdgeCollection(Collection):
    """A tenant's chunks in one folder, opened by this process only.

    A collection without references is released without compacting, in some 0.1 s for 2,000 chunks. Replaced generations
    end that way, so running questions keep the generation that they search.

    :param folder: the folder of one generation, made by `EdgeFolder`.
    :param tenant_id: the expected owner. Raises `InternalFault` with the code `collection_foreign` for another one,
        `IndexDamaged` if the folder is unreadable.
    """

    broken = False

    def __init__(self, folder: Path, tenant_id: str, encoder: str = "", dimensions: int = 0) -> None:
        self.encoder = encoder
        self.dimensions = dimensions
        self._folder = folder
        if _owner(folder) != tenant_id:
            raise InternalFault("collection_foreign")
        try:
            self._shard = EdgeShard.load(str(folder / _SHARD))
        except BaseException as fault:
            if "WouldBlock" in str(fault):
                raise Busy("data_in_use") from fault
            if (reason := refusal(fault)) is not None:
                raise TryAgain(reason) from fault
            if not is_damage(fault):
                raise
            _LOG.error("the index in %s cannot be read: %s", folder.name, fault)
            raise IndexDamaged("unreadable") from fault
        self._writing = RLock()
        self._open = True
        self._written = 0
        self._payloads = _Payloads()
        self.version = uuid4().hex

    def upsert(self, points: Sequence[Point]) -> None:
        """Store points, replacing those with the same id.

        :raises TryAgain: `storage_full`, before the disk is full: the engine then aborts the process.
        """
        slices = [points[start : start + _SLICE] for start in range(0, len(points), _SLICE)]
        for some in slices:
            fairness.yield_to_questions()
            check_points(some, self.dimensions)
        if not points:
            return
        with self._writable_shard([point.id for point in points]) as shard:
            for some in slices:
                fairness.yield_to_questions()
                disk.check()
                batch = [EdgePoint(point.id, as_vectors(point.vectors), dict(point.payload)) for point in some]
                shard.update(UpdateOperation.upsert_points(batch))
        with self._writing:
            self._written += len(points)
            if self._written >= _COMPACT_AFTER and fairness.is_idle():
                self._compact()

    def describe(self, payloads: Mapping[str, Payload]) -> None:
        if not payloads:
            return
        disk.check()
        with self._writable_shard(list(payloads)) as shard:
            # The engine fails on an id that it does not have.
            stored = {str(record.id) for record in shard.retrieve(list(payloads), False, False)}
            for point_id, payload in payloads.items():
                fairness.yield_to_questions()
                if canonical_id(point_id) in stored:
                    shard.update(UpdateOperation.overwrite_payload([point_id], dict(payload)))

    def delete(self, ids: Sequence[str]) -> None:
        if not ids:
            return
        with self._writable_shard(ids) as shard:
            shard.update(UpdateOperation.delete_points(list(ids)))

    def search(
        self,
        queries: Mapping[str, Vector],
        *,
        limit: int,
        conditions: Conditions | None = None,
        payloads: bool = True,
    ) -> Mapping[str, list[Hit]]:
        """Return the best `limit` hits for each named vector, all vectors in one call."""
        names = searchable_vectors(queries, limit, conditions, self.dimensions)
        if not names:
            return {name: [] for name in queries}
        matching = as_filter(conditions)
        requests = [
            QueryRequest(limit=limit, query=Query.Nearest(as_vector(queries[name]), using=name), filter=matching)
            for name in names
        ]
        with self.reading() as shard:
            answers = shard.query_batch(QueryBatchRequest(requests))
            ranked = {
                name: [(str(point.id), point.score) for point in points]
                for name, points in zip(names, answers, strict=True)
            }
            hit_ids = {point_id for points in ranked.values() for point_id, _ in points}
            payload_of = self._payloads.get(shard, hit_ids) if payloads else dict.fromkeys(hit_ids, _NO_PAYLOAD)
        # A point removed between the two calls has no payload any more.
        return {
            name: [
                Hit(point_id, score, payload_of[point_id])
                for point_id, score in ranked.get(name, ())
                if point_id in payload_of
            ]
            for name in queries
        }

    def inverse_frequencies(self, dimensions: Sequence[int]) -> Mapping[int, float]:
        """Return the engine's factor for each of these dimensions: the score of the best hit divided by its weight."""
        requests = [
            QueryRequest(limit=1, query=Query.Nearest(SparseVector([one], [1.0]), using=SPARSE), with_vector=[SPARSE])
            for one in dimensions
        ]
        if not requests:
            return {}
        with self.reading() as shard:
            answers = shard.query_batch(QueryBatchRequest(requests))
        frequencies = {}
        for one, points in zip(dimensions, answers, strict=True):
            for point in points:
                vector = point.vector.get(SPARSE) if isinstance(point.vector, Mapping) else None
                if isinstance(vector, SparseVector):
                    frequencies[one] = point.score / vector.values[vector.indices.index(one)]
        return frequencies

    def fetch(self, ids: Sequence[str], *, dense: bool = False) -> list[Hit]:
        canonical = [canonical_id(point_id) for point_id in ids]
        with self.reading() as shard:
            with_dense = dense and self.dimensions
            records = shard.retrieve(list(canonical), False, [DENSE]) if with_dense else []
            payloads = self._payloads.get(shard, set(canonical))
        vectors = {str(record.id): as_dense(record) for record in records}
        return [
            Hit(point_id, 0.0, payloads[point_id], vectors.get(point_id))
            for point_id in canonical
            if point_id in payloads
        ]

    def scan(self, *, conditions: Conditions | None = None, batch: int = 256, dense: bool = False) -> Iterator[Hit]:
        """Yield every stored point. Points written meanwhile may or may not appear."""
        if matches_nothing(conditions):
            return
        matching = as_filter(conditions)
        offset = None
        while True:
            with self.reading() as shard:
                records, offset = shard.scroll(
                    ScrollRequest(
                        limit=batch,
                        offset=offset,
                        filter=matching,
                        with_payload=True,
                        with_vector=[DENSE] if dense and self.dimensions else False,
                    )
                )
            for record in records:
                yield as_hit(record)
            if offset is None:
                return

    def count(self) -> int:
        with self.reading() as shard:
            return shard.count(CountRequest(exact=True))

    def close(self) -> None:
        """Compact written chunks if that is worth it, and release the folder."""
        with self._writing:
            if not self._open:
                return
            self._open = False
            try:
                if not self.broken:
                    self._compact()
                self._shard.close()
            except BaseException as fault:
                if not is_damage(fault) and refusal(fault) is None:
                    raise
                _LOG.error("the index in %s cannot be closed: %s", self._folder.name, fault)

    def _compact(self) -> None:
        """Move written chunks into compact segments.

        Chunks are written to segments that grow, and that keep their index in memory and rebuild it on loading: at
        10,000 chunks, 260 MB and 2 s against 140 MB and 0.5 s in a compact segment. Compacting also drops deleted
        points. It holds the interpreter lock for some 0.25 ms a chunk, so it is left to a quiet moment or the end. The
        engine switches segments once the new one is complete, so a kill leaves the old ones.
        """
        self._written = 0
        try:
            disk.check(sum(file.stat().st_size for file in self._folder.rglob("*") if file.is_file()))
            self._shard.optimize()
        except TryAgain:
            _LOG.warning("the index is not compacted: the disk has no room for a copy of it")
        except Exception:
            # No data is lost: the segments stay uncompacted.
            _LOG.exception("compacting the index failed")

    @contextmanager
    def reading(self) -> Iterator[EdgeShard]:
        """Return the shard; convert its errors to ours."""
        shard = self._shard
        try:
            yield shard
        except OporaError:
            raise
        except BaseException as fault:
            if isinstance(fault, Exception) and self._left(shard):
                raise Busy("index_closed") from fault
            if (reason := refusal(fault)) is not None:
                raise TryAgain(reason) from fault
            if is_damage(fault):
                _LOG.error("the index in %s fails: %s", self._folder.name, fault)
                self.broken = True
                raise InternalFault("index_failed") from fault
            if not isinstance(fault, Exception):
                raise
            raise InternalFault("index_failed") from fault

    @contextmanager
    def _writable_shard(self, ids: Sequence[str]) -> Iterator[EdgeShard]:
        """Lock the shard for writing; flush it at the end, and drop changed payloads from the cache in any case."""
        changed = {canonical_id(point_id) for point_id in ids}
        with self._writing, self.reading() as shard:
            try:
                yield shard
                # The flush blocks other threads for some 25 ms.
                fairness.yield_to_questions()
                self._flush(shard)
            finally:
                self._payloads.forget(changed)
                self.version = uuid4().hex

    def _left(self, shard: EdgeShard) -> bool:
        """Whether the shard was closed, for good or for reloading."""
        if not self._open:
            return True
        with self._writing:
            return shard is not self._shard

    def _flush(self, shard: EdgeShard) -> None:
        """Write to the disk; once more from the engine's log of updates where it fails.

        qdrant-edge-py 0.9 now and then loses count of a journal that it has just removed ("Tracker journal … is shorter
        than expected"). The updates are in its log, from which loading repeats them.
        """
        try:
            shard.flush()
        except BaseException as fault:
            if not is_damage(fault):
                raise
            _LOG.warning("the index in %s is loaded anew: %s", self._folder.name, fault)
            shard.close()
            self.broken = True
            self._shard = EdgeShard.load(str(self._folder / _SHARD))
            self._shard.flush()
            self.broken = False


class _Payloads:
    """The payloads read last. Correct because no other process can write to the folder while it is open here."""

    def __init__(self) -> None:
        self._cached: LRUCache[str, Payload] = LRUCache(_REMEMBERED)
        self._lock = Lock()
        self._writes = 0

    def get(self, shard: EdgeShard, ids: set[str]) -> dict[str, Payload]:
        """Return the payloads of the stored points among `ids`."""
        with self._lock:
            writes = self._writes
            payloads = {point_id: self._cached[point_id] for point_id in ids if point_id in self._cached}
        missing: list[PointId] = [point_id for point_id in ids if point_id not in payloads]
        if missing:
            read = {str(record.id): record.payload or {} for record in shard.retrieve(missing, True, False)}
            payloads |= read
            with self._lock:
                # A concurrent write may have changed the payloads, so they are used once and not cached.
                if writes == self._writes:
                    self._cached.update(read)
        return payloads

    def forget(self, ids: set[str]) -> None:
        """Drop payloads that a write has changed."""
        with self._lock:
            self._writes += 1
            for point_id in ids:
                self._cached.pop(point_id, None)


def _owner(folder: Path) -> object:
    try:
        mark = json.loads((folder / _MARK).read_text(encoding="utf-8"))
    except (OSError, ValueError) as fault:
        if (reason := refusal(fault)) is not None:
            raise TryAgain(reason) from fault
        raise IndexDamaged("unreadable") from fault
    if not isinstance(mark, dict):
        raise IndexDamaged("unreadable")
    return mark.get("tenant_id")


def _config(dimensions: int) -> EdgeConfig:
    dense = {DENSE: EdgeVectorParams(size=dimensions, distance=Distance.Cosine)} if dimensions else None
    return EdgeConfig(
        vectors=dense,
        # No graph over dense vectors: with one, compacting 60,000 takes minutes, without one 1 s. A full scan of 50,000
        # vectors with 384 dimensions takes 11 ms.
        hnsw_config=_NO_GRAPH if dense else None,
        # Read from the files as needed: once read, questions take no longer than with the whole in memory, and loading
        # any number of documents takes no more memory than loading ten thousand chunks.
        sparse_vectors={SPARSE: EdgeSparseVectorParams(modifier=Modifier.Idf, memory=Memory.Cold)},
        optimizers=EdgeOptimizersConfig(default_segment_number=_SEGMENTS, indexing_threshold=_COMPACT_KILOBYTES),
    )
