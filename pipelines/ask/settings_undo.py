"""Undo of changes to settings of all kinds."""

from pipelines.ask import profiles
from tenants.accounts import settings_history
from tenants.accounts.settings_history import SettingChange
from tenants.chats import sites
from tenants.core.errors import Invalid


def undo(change_id: str) -> SettingChange:
    """Restore the values from before a change. This is recorded as a separate change and can be undone.

    :raises NotFound: `change_unknown`, or the changed object no longer exists.
    :raises Invalid: `change_final`: it cannot be undone, because something was added, removed or replaced by it.
    """
    undone = settings_history.get(change_id)
    if not undone.can_be_undone:
        raise Invalid("change_final")
    if undone.area == "policy":
        profiles.apply_policy(undone.before)
    else:
        sites.restore(undone.about, undone.before)
    return undone
