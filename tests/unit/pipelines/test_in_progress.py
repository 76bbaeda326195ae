"""Bytes of bodies that are held at once, and the log of connections."""

import logging

from pipelines.connections import SeldomFilter
from pipelines.in_progress import InProgress
from tenants.chats.visitors import SCOPE as VISIT
from tenants.core.context import Tenant
from tenants.core.errors import Busy

PIECE = 1_000_000
PHOTO = 4 * PIECE


def most_bytes(bodies: InProgress, caller: Tenant) -> int:
    """Return how many bytes the caller may send until it is refused."""
    total = 0
    while True:
        try:
            bodies.hold(caller, PIECE)
        except Busy:
            return total
        total += PIECE


def visitor(tenant_id: str, sender: str, subject: str = "v:1") -> Tenant:
    return Tenant(tenant_id, subject, scopes=frozenset({VISIT}), site=tenant_id, sender=sender)


def test_visitors_leave_room_for_staff_and_for_other_addresses() -> None:
    bodies = InProgress()
    one_address = [most_bytes(bodies, caller) for caller in (visitor("a", "::1"), visitor("b", "::1", "v:2"))]
    assert one_address == [100 * PIECE, 0]
    assert most_bytes(bodies, visitor("b", "::2")) > 0
    for number in range(3, 10):
        most_bytes(bodies, visitor(str(number), f"::{number}"))
    assert most_bytes(bodies, Tenant("a", "t", scopes=frozenset({"ingest"}))) > 50 * PIECE
    bodies.let_go(visitor("a", "::1"), one_address[0])
    assert most_bytes(bodies, visitor("new", "::1")) > 0


def test_a_few_addresses_leave_room_for_a_photo() -> None:
    """Three addresses, with 30 MB each, had all that there was."""
    bodies = InProgress()
    for number in range(4):
        most_bytes(bodies, visitor("mallory", f"::{number}"))
        most_bytes(bodies, visitor("trent", f"::{number}"))
    for _ in range(PHOTO // PIECE):
        bodies.hold(visitor("acme", "::9"), PIECE)


def test_customers_behind_one_router_send_photos_at_once() -> None:
    bodies = InProgress()
    for number in range(20):
        for _ in range(PHOTO // PIECE):
            bodies.hold(visitor("shop", "192.0.2.1", f"v:{number}"), PIECE)


def test_a_tenants_own_server_sends_for_many_customers() -> None:
    """Its customers' files counted for one address, 30 MB in all."""
    bodies = InProgress()
    server = Tenant("shop", "telegram:1", scopes=frozenset({VISIT}))
    assert most_bytes(bodies, server) == 150 * PIECE
    assert most_bytes(bodies, visitor("acme", "192.0.2.1")) > PHOTO


def test_visitors_who_have_signed_in_share_no_limit_of_an_address() -> None:
    bodies = InProgress()
    first, second = (visitor("shop", Tenant("shop", name).key(), name) for name in ("u:anna", "u:boris"))
    assert most_bytes(bodies, first) == 100 * PIECE
    assert most_bytes(bodies, second) > PHOTO


def _record(second: float, text: str = "Invalid HTTP request received.") -> logging.LogRecord:
    record = logging.LogRecord("uvicorn.error", logging.WARNING, "", 0, text, None, None)
    record.created = second
    return record


def test_repeated_invalid_requests_are_logged_once_in_ten_seconds() -> None:
    seldom = SeldomFilter()
    records = [_record(100 + number / 100) for number in range(1_500)]
    written = [record for record in records if seldom.filter(record)]
    assert [record.created for record in written] == [100, 110]
    assert written[1].getMessage() == "Invalid HTTP request received. 999 more since the last line."


def test_other_lines_are_always_written() -> None:
    seldom = SeldomFilter()
    assert all(seldom.filter(_record(100, "Started")) for _ in range(3))
