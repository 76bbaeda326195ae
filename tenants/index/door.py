"""The one door to a tenant's chunks: which backend, which collection, opened once per process.

The tenant comes from the context and the place from the registry. No caller can name either.
"""

from pathlib import Path
from threading import Lock

from settings import Settings, get_settings
from tenants import registry
from tenants.errors import InternalFault
from tenants.index.edge import EdgeCollection
from tenants.index.empty import EmptyCollection
from tenants.index.protocol import Collection
from tenants.registry import TenantRecord

_OPEN: dict[tuple[str, str], Collection] = {}
_OPENING = Lock()


def open_collection(*, create: bool = False) -> Collection:
    """The chunks of the tenant in context.

    Raises `NoTenant` outside a tenant context, `NotFound` when the tenant is not registered, `Busy` with the code
    `data_in_use` when another process has the folder of the embedded engine.

    :param create: make the collection when the tenant has none yet. Without it such a tenant reads as empty.
    """
    settings = get_settings()
    tenant = registry.current(settings)
    if tenant.placement.filter is not None or tenant.placement.shard_key is not None:
        # Sharing needs every read and write narrowed to the tenant. Until that is built, refuse rather than leak.
        raise InternalFault("placement_unsupported")
    key = (settings.qdrant_url or str(settings.data_dir.resolve()), tenant.placement.physical)
    collection = _OPEN.get(key)
    if collection is not None:
        return collection
    with _OPENING:
        if key not in _OPEN:
            opened = _open(settings, tenant, create=create)
            if opened is None:
                return EmptyCollection()
            _OPEN[key] = opened
        return _OPEN[key]


def close_all() -> None:
    """Close every collection. The next call opens anew."""
    with _OPENING:
        while _OPEN:
            _OPEN.popitem()[1].close()


def _open(settings: Settings, tenant: TenantRecord, *, create: bool) -> Collection | None:
    folder = _folder(settings, tenant)
    if not EdgeCollection.exists(folder):
        if not create:
            return None
        EdgeCollection.create(folder, tenant.tenant_id)
    return EdgeCollection(folder, tenant.tenant_id)


def _folder(settings: Settings, tenant: TenantRecord) -> Path:
    return settings.data_dir / "index" / tenant.placement.physical
