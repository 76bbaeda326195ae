"""Code that works across tenants is listed, and nothing gets around the session that restricts queries."""

import ast
from collections.abc import Iterator

import pytest

from settings import ROOT

ACROSS = {
    # The tenant is not known yet: a login, a site's key, a link or a session's secret leads to it.
    "accounts/registry.py": {"add", "load"},
    "chats/sites.py": {"_owner"},
    "desk/invitations.py": {"check"},
    "desk/operator_sessions.py": {"begin", "_find"},
    "desk/operators.py": {
        *("installation_admins", "anybody", "_staffed", "_find", "_writing"),
    },
    # What requests of any tenants have left to write.
    "access/token_uses.py": {"write"},
    # Workers that find work of any tenant.
    "chats/outbox.py": {"claim"},
    "chats/timeouts.py": {"tenants_due", "tenants_with_chats"},
    "desk/evaluation_questions.py": {"tenants_with_questions"},
    "desk/evaluation_results.py": {"last_nights"},
    "work/jobs.py": {"tenants_waiting"},
    # Retention.
    "privacy/retention.py": {"_prune_some"},
    # The installation as a whole: backup, keys, and counts for its admins.
    "backup/restoring.py": {"_forget_lost_generations"},
    "insight/totals.py": {"by_tenant", "by_state"},
    "knowledge/generations.py": {"current_of", "encoders"},
    "privacy/erasures.py": {"journal"},
    "privacy/resealing.py": {"_reseal"},
    "storage/diagnosis.py": {"row_counts"},
}
"""Functions that open a session over all tenants, by file."""

CONNECTIONS = {
    "backup/taking.py",
    *(f"storage/{name}.py" for name in ("database", "diagnosis", "searching", "tenant_session")),
}
"""Files that use connections without a session, which nothing restricts on SQLite."""

SQL = {
    "backup/taking.py",
    "storage/database.py",
    "storage/tenant_session.py",
    "work/queue.py",
}
"""Files with SQL as text, none of it about tables of tenants."""


def _modules() -> Iterator[tuple[str, ast.AST]]:
    for path in sorted((ROOT / "tenants").rglob("*.py")):
        name = path.relative_to(ROOT / "tenants").as_posix()
        if not name.startswith("migrations/"):
            yield name, ast.parse(path.read_text(encoding="utf-8"))


def _called(node: ast.AST) -> str:
    if not isinstance(node, ast.Call):
        return ""
    return node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")


def callers(tree: ast.AST, function: str) -> set[str]:
    """Return the innermost functions that call a function."""
    found = set()

    def visit(node: ast.AST, within: str) -> None:
        name = node.name if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) else within
        if _called(node) == function:
            found.add(name)
        for child in ast.iter_child_nodes(node):
            visit(child, name)

    visit(tree, "")
    return found


def ways_around(name: str, tree: ast.AST) -> Iterator[str]:
    """Yield the code of a module that a session does not restrict to its tenant."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.expr):
            continue
        if isinstance(node, ast.Attribute) and node.attr in ("__table__", "local_table") and "removal" not in name:
            yield f"{name}:{node.lineno} uses a table instead of its class"
        connects = _called(node) in ("connection", "connect", "raw_connection", "engine")
        if connects and name not in CONNECTIONS and not name.startswith("index/"):
            yield f"{name}:{node.lineno} opens a connection"
        if _called(node) == "text" and name not in SQL:
            yield f"{name}:{node.lineno} has SQL as text"


def test_code_that_works_across_tenants_is_listed() -> None:
    found = {name: callers(tree, "across_tenants") for name, tree in _modules()}
    assert {name: functions for name, functions in found.items() if functions} == ACROSS


def test_nothing_gets_around_the_session() -> None:
    assert [way for name, tree in _modules() for way in ways_around(name, tree)] == []


@pytest.mark.parametrize(
    "source",
    [
        "session.execute(select(ChatRow.__table__))",
        "session.connection().execute(insert(ChatRow))",
        "database.engine().connect()",
        "session.execute(text('SELECT * FROM chats'))",
    ],
)
def test_a_way_around_is_seen(source: str) -> None:
    assert list(ways_around("chats/store.py", ast.parse(source)))
