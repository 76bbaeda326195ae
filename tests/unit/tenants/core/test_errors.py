import pytest

from tenants.core.errors import Clash, Invalid, OporaError


def test_an_error_is_raised_in_place_of_another_and_keeps_it_as_its_cause() -> None:
    with pytest.raises(Invalid) as raised, Invalid("file_damaged", path="a.pdf").instead_of(KeyError, ValueError):
        raise ValueError("secret")
    assert (raised.value.code, raised.value.params) == ("file_damaged", {"path": "a.pdf"})
    assert isinstance(raised.value.__cause__, ValueError)


@pytest.mark.parametrize("fault", [TypeError(), Clash()])
def test_errors_of_other_kinds_pass(fault: Exception) -> None:
    with pytest.raises(type(fault)) as raised, Invalid("file_damaged").instead_of(KeyError, ValueError):
        raise fault
    assert raised.value is fault


def test_an_error_is_not_raised_without_a_fault() -> None:
    with OporaError().instead_of(Exception):
        passed = True
    assert passed
