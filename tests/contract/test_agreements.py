"""Pairs of passages that do not contradict each other, on every database."""

import pytest

from settings import Settings
from tenants.accounts.registry import Registry
from tenants.core.context import Tenant, acting_as
from tenants.core.errors import Invalid, NotFound
from tenants.knowledge import agreements, documents
from tenants.knowledge.documents import DocumentRecord

ACME, OTHER = Tenant("acme", "anna"), Tenant("other", "eve")


def test_a_pair_is_one_in_either_order_and_gone_with_its_documents(records: Settings) -> None:
    for tenant in (ACME, OTHER):
        Registry(records).add(tenant.tenant_id)
    with acting_as(ACME):
        documents.put(*(DocumentRecord(name, name, name, name, (), "2026-01-31") for name in ("a", "b")))
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
