"""A policy is bounded wherever it comes from."""

import pytest
from pydantic import ValidationError

from settings import Settings
from tenants.accounts import policy
from tenants.accounts.policy import Policy
from tenants.accounts.registry import Registry
from tenants.core.context import Tenant, acting_as
from tenants.core.errors import Invalid


@pytest.mark.parametrize(
    "fields",
    [
        {"top_k": 0},
        {"top_k": 21},
        {"locale": "de"},
        {"name": " "},
        {"handoff_channel": ""},
        {"allowed_domains": ["https://example.com"]},
        {"allowed_domains": ["com"]},
        {"approved_offers": {"cancellation": ""}},
        {"rate_limit_per_minute": -1},
        {"unknown": 1},
    ],
)
def test_the_default_policy(fields: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        Policy.model_validate(fields)


def test_a_refused_change_names_its_field_and_changes_nothing(installation: Settings) -> None:
    Registry(installation).add("acme", locale="en")
    with acting_as(Tenant("acme", "anna")):
        with pytest.raises(Invalid) as refused:
            policy.change(top_k=99)
        assert (refused.value.code, refused.value.params) == ("policy_invalid", {"field": "top_k"})
        assert policy.current() == Policy.model_validate({"name": "acme", "locale": "en"})


def test_domains_are_lower_case() -> None:
    assert Policy.model_validate({"allowed_domains": ["Help.Example.COM"]}).allowed_domains == ("help.example.com",)
