"""Search of the help centre where an encoder returns the nearest sections to any query."""

from dataclasses import replace
from pathlib import Path

import pytest

from components.ingest.document import SourceDocument
from components.retrieve.retriever import TenantRetriever
from pipelines.ask.help_centre import HelpCentre
from pipelines.ingest.usecase import Ingest
from tenants.accounts.registry import Registry
from tenants.core.context import Tenant, acting_as
from tests.installations import installed


def test_search_for_unrelated_words_finds_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with installed(tmp_path):
        Registry().add("acme")
        with acting_as(Tenant("acme", "anna")):
            Ingest().run([SourceDocument("refund", "Возврат", "Возврат товара возможен за 14 дней.", "refund.md")])
            documents = TenantRetriever().run(query="возврат")["documents"]
            scores = {"cosine": 0.78}
            near = [replace(one, meta=one.meta | {"scores": one.meta["scores"] | scores}) for one in documents]
            monkeypatch.setattr(TenantRetriever, "run", lambda *_, **__: {"documents": near})
            centre = HelpCentre()
            assert [one.doc_id for one in centre.search("возврат")] == ["refund"]
            assert centre.search("qwerty") == ()
