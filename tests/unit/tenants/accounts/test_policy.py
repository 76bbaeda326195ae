"""A policy is bounded wherever it comes from."""

import pytest
from pydantic import ValidationError

from settings import Settings
from tenants.accounts import policy, registry
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
        {"spend_cap_usd_per_day": float("inf")},
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


def test_lists_stored_before_their_bounds_load_and_stay(installation: Settings) -> None:
    Registry(installation).add("acme")
    domains = [f"a{number}.example" for number in range(600)]
    offers = {f"{'refund ' * 40}{number}": "Offer" for number in range(200)}
    with acting_as(Tenant("acme", "anna")):
        with registry.changing() as (_, row):
            row.policy = {"allowed_domains": domains, "approved_offers": offers}
        policy.apply({"top_k": 7, "allowed_domains": domains})
        assert (policy.current().top_k, len(policy.current().allowed_domains)) == (7, 600)
        for field in ({"allowed_domains": domains[:501]}, {"approved_offers": {"x" * 201: "Offer"}}):
            with pytest.raises(Invalid, match="policy_invalid"):
                policy.apply(field)
        policy.change(allowed_domains=domains[:500])
        assert len(policy.current().allowed_domains) == 500


def test_domains_are_lower_case() -> None:
    assert Policy.model_validate({"allowed_domains": ["Help.Example.COM"]}).allowed_domains == ("help.example.com",)
