"""Bytes of bodies that are held at once."""

from pipelines.in_progress import MOST_HELD_BYTES_OF_ADDRESS, InProgress
from tenants.chats.visitors import SCOPE as VISIT
from tenants.core.context import Tenant
from tenants.core.errors import Busy

PIECE = 10_000_000


def most_bytes(bodies: InProgress, caller: Tenant, address: str) -> int:
    """Return how many bytes the caller may send until it is refused."""
    total = 0
    while True:
        try:
            bodies.hold(caller, address, PIECE)
        except Busy:
            return total
        total += PIECE


def visitor(tenant_id: str, subject: str = "v") -> Tenant:
    return Tenant(tenant_id, subject, scopes=frozenset({VISIT}), site=tenant_id)


def test_visitors_leave_room_for_staff_and_for_other_addresses() -> None:
    bodies = InProgress()
    callers = visitor("a"), visitor("b", "w")
    one_address = [most_bytes(bodies, caller, "::1") for caller in callers]
    assert one_address == [MOST_HELD_BYTES_OF_ADDRESS + PIECE, 0]
    assert most_bytes(bodies, visitor("b"), "::2") > 0
    for number in range(10):
        most_bytes(bodies, visitor(str(number)), f"::{number}")
    assert most_bytes(bodies, Tenant("a", "t", scopes=frozenset({"ingest"})), "::1") > 50_000_000
    bodies.let_go(visitor("a"), "::1", one_address[0])
    assert most_bytes(bodies, visitor("new"), "::1") > 0
