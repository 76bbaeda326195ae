"""Every table of the records. Importing this module registers all of them with `Base`."""

from tenants.chats import tables as _chats  # noqa: F401
from tenants.desk import sso_providers  # noqa: F401
from tenants.desk import tables as _desk  # noqa: F401
from tenants.storage import audit_tables, shared_tables  # noqa: F401
from tenants.storage.tables import Base

__all__ = ["Base"]
