"""Pairs of passages that contradict each other, on every database."""

from datetime import UTC, datetime

import pytest

from settings import Settings
from tenants.accounts import registry
from tenants.accounts.registry import Registry
from tenants.core.context import Tenant, acting_as
from tenants.core.errors import Invalid, NotFound
from tenants.knowledge import agreements, contradictions, documents, relations
from tenants.knowledge.contradictions import Contradiction, Side
from tenants.knowledge.documents import DocumentRecord

ACME, OTHER = Tenant("acme", "anna"), Tenant("other", "eve")
MOMENT = datetime(2026, 2, 1, 12, tzinfo=UTC)


def pair(chunk_id: str, doc_id: str, other_chunk_id: str, other_doc_id: str, kind: str = "number") -> Contradiction:
    return Contradiction(kind, Side(chunk_id, doc_id, 0, 9), Side(other_chunk_id, other_doc_id, 3, 7), MOMENT)


@pytest.fixture(autouse=True)
def _tenants(records: Settings) -> None:
    for tenant in (ACME, OTHER):
        Registry(records).add(tenant.tenant_id)
    with acting_as(ACME):
        documents.put(*(DocumentRecord(name, name, name, name, (), "2026-01-31") for name in "abc"))


def test_a_pair_is_one_in_either_order_and_belongs_to_its_tenant() -> None:
    with acting_as(ACME):
        contradictions.replace(["a", "b"], [pair("2", "b", "1", "a"), pair("1", "a", "2", "b")])
        [found] = contradictions.all()
        assert (found.one.chunk_id, found.other.chunk_id) == ("1", "2")
        assert found.at == MOMENT
        assert relations.current().contradictions == {"a": (found,), "b": (found,)}
    with acting_as(OTHER):
        assert contradictions.all() == ()
        assert relations.current() is relations.NONE


def test_documents_replace_their_own_pairs_alone() -> None:
    with acting_as(ACME):
        contradictions.replace(["a", "b", "c"], [pair("1", "a", "2", "b"), pair("2", "b", "3", "c")])
        contradictions.replace(["c"], [pair("3", "c", "1", "a", "date")])
        assert {(one.one.chunk_id, one.other.chunk_id, one.kind) for one in contradictions.all()} == {
            ("1", "2", "number"),
            ("1", "3", "date"),
        }


def test_the_same_pairs_again_change_nothing() -> None:
    with acting_as(ACME):
        contradictions.replace(["a"], [])
        assert registry.current().relations == 0
        contradictions.replace(["a", "b"], [pair("1", "a", "2", "b")])
        before = registry.current().relations
        contradictions.replace(["a", "b"], [pair("1", "a", "2", "b")])
        assert registry.current().relations == before


def test_a_pair_is_hidden_once_it_is_settled_and_gone_with_its_document() -> None:
    with acting_as(ACME):
        contradictions.replace(["a", "b", "c"], [pair("1", "a", "2", "b"), pair("2", "b", "3", "c")])
        agreements.put("2", "b", "1", "a")
        assert set(relations.current().contradictions) == {"b", "c"}
        documents.remove("c")
        assert len(contradictions.all()) == 1


def test_an_agreed_pair_is_one_in_either_order_and_gone_with_its_documents() -> None:
    with acting_as(ACME):
        agreements.put("2", "b", "1", "a")
        agreements.put("1", "a", "2", "b")
        [pair] = agreements.all()
        assert (pair.chunk_id, pair.other_chunk_id, pair.doc_id, pair.other_doc_id) == ("1", "2", "a", "b")
        with pytest.raises(Invalid, match="pair_invalid"):
            agreements.put("1", "a", "1", "a")
        with acting_as(OTHER):
            assert agreements.all() == ()
            with pytest.raises(NotFound, match="pair_unknown"):
                agreements.remove("1", "2")
        agreements.remove("2", "1")
        agreements.put("1", "a", "2", "b")
        documents.remove("b")
        assert agreements.all() == ()
