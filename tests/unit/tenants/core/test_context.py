"""The tenant of a call: none by default, one inside its block, and keys that no other tenant produces."""

from contextvars import copy_context
from functools import partial
from threading import Thread

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenants.core.context import Tenant, acting_as, current
from tenants.core.errors import NoTenant

ANNA = Tenant("acme", "anna", frozenset({"ask"}))
BORIS = Tenant("acme", "boris", frozenset({"ask"}))


def test_without_a_tenant_there_is_none() -> None:
    with pytest.raises(NoTenant):
        current()


def test_blocks_nest_and_end_even_when_they_raise() -> None:
    with acting_as(ANNA):
        with pytest.raises(NoTenant), acting_as(BORIS):
            raise NoTenant(current().subject)
        assert current() is ANNA
    with pytest.raises(NoTenant):
        current()


def test_a_new_thread_has_no_tenant_unless_it_is_given_the_context() -> None:
    seen: list[object] = []

    def look() -> None:
        try:
            seen.append(current())
        except NoTenant as missing:
            seen.append(missing.code)

    with acting_as(ANNA):
        for target in (look, partial(copy_context().run, look)):
            thread = Thread(target=target)
            thread.start()
            thread.join()
    assert seen == ["no_tenant", ANNA]


@given(st.lists(st.tuples(st.text(), st.text(), st.lists(st.text(), max_size=3).map(tuple)), unique=True))
def test_keys_of_different_callers_and_parts_differ(
    callers: list[tuple[str, str, tuple[str, ...]]],
) -> None:
    keys = {Tenant(tenant_id, subject).key(*parts) for tenant_id, subject, parts in callers}
    assert len(keys) == len(callers)
