"""Every table of the records. Importing this module registers all of them with `Base`."""

from tenants.access import tables as _access  # noqa: F401
from tenants.accounts import settings_history  # noqa: F401
from tenants.chats import tables as _chats  # noqa: F401
from tenants.desk import sso_providers  # noqa: F401
from tenants.desk import tables as _desk  # noqa: F401
from tenants.knowledge import tables as _knowledge  # noqa: F401
from tenants.storage import audit_tables  # noqa: F401
from tenants.storage.tables import Base
from tenants.work import tables as _work  # noqa: F401

__all__ = ["Base"]
