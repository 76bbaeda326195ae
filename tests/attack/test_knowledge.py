"""A tenant that fills the disk of all with its knowledge base, or the memory with relations."""

from dataclasses import replace
from pathlib import Path

import pytest

from components.ingest.document import SourceDocument
from pipelines.ingest.library import Library
from pipelines.ingest.usecase import Ingest
from settings import Settings
from tenants import index
from tenants.accounts.registry import Registry
from tenants.core.context import Tenant, acting_as
from tenants.core.errors import Invalid, TooLarge
from tenants.index import open_collection
from tenants.knowledge import document_edges
from tenants.work import locks
from tests.attack.attacking import ATTACKER
from tests.service.serving import in_force


def article(doc_id: str, sections: int = 1) -> SourceDocument:
    """Return an article of one chunk for each section."""
    parts = [f"## Раздел {at} статьи {doc_id}\n\n" + f"Проверьте шланг {at}, он цел. " * 30 for at in range(sections)]
    return SourceDocument(doc_id, f"Статья {doc_id}", "\n\n".join(parts), f"{doc_id}.md")


def test_a_tenant_stores_no_more_chunks_than_it_may(tmp_path: Path) -> None:
    ingest = Ingest()
    with in_force(Settings(data_dir=tmp_path, max_chunks=3)), acting_as(Tenant(ATTACKER, "anna")):
        Registry().add(ATTACKER)
        report = ingest.run([article("a"), article("b", 3), article("c")])
        assert report.added == 2
        assert [(one.error.code, one.doc_id) for one in report.errors] == [("knowledge_base_full", "b")]
        with pytest.raises(TooLarge, match="knowledge_base_full"):
            ingest.publish(article("d", 2))
        assert ingest.run([article("e")]).added == 1
        changed = article("e")
        assert ingest.run([SourceDocument("e", "Другая", changed.text, "e.md"), article("f")]).updated == 1
        assert open_collection().count() == 3
        locks.close_all()
        index.close_all()


def test_a_tenant_declares_no_more_relations_than_it_may(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(document_edges, "MAX_RELATIONS", 3)
    ingest = Ingest()

    def declaring(doc_id: str, *others: str) -> SourceDocument:
        written = article(doc_id)
        return replace(written, meta={"related_to": list(others), "rejected": [doc_id]})

    with in_force(Settings(data_dir=tmp_path)), acting_as(Tenant(ATTACKER, "anna")):
        Registry().add(ATTACKER)
        report = ingest.run([declaring("a", "x"), declaring("b", "x"), article("c")])
        assert report.added == 2
        assert [(one.error.code, one.doc_id) for one in report.errors] == [("relations_too_many", "b")]
        assert ingest.run([declaring("a", "y")]).updated == 1, "it has as many as before"
        assert ingest.run([article("a")]).updated == 1
        assert ingest.run([declaring("d", "x", "y")]).added == 1
        with pytest.raises(Invalid, match="relations_too_many"):
            Library(ingest.rewrite).restore("a", 1)
        assert {edge.from_doc for edge in document_edges.all()} == {"d"}
        locks.close_all()
        index.close_all()
