"""Operators and their sessions, on every database."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
from argon2 import PasswordHasher, extract_parameters
from argon2.profiles import RFC_9106_LOW_MEMORY
from sqlalchemy import update

from settings import Settings
from tenants.accounts.registry import Registry
from tenants.core.context import Tenant, acting_as
from tenants.core.errors import Invalid, NotFound, Unauthenticated
from tenants.desk import operator_sessions, operators
from tenants.desk.operators import Operator
from tenants.desk.tables import OperatorRow, OperatorSessionRow
from tenants.privacy import retention
from tenants.storage import database

PASSWORD = "снег идёт над рекой"
ACME, GLOBEX = Tenant("acme", "admin"), Tenant("globex", "admin")


@pytest.fixture
def acme(records: Settings) -> Iterator[None]:
    for tenant_id in ("acme", "globex"):
        Registry().add(tenant_id)
    with acting_as(ACME):
        yield


@pytest.fixture
def anna(acme: None) -> Operator:
    return operators.add("Anna@Shop.example ", PASSWORD, role="editor", name="  Анна   Смирнова ")


def test_an_operator_is_stored_under_one_spelling_with_a_hashed_password(anna: Operator) -> None:
    assert (anna.login, anna.name, anna.tenant_id, anna.role) == (
        "anna@shop.example",
        "Анна Смирнова",
        "acme",
        "editor",
    )
    acting = anna.acting()
    assert acting is not None
    assert (acting.tenant_id, acting.subject, acting.scopes) == ("acme", anna.login, frozenset({"operate", "ingest"}))
    assert operators.all() == (anna,)
    assert operators.authenticate("ANNA@shop.example", PASSWORD) == anna
    with database.reading() as session:
        row = session.get(OperatorRow, anna.operator_id)
        assert row is not None
        assert row.password.startswith("$argon2id$")


def test_passwords_are_hashed_as_rfc_9106_says(password_hasher: PasswordHasher) -> None:
    recommended = RFC_9106_LOW_MEMORY
    for hashed in (password_hasher.hash(PASSWORD), operators._NOBODYS):
        used = extract_parameters(hashed)
        assert used.type == recommended.type
        assert (used.memory_cost, used.time_cost, used.parallelism) == (
            recommended.memory_cost,
            recommended.time_cost,
            recommended.parallelism,
        )


def test_a_wrong_password_and_an_unknown_login_are_the_same(anna: Operator, subtests: pytest.Subtests) -> None:
    for login, password in (("anna@shop.example", "wrong"), ("nobody", PASSWORD), ("\0", "")):
        with subtests.test(login=login), pytest.raises(Unauthenticated, match="sign_in_failed"):
            operators.authenticate(login, password)


def test_a_bad_login_or_password_is_refused(acme: None, subtests: pytest.Subtests) -> None:
    for login, password, code in (
        ("a", PASSWORD, "login_invalid"),
        ("an na", PASSWORD, "login_invalid"),
        ("anna\n", PASSWORD, "login_taken"),
        ("x" * 101, PASSWORD, "login_invalid"),
        ("boris", "короткий", "password_short"),
        ("boris", "x" * 201, "password_short"),
        ("boris", "Boris-2026-", "password_weak"),
        ("boris", "aaaaaaaaaaaa", "password_weak"),
    ):
        if code == "login_taken":
            operators.add("anna", PASSWORD, role="operator")
        with subtests.test(login=login), pytest.raises(Invalid) as refused:
            operators.add(login, password, role="operator")
        assert refused.value.code == code


def test_no_tenant_may_make_an_admin_of_the_installation(acme: None) -> None:
    with pytest.raises(Invalid, match="role_unknown"):
        operators.add("boris", PASSWORD, role="installation")


def test_login_is_unique_within_tenant_only(anna: Operator) -> None:
    with acting_as(GLOBEX):
        assert operators.all() == ()
        theirs = operators.add(anna.login, "дождь шёл всю ночь", role="admin")
        with pytest.raises(Invalid, match="login_taken"):
            operators.add(anna.login, PASSWORD, role="admin")
        secret = operator_sessions.begin(theirs, address="", browser="")
    root = operators.add_installation_admin(anna.login, PASSWORD)
    assert operators.authenticate(anna.login, PASSWORD, "acme") == anna
    assert operators.authenticate(anna.login, "дождь шёл всю ночь", "globex") == theirs
    assert operators.authenticate(anna.login, PASSWORD) == root
    with pytest.raises(Unauthenticated, match="sign_in_failed"):
        operators.authenticate(anna.login, PASSWORD, "globex")
    operators.set_password(anna.login, "ветер стих к утру")
    assert operator_sessions.verify(secret).operator == theirs
    with pytest.raises(Invalid, match="login_taken"):
        operators.add_installation_admin(anna.login, PASSWORD)


def test_sign_in_without_company_finds_only_tenant_or_installation(anna: Operator) -> None:
    root = operators.add_installation_admin("root", PASSWORD)
    assert not operators.has_several_tenants()
    assert operators.authenticate(anna.login, PASSWORD) == anna
    assert operators.authenticate("root", PASSWORD) == root
    with acting_as(GLOBEX):
        operators.add("boris", PASSWORD, role="admin")
    assert operators.has_several_tenants()
    assert operators.authenticate("root", PASSWORD) == root
    for login in (anna.login, "boris"):
        with pytest.raises(Unauthenticated, match="sign_in_failed"):
            operators.authenticate(login, PASSWORD)


def test_sign_in_hashes_as_often_for_unknown_login(anna: Operator, monkeypatch: pytest.MonkeyPatch) -> None:
    operators.add_installation_admin("root", PASSWORD)
    with acting_as(GLOBEX):
        operators.add("boris", PASSWORD, role="admin")
        operators.add(anna.login, PASSWORD, role="admin")
    hashed: list[str] = []

    def verify(stored: str, _password: str) -> bool:
        hashed.append(stored)
        return False

    monkeypatch.setattr(operators, "_verify", verify)
    for company in ("", "acme", "globex", "nobody"):
        spent = []
        for login in (anna.login, "boris", "root", "nobody"):
            with pytest.raises(Unauthenticated):
                operators.authenticate(login, "wrong", company)
            spent.append(len(hashed))
            hashed.clear()
        assert len(set(spent)) == 1


def test_operators_of_other_tenants_are_out_of_reach(anna: Operator) -> None:
    with acting_as(GLOBEX):
        for reach in (operators.get, operators.remove, lambda login: operators.set_password(login, PASSWORD)):
            with pytest.raises(NotFound, match="operator_unknown"):
                reach(anna.login)
    with pytest.raises(NotFound):
        operators.remove(anna.login, installation=True)
    assert operators.get(anna.login) == anna


def test_an_admin_of_the_installation_has_no_tenant(acme: None) -> None:
    root = operators.add_installation_admin("root", PASSWORD)
    assert root.acting() is None
    assert operators.installation_admins() == (root,)
    assert operators.all() == ()
    with pytest.raises(NotFound):
        operators.remove("root")
    operators.set_password("root", "дождь шёл всю ночь", installation=True)
    assert operators.authenticate("root", "дождь шёл всю ночь") == root
    operators.remove("root", installation=True)
    assert not operators.anybody()


def test_a_session_is_found_by_its_secret_alone(anna: Operator) -> None:
    one, two = (operator_sessions.begin(anna, address="10.0.0.1", browser="Firefox") for _ in range(2))
    assert one != two
    signed_in = operator_sessions.verify(one)
    assert signed_in.operator == anna
    assert signed_in.csrf != operator_sessions.verify(two).csrf
    assert {listed.session_id for listed in operator_sessions.of(anna)} == {
        operator_sessions.verify(secret).session_id for secret in (one, two)
    }
    with database.reading() as session:
        assert session.get(OperatorSessionRow, one) is None
    for wrong in ("", signed_in.digest, one + "x", "x" * 1_000, "\ud800"):
        with pytest.raises(Unauthenticated, match="session_ended"):
            operator_sessions.verify(wrong)


def test_desk_is_in_use_while_an_operator_opens_pages(anna: Operator) -> None:
    assert not operator_sessions.desk_in_use()
    operator_sessions.begin(anna, address="", browser="")
    assert operator_sessions.desk_in_use()
    with acting_as(GLOBEX):
        assert not operator_sessions.desk_in_use()
    with database.writing() as session:
        session.execute(update(OperatorSessionRow).values(seen_at=datetime.now(UTC) - timedelta(hours=1)))
    assert not operator_sessions.desk_in_use()


@pytest.mark.parametrize(
    ("created", "seen", "alive"),
    [
        (timedelta(hours=11), timedelta(hours=11), True),
        (timedelta(hours=12), timedelta(hours=12), False),
        (timedelta(days=13), timedelta(0), True),
        (timedelta(days=14), timedelta(0), False),
    ],
)
def test_a_session_ends_with_time(anna: Operator, created: timedelta, seen: timedelta, alive: bool) -> None:
    secret = operator_sessions.begin(anna, address="", browser="")
    signed_in = operator_sessions.verify(secret)
    with database.writing() as session:
        row = session.get(OperatorSessionRow, signed_in.digest)
        assert row is not None
        moved = {"created_at": row.created_at - created, "seen_at": row.seen_at - seen}
        session.execute(update(OperatorSessionRow).values(moved))
    assert operator_sessions.is_alive(signed_in) is alive
    assert len(operator_sessions.of(anna)) == alive
    if alive:
        assert operator_sessions.verify(secret).operator == anna
        assert operator_sessions.of(anna)[0].seen_at > row.seen_at - timedelta(minutes=1)
    else:
        with pytest.raises(Unauthenticated):
            operator_sessions.verify(secret)
        retention.prune()
        if seen:
            with database.reading() as session:
                assert session.get(OperatorSessionRow, signed_in.digest) is None


def test_sessions_end_one_by_one_and_all_at_once(anna: Operator) -> None:
    boris = operators.add("boris", PASSWORD, role="operator")
    one, two, other = (operator_sessions.begin(who, address="", browser="") for who in (anna, anna, boris))
    with pytest.raises(NotFound, match="session_unknown"):
        operator_sessions.end(anna, operator_sessions.verify(other).session_id)
    operator_sessions.end(anna, operator_sessions.verify(one).session_id)
    assert len(operator_sessions.of(anna)) == 1
    assert operator_sessions.end_all(anna) == 1
    for ended in (one, two):
        with pytest.raises(Unauthenticated):
            operator_sessions.verify(ended)
    operator_sessions.end_by_secret(other)
    assert operator_sessions.of(boris) == ()


def test_a_new_password_and_a_removal_end_every_session(anna: Operator) -> None:
    secret = operator_sessions.begin(anna, address="", browser="")
    operators.set_password(anna.login, "дождь шёл всю ночь")
    with pytest.raises(Unauthenticated):
        operator_sessions.verify(secret)
    with pytest.raises(Unauthenticated):
        operators.authenticate(anna.login, PASSWORD)
    secret = operator_sessions.begin(operators.get(anna.login), address="", browser="")
    operators.remove(anna.login)
    with pytest.raises(Unauthenticated):
        operator_sessions.verify(secret)


@pytest.mark.parametrize("meanwhile", ["password", "removed", "added again"])
def test_a_change_during_a_sign_in_refuses_it(anna: Operator, meanwhile: str) -> None:
    verified = operators.authenticate(anna.login, PASSWORD)
    if meanwhile == "password":
        operators.set_password(anna.login, "дождь шёл всю ночь")
    else:
        operators.remove(anna.login)
    if meanwhile == "added again":
        operators.add(anna.login, PASSWORD, role="editor")
    with pytest.raises(Unauthenticated, match="sign_in_failed"):
        operator_sessions.begin(verified, address="", browser="")
    assert operator_sessions.of(verified) == ()


def test_an_old_password_replaces_no_newer_one(anna: Operator) -> None:
    verified = operators.check_password(anna, PASSWORD)
    operators.set_password(anna.login, "дождь шёл всю ночь")
    with pytest.raises(Unauthenticated, match="sign_in_failed"):
        operators.set_password(anna.login, "ветер стих к утру", verified=verified)
    assert operators.authenticate(anna.login, "дождь шёл всю ночь") == anna


def test_a_provider_demotes_no_last_admin(anna: Operator) -> None:
    for login in ("vera", "oleg"):
        operators.add(login, PASSWORD, role="admin")
    roles = [operators.admit(login, role="operator", default_role=None, name="").role for login in ("vera", "oleg")]
    assert roles == ["operator", "admin"]
