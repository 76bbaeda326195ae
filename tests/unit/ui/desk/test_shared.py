"""Parts of live pages that tabs share."""

from itertools import count

import pytest

from tenants.chats import fanout
from tenants.chats.fanout import Announcement
from tenants.core.context import Tenant, acting_as
from ui.desk.rendering import Shared

pytestmark = pytest.mark.usefixtures("installation")


def announce(tenant_id: str, **more: str) -> None:
    fanout.announce(Announcement(tenant_id, "chat", **more))  # type: ignore[arg-type]


def test_tabs_share_a_part_until_a_chat_of_their_tenant_changes() -> None:
    shared, numbers = Shared(), count(1)

    def shown_to(tenant_id: str, login: str) -> int:
        with acting_as(Tenant(tenant_id, login)):
            return shared.get(lambda: next(numbers), "rows")

    assert [shown_to("acme", "anna"), shown_to("acme", "boris"), shown_to("globex", "anna")] == [1, 1, 2]
    announce("acme", kind="typing")
    assert shown_to("acme", "anna") == 1
    announce("acme")
    assert [shown_to("acme", "anna"), shown_to("globex", "anna")] == [3, 2]


def test_part_that_a_change_overtakes_is_not_shown_again() -> None:
    shared = Shared()
    with acting_as(Tenant("acme", "anna")):

        def make() -> str:
            announce("acme")
            return "before the change"

        assert shared.get(make, "rows") == "before the change"
        assert shared.get(lambda: "after it", "rows") == "after it"
