"""The tenant of a call, and log output of exceptions without message text."""

from contextvars import copy_context
from functools import partial
from threading import Thread

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenants.core.context import Tenant, acting_as, current
from tenants.core.errors import InternalFault, NoTenant, trail

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


def test_a_trail_shows_where_and_not_what() -> None:
    try:
        try:
            raise KeyError("the secret question")
        except KeyError as cause:
            raise InternalFault("broken", value="the secret question") from cause
    except InternalFault as error:
        summary = trail(error)
    assert "secret" not in summary
    assert "InternalFault(broken)" in summary
    assert "KeyError at test_context.py:" in summary


def test_a_trail_goes_into_a_group() -> None:
    group = ExceptionGroup("several", [InternalFault("index_failed"), ValueError("secret")])
    assert "InternalFault(index_failed)" in trail(group)


def test_a_trail_of_errors_that_refer_to_each_other_ends() -> None:
    fault = InternalFault("index_failed")
    fault.__context__ = ExceptionGroup("streams", [fault])
    assert trail(fault).count("InternalFault(index_failed)") == 2
