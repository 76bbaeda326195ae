"""Log output of exceptions holds no message text."""

from tenants.core.errors import InternalFault, trail


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
    assert "KeyError at test_errors.py:" in summary


def test_a_trail_goes_into_a_group() -> None:
    group = ExceptionGroup("several", [InternalFault("index_failed"), ValueError("secret")])
    assert "InternalFault(index_failed)" in trail(group)


def test_a_trail_of_errors_that_refer_to_each_other_ends() -> None:
    fault = InternalFault("index_failed")
    fault.__context__ = ExceptionGroup("streams", [fault])
    assert trail(fault).count("InternalFault(index_failed)") == 2
