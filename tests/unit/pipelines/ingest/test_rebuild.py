"""Rebuild and rollback of an index: no loss, no leftovers, and no effect on questions."""

import json
from contextvars import Context
from datetime import timedelta
from pathlib import Path
from zlib import crc32

import pytest
from qdrant_edge import EdgeConfig, EdgeSparseVectorParams, Modifier, SparseVector, UpdateOperation
from qdrant_edge import Point as EdgePoint

from components.ingest import transfer
from components.ingest.document import SourceDocument
from components.ingest.encode import terms_of
from components.ingest.write import remove_documents
from components.language.encoder import encode_query
from components.language.encoder_settings import EncoderSettings, settings_from
from pipelines.ingest import usecase
from pipelines.ingest.library import Library
from pipelines.ingest.rebuild import Rebuilding, generations_json
from pipelines.ingest.tenant_jobs import TenantJobs
from pipelines.ingest.usecase import Ingest
from tenants import index
from tenants.core.context import Tenant, acting_as
from tenants.core.errors import Busy, InternalFault, NotFound
from tenants.index import SPARSE, access, open_collection
from tenants.knowledge import generations
from tenants.work import jobs
from tenants.work.jobs import JobKind
from tests.records import found_by_headings
from tests.unit.pipelines.ingest.stored import article, check_consistent, hits

YAML = Path(usecase.__file__).with_name("ingest.yaml")
ARTICLES = [article(name) for name in "abcd"]


@pytest.fixture(autouse=True)
def _small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transfer, "BATCH", 4)
    monkeypatch.setattr(access, "IN_FLIGHT", timedelta(0))


@pytest.fixture
def other(tmp_path: Path) -> Ingest:
    """The pipeline with another encoder."""
    chosen = tmp_path / "ingest.yaml"
    chosen.write_text(YAML.read_text().replace("gram_sizes: [3, 4]", "gram_sizes: [2]"))
    return Ingest(chosen)


def encoder() -> EncoderSettings:
    return settings_from(open_collection().encoder)


def search_ids(question: str) -> set[str]:
    hits = open_collection().search({SPARSE: encode_query(question, encoder())}, limit=3)[SPARSE]
    return {hit.id for hit in hits}


def states() -> list[tuple[int, str]]:
    return [(generation.number, generation.state) for generation in generations.all()]


def test_every_chunk_is_encoded_anew_and_is_what_it_was(tenant: Tenant, ingest: Ingest, other: Ingest) -> None:
    ingest.run(ARTICLES)
    before = hits()
    seen: list[Rebuilding] = []
    done = other.rebuild().finish(seen.append)
    assert (done.generation, done.chunks) == (2, 12)
    assert seen == [Rebuilding(4, 12), Rebuilding(8, 12), Rebuilding(12, 12)]
    assert hits() == before
    assert (encoder(), states()) == (other.encoder, [(1, "kept"), (2, "in_force")])
    check_consistent()


def test_a_question_is_encoded_as_the_generation_in_force(tenant: Tenant, ingest: Ingest, other: Ingest) -> None:
    ingest.run(ARTICLES)
    expected = search_ids("Раздел статьи b")
    assert expected
    other.rebuild().finish()
    assert search_ids("Раздел статьи b") == expected
    former = encode_query("раздел", ingest.encoder).keys() - encode_query("раздел", other.encoder).keys()
    assert former
    assert not open_collection().search({SPARSE: dict.fromkeys(former, 1.0)}, limit=3)[SPARSE]


def _three_vectors(dimensions: int) -> EdgeConfig:
    sparse = EdgeSparseVectorParams(modifier=Modifier.Idf)
    return EdgeConfig(sparse_vectors=dict.fromkeys((SPARSE, "grams", "headings"), sparse))


def test_an_index_of_three_vectors_serves_until_its_rebuild(
    tenant: Tenant, ingest: Ingest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As versions of the encoder up to 2 left it."""
    vectors = {"headings": {"fields": ["title", "heading"], "average_length": 8}}
    with monkeypatch.context() as former:
        former.setattr("tenants.index.qdrant_edge._config", _three_vectors)
        open_collection(create=True, encoder=json.dumps({"vectors": vectors, "version": "2"}))
    ingest.run(ARTICLES)
    shard = open_collection()._shard  # type: ignore[attr-defined]
    for hit in hits():
        stems = {crc32(stem.encode()): 1.0 for stem in terms_of(hit.payload).stems}
        sparse = SparseVector([*stems], [*stems.values()])
        point = EdgePoint(hit.id, {SPARSE: sparse, "grams": sparse, "headings": sparse}, dict(hit.payload))
        shard.update(UpdateOperation.upsert_points([point]))
    index.close_all()
    before = hits()
    assert ingest.rebuild_due()
    assert search_ids("Раздел статьи b")
    assert not found_by_headings("Раздел")
    ingest.rebuild().finish()
    assert not ingest.rebuild_due()
    assert hits() == before
    assert len(found_by_headings("Раздел")) == len(before)
    check_consistent()


def test_after_a_rebuild_new_documents_use_the_encoder_of_the_index(
    tenant: Tenant, ingest: Ingest, other: Ingest
) -> None:
    ingest.run(ARTICLES)
    other.rebuild().finish()
    assert ingest.run([article("e")]).added == 1
    assert search_ids("Раздел статьи e") & {hit.id for hit in hits("e")}
    assert generations_json(other.encoder)["rebuild_due"] is False
    assert generations_json(ingest.encoder)["rebuild_due"] is True
    check_consistent()


def test_changes_during_a_rebuild_are_carried_over(tenant: Tenant, ingest: Ingest, other: Ingest) -> None:
    ingest.run(ARTICLES)
    library = Library(ingest.rewrite)
    steps = other.rebuild().steps()
    next(steps)
    library.change("a", {"title": "Холодильник"})
    library.delete("b")
    next(steps)
    library.change("a", {"priority": 7})
    library.change("d", {"trust": "accepted"})
    list(steps)
    assert encoder() == other.encoder
    assert {hit.payload["meta"]["priority"] for hit in hits("a")} == {7}  # type: ignore[index, call-overload]
    assert len(found_by_headings("холодильник")) == 3
    check_consistent()


def test_ingest_waits_for_a_rebuild(tenant: Tenant, ingest: Ingest, tmp_path: Path) -> None:
    ingest.run(ARTICLES)
    steps = ingest.rebuild().steps()
    next(steps)
    (tmp_path / "e.md").write_text("# E\n\nТекст.")

    def somebody_else() -> int:
        with acting_as(tenant):
            return len(list(ingest.start_files(tmp_path, ["e.md"]).steps(patience=0)))

    with pytest.raises(Busy, match="ingest_busy"):
        Context().run(somebody_else)
    list(steps)
    assert Context().run(somebody_else) == 1
    check_consistent()


def test_an_abandoned_rebuild_changes_nothing(tenant: Tenant, ingest: Ingest, other: Ingest, tmp_path: Path) -> None:
    ingest.run(ARTICLES)
    before, folders = hits(), sorted(path.name for path in tmp_path.rglob("*~g*"))
    steps = other.rebuild().steps()
    next(steps)
    steps.close()
    assert (hits(), states(), encoder()) == (before, [(1, "in_force")], ingest.encoder)
    assert sorted(path.name for path in tmp_path.rglob("*~g*")) == folders
    assert not ingest.run(ARTICLES).healed
    check_consistent()


def test_a_generation_that_lacks_a_chunk_never_comes_into_force(tenant: Tenant, ingest: Ingest) -> None:
    ingest.run(ARTICLES)
    lost = hits("a")[0].id
    open_collection().delete([lost])
    with pytest.raises(InternalFault, match="generation_incomplete"):
        ingest.rebuild().finish()
    assert states() == [(1, "in_force")]
    assert ingest.run(ARTICLES).healed
    assert ingest.rebuild().finish().chunks == 12
    check_consistent()


def test_going_back_keeps_what_was_ingested_since(tenant: Tenant, ingest: Ingest, other: Ingest) -> None:
    ingest.run(ARTICLES)
    other.rebuild().finish()
    changed = [article("a", edit="правка"), SourceDocument("b", "Чайник", ARTICLES[1].text, "b.md"), article("e", 2)]
    other.run(changed)
    remove_documents(["c"])
    expected = hits()
    done = other.rollback().finish()
    assert (done.generation, done.chunks) == (1, len(expected))
    assert (hits(), encoder()) == (expected, ingest.encoder)
    assert len(found_by_headings("чайник")) == 3
    check_consistent()
    assert ingest.run(changed).unchanged == 3


def test_there_is_one_step_back_and_no_more(tenant: Tenant, ingest: Ingest) -> None:
    with pytest.raises(NotFound, match="generation_not_kept"):
        ingest.rollback().finish()
    ingest.run(ARTICLES)
    ingest.rebuild().finish()
    ingest.rebuild().finish()
    assert states() == [(2, "kept"), (3, "in_force")]
    ingest.rollback().finish()
    with pytest.raises(NotFound, match="generation_not_kept"):
        ingest.rollback().finish()
    assert states() == [(2, "in_force")]
    assert ingest.rebuild().finish().generation == 4
    check_consistent()


def worked_off(ingest: Ingest) -> None:
    shift = TenantJobs("acme", ingest, None)
    while shift.step() is None:
        pass


@pytest.mark.parametrize("kind", ["rebuild", "rollback"])
def test_a_job_that_was_cut_off_after_the_switch_is_not_done_twice(
    tenant: Tenant, ingest: Ingest, kind: JobKind
) -> None:
    ingest.run(ARTICLES)
    if kind == "rollback":
        ingest.rebuild().finish()
    job = jobs.add(jobs.new_id(), kind, ()).job_id
    jobs.begin()
    (ingest.rebuild() if kind == "rebuild" else ingest.rollback()).finish()
    before = states()
    Context().run(worked_off, ingest)
    assert (jobs.get(job).state, states()) == ("done", before)
