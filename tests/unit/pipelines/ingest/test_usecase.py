"""Ingestion: effects of a changed document, and no other effects."""

import json
from collections.abc import Iterator
from pathlib import Path
from threading import Event, Timer
from typing import Any

import pytest

from components.ingest import write
from components.ingest.document import Refusal, SourceDocument
from components.ingest.encode import Payload, text_of
from components.ingest.encode import encoded as encode_chunk
from components.ingest.parse import ArticleParser
from components.language.encoder import encode_query
from components.language.encoder_settings import STANDARD, settings_from
from pipelines.ingest import run, usecase
from pipelines.ingest.report import IngestReport, Progress
from pipelines.ingest.run import Run
from pipelines.ingest.usecase import Ingest, read_path
from tenants.core.context import Tenant
from tenants.core.errors import CallerError
from tenants.core.points import Point
from tenants.index import open_collection
from tenants.knowledge import documents, lexicon
from tests.unit.pipelines.ingest.stored import article, check_consistent, hits, meta

YAML = Path(usecase.__file__).with_name("ingest.yaml")


@pytest.fixture
def encoded(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The headings of all passages encoded, in order."""
    headings: list[str] = []

    def counting(payload: Payload, *parts: Any) -> Point:  # noqa: ANN401 - those of `encoded`
        headings.append(text_of(payload).heading)
        return encode_chunk(payload, *parts)

    monkeypatch.setattr(write, "encoded", counting)
    return headings


def counts(report: IngestReport) -> tuple[int, int, int, int]:
    return report.added, report.updated, report.unchanged, report.removed


def test_a_second_run_changes_and_encodes_nothing(tenant: Tenant, ingest: Ingest, encoded: list[str]) -> None:
    articles = [article("a"), article("b")]
    first = ingest.run(articles)
    assert counts(first) == (2, 0, 0, 0)
    assert (first.chunks_written, first.chunks_kept, len(encoded)) == (6, 0, 6)
    before, revision = hits(), lexicon.current().revision
    second = ingest.run(articles)
    assert counts(second) == (0, 0, 2, 0)
    assert (second.chunks_written, second.chunks_kept, len(encoded)) == (0, 0, 6)
    assert (hits(), lexicon.current().revision) == (before, revision)
    check_consistent()


def test_an_edited_document_writes_only_its_changed_chunks(tenant: Tenant, ingest: Ingest, encoded: list[str]) -> None:
    ingest.run([article("a", 5), article("b")])
    old = {hit.id for hit in hits("a")}
    encoded.clear()
    report = ingest.run([article("a", 5, edit="правка"), article("b")])
    assert counts(report) == (0, 1, 1, 0)
    assert (report.chunks_written, report.chunks_kept, report.chunks_removed) == (1, 4, 1)
    assert encoded == ["Раздел 1 статьи a"]
    assert len(old & {hit.id for hit in hits("a")}) == 4
    check_consistent()


def test_metadata_alone_is_rewritten_without_encoding(tenant: Tenant, ingest: Ingest, encoded: list[str]) -> None:
    ingest.run([article("a", trust="raw")])
    encoded.clear()
    report = ingest.run([article("a", trust="accepted", priority=9)])
    assert (report.updated, report.chunks_written, report.chunks_kept, encoded) == (1, 0, 3, [])
    assert {(meta(hit)["trust"], meta(hit)["priority"]) for hit in hits()} == {("accepted", 9)}
    results = open_collection().search({"text-sparse": encode_query("Раздел 2 статьи a", STANDARD)}, limit=1)
    assert meta(results["text-sparse"][0])["heading"] == "Раздел 2 статьи a"
    check_consistent()


def test_pruning_removes_what_is_gone_and_nothing_else_does(tenant: Tenant, ingest: Ingest) -> None:
    ingest.run([article("a"), article("b"), article("c")])
    assert counts(ingest.run([article("b")])) == (0, 0, 1, 0)
    report = ingest.run([article("b")], prune=True)
    assert (counts(report), report.chunks_removed) == ((0, 0, 1, 2), 6)
    assert [record.doc_id for record in documents.all()] == ["b"]
    check_consistent()


def test_a_refusal_keeps_the_others_and_stops_pruning(tenant: Tenant, ingest: Ingest) -> None:
    ingest.run([article("a"), article("b")])
    report = ingest.run([article("c"), SourceDocument("b", "", " ")], prune=True)
    assert counts(report) == (1, 0, 0, 0)
    assert [(error.error.code, error.doc_id) for error in report.errors] == [
        ("text_missing", "b"),
        ("prune_skipped", ""),
    ]
    assert len(documents.all()) == 3
    check_consistent()


def test_of_two_with_one_id_the_first_is_taken(
    tenant: Tenant, ingest: Ingest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "_BATCH_DOCUMENTS", 2)
    path = tmp_path / "a.jsonl"
    texts = {"a": "первый", "b": "x", "c": "y"}
    lines = [json.dumps({"doc_id": doc_id, "text": text}) for doc_id, text in texts.items()]
    path.write_text("\n".join([*lines, json.dumps({"doc_id": "a", "text": "второй"}), "{broken", '{"doc_id": "e"}']))
    report = ingest.run_path(path)
    assert report.added == 3
    assert [(error.error.code, error.line) for error in report.errors] == [
        ("doc_id_duplicate", 4),
        ("json_invalid", 5),
        ("text_missing", 6),
    ]
    assert [hit.payload["content"] for hit in hits("a")] == ["первый"]
    json.dumps(report.as_json())
    check_consistent()


def test_a_folder_and_its_renamed_file(tenant: Tenant, ingest: Ingest, tmp_path: Path) -> None:
    folder = tmp_path / "kb"
    folder.mkdir()
    (folder / "a.md").write_text("# Возврат\n\nДо 14 дней.")
    (folder / "b.txt").write_text("Гарантия два года.")
    (folder / "c.ppt").write_bytes(b"%PPT")
    report = ingest.run_path(folder, prune=True)
    assert (counts(report), [error.error.code for error in report.errors]) == ((2, 0, 0, 0), ["file_unsupported"])
    assert {(meta(hit)["doc_id"], meta(hit)["title"]) for hit in hits()} == {("a.md", "Возврат"), ("b.txt", "b")}
    (folder / "b.txt").rename(folder / "d.txt")
    assert counts(ingest.run_path(folder, prune=True)) == (1, 0, 1, 1)
    check_consistent()


def test_an_unchanged_file_is_not_opened_again(
    tenant: Tenant, ingest: Ingest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "kb"
    folder.mkdir()
    (folder / "a.csv").write_bytes("Код;Значение\nE10;нет воды\n".encode("cp1251"))
    (folder / "b.md").write_text("---\ndoc_id: b\n---\n# Слив\n\nТекст.")
    (folder / "c.jsonl").write_text('{"doc_id": "c", "text": "x"}\n{"doc_id": "d", "text": "y"}')
    assert counts(ingest.run_path(folder)) == (4, 0, 0, 0)

    def read(parser: ArticleParser, article: object) -> Refusal:
        raise AssertionError(article)

    monkeypatch.setattr(ArticleParser, "parse", read)
    assert counts(ingest.run_path(folder, prune=True)) == (0, 0, 4, 0)
    check_consistent()


def test_a_run_that_is_left_waits_for_no_article(tenant: Tenant, ingest: Ingest) -> None:
    """A website with much to compare kept the step thread of a cancelled run for hours."""
    go = Event()

    def articles() -> Iterator[SourceDocument]:
        go.wait()
        yield article("a", 1)

    steps = Run(ingest._stages, articles(), 0).steps()
    next(steps)
    rescue = Timer(20, go.set)
    rescue.start()
    steps.close()
    rescue.cancel()
    assert not go.is_set()
    go.set()


def test_progress_counts_up(tenant: Tenant, ingest: Ingest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "_BATCH_DOCUMENTS", 2)
    seen: list[Progress] = []
    ingest.run([article(str(at), 1) for at in range(5)], progress=seen.append)
    assert seen == [Progress(2, 5, 2), Progress(4, 5, 4), Progress(5, 5, 5)]
    path = tmp_path / "a.jsonl"
    path.write_text('{"doc_id": "x", "text": "y"}\n\n{}\n')
    ingest.run_path(path, progress=seen.append)
    assert seen[3:] == [Progress(2, 2, 1)]


def test_documents_are_streamed(tenant: Tenant, ingest: Ingest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "_BATCH_DOCUMENTS", 2)
    stored_when_asked: list[int] = []

    def stream() -> Iterator[SourceDocument]:
        for at in range(6):
            stored_when_asked.append(len(documents.all()))
            yield article(str(at), 1)

    ingest.run(stream())
    # The batch before may be on its way; those before that are stored.
    assert all(at - at % 2 - 2 <= stored <= at - at % 2 for at, stored in enumerate(stored_when_asked))


def test_a_path_that_cannot_be_read_touches_nothing(tenant: Tenant, ingest: Ingest, tmp_path: Path) -> None:
    ingest.run([article("a")])
    with pytest.raises(CallerError, match="path_missing"):
        ingest.run_path(tmp_path / "missing", prune=True)
    assert not ingest.run([article("a")]).healed
    check_consistent()


def test_a_changed_pipeline_encodes_only_the_changed_chunks(tenant: Tenant, ingest: Ingest, tmp_path: Path) -> None:
    ingest.run([article("a")])
    chosen = tmp_path / "ingest.yaml"
    chosen.write_text(YAML.read_text().replace("trust: auto", "trust: accepted"))
    report = Ingest(chosen).run([article("a")])
    assert (report.updated, report.chunks_written, report.chunks_kept) == (1, 0, 3)
    smaller = {
        "min_tokens: 200": "min_tokens: 100",
        "max_tokens: 500": "max_tokens: 100",
        "nt_tokens: 32": "nt_tokens: 20",
    }
    text = YAML.read_text()
    for written, instead in smaller.items():
        text = text.replace(written, instead)
    chosen.write_text(text)
    report = Ingest(chosen).run([article("a")])
    assert (report.updated, report.chunks_removed) == (1, 3)
    assert report.chunks_written > 3
    check_consistent()


def test_another_encoder_waits_for_a_rebuild(
    tenant: Tenant, ingest: Ingest, tmp_path: Path, encoded: list[str]
) -> None:
    """A question is encoded once, so all chunks it searches must be encoded alike."""
    ingest.run([article("a")])
    encoded.clear()
    chosen = tmp_path / "ingest.yaml"
    chosen.write_text(YAML.read_text().replace("gram_sizes: [3, 4]", "gram_sizes: [2]"))
    other = Ingest(chosen)
    assert counts(other.run([article("a")])) == (0, 0, 1, 0)
    assert encoded == []
    other.run([article("b", 1)])
    assert len(encoded) == 1
    assert settings_from(open_collection().encoder) == STANDARD
    check_consistent()


def test_read_path_raises_the_first_refusal(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"doc_id": "a", "text": "x"}\n{}\n{"doc_id": "b", "text": "y"}')
    with pytest.raises(CallerError, match="doc_id_missing"):
        list(read_path(path))
