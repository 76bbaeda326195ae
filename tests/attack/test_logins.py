"""Logins of another tenant: they are neither shown nor taken."""

from collections.abc import Iterator

import httpx
import pytest

from evaluation.benchmarks.attacks import client_from
from pipelines import desk_gate
from settings import Settings
from tenants.core.context import Tenant, acting_as
from tenants.desk import operators
from tests import desk
from tests.attack.attacking import ATTACKER, VICTIM
from tests.desk import PASSWORD, SAME_ORIGIN, Browser
from tests.service.serving import Server, in_force

THEIRS, FREE = "only.at.acme", "at.nobody"
ADDRESS = "127.0.9.1"
"""Attempts of this test count for themselves."""


@pytest.fixture
def admin(server: Server, installation: Settings) -> Iterator[Browser]:
    """The desk of an admin of the attacker's, while the victim has an operator, too."""
    people = {VICTIM: [THEIRS], ATTACKER: ["root.of.mallory", THEIRS, FREE]}
    with in_force(installation):
        for tenant_id, (login, *_) in people.items():
            with acting_as(Tenant(tenant_id, "admin")):
                added = operators.add(login, PASSWORD, role="admin")
        with client_from(server.url, ADDRESS) as client:
            yield Browser(client, desk.secret_of(added))
        for tenant_id, logins in people.items():
            with acting_as(Tenant(tenant_id, "admin")):
                for login in logins:
                    operators.remove(login, even_last=True)


def test_a_login_of_another_tenant_is_not_revealed(admin: Browser) -> None:
    def sign_in(login: str, company: str) -> httpx.Response:
        form = {"login": login, "password": PASSWORD, "company": company}
        return admin.client.post(desk_gate.SIGN_IN, data=form, headers=SAME_ORIGIN)

    for company in ("", ATTACKER, "nobody"):
        known, unknown = sign_in(THEIRS, company), sign_in(FREE, company)
        assert (known.status_code, unknown.status_code) == (401, 401)
        assert known.text.replace(THEIRS, "") == unknown.text.replace(FREE, "")
    form = {"password": PASSWORD, "role": "operator"}
    added = [admin.post("/desk/people/add", {**form, "login": one}) for one in (THEIRS, FREE)]
    assert {(one.status_code, one.headers["location"]) for one in added} == {(303, "/desk/people")}
    assert admin.post("/desk/people/add", {**form, "login": THEIRS}).status_code == 422
