"""Undoing a change of settings, whatever it was a change of."""

from tenants.accounts import changes, policy
from tenants.accounts.changes import Change
from tenants.chats import sites
from tenants.core.errors import Invalid


def undo(change_id: str) -> Change:
    """Give what was changed the values from before; this is a change of its own, and can be undone.

    :raises NotFound: `change_unknown`, or what was changed is gone.
    :raises Invalid: `change_final`: it cannot be undone, because something was added, removed or replaced by it.
    """
    undone = changes.get(change_id)
    if not undone.can_be_undone:
        raise Invalid("change_final")
    if undone.area == "policy":
        policy.apply(undone.before)
    else:
        sites.restore(undone.about, undone.before)
    return undone
