"""The one door to a tenant's chunks: which backend, which collection, opened once per process.

The tenant comes from the context and the place from the registry. No caller can name either.
"""

from threading import Lock
from typing import TYPE_CHECKING

from settings import Settings, get_settings
from tenants import registry
from tenants.errors import InternalFault
from tenants.index.edge import EdgeCollection
from tenants.index.empty import EmptyCollection
from tenants.index.protocol import Collection
from tenants.registry import TenantRecord

if TYPE_CHECKING:
    from tenants.index.server import QdrantServer

_OPEN: dict[tuple[str, str], Collection] = {}
_SERVERS: dict[str, "QdrantServer"] = {}
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
    """Close every collection and connection. The next call opens anew.

    Call it when the process ends and after a long ingest: the embedded engine compacts what was written.
    """
    with _OPENING:
        while _OPEN:
            _OPEN.popitem()[1].close()
        while _SERVERS:
            _SERVERS.popitem()[1].close()


def _open(settings: Settings, tenant: TenantRecord, *, create: bool) -> Collection | None:
    return (
        _open_server(settings, tenant, create=create)
        if settings.qdrant_url
        else _open_edge(settings, tenant, create=create)
    )


def _open_edge(settings: Settings, tenant: TenantRecord, *, create: bool) -> Collection | None:
    folder = settings.data_dir / "index" / tenant.placement.physical
    if not EdgeCollection.exists(folder):
        if not create:
            return None
        EdgeCollection.create(folder, tenant.tenant_id)
    return EdgeCollection(folder, tenant.tenant_id)


def _open_server(settings: Settings, tenant: TenantRecord, *, create: bool) -> Collection | None:
    # The client takes seconds of CPU to import, which the embedded engine should not pay for.
    from tenants.index.server import QdrantServer, ServerCollection

    url = settings.qdrant_url
    if url not in _SERVERS:
        _SERVERS[url] = QdrantServer(url, settings.qdrant_api_key.get_secret_value())
    server = _SERVERS[url]
    if not ServerCollection.exists(server, tenant.placement):
        if not create:
            return None
        ServerCollection.create(server, tenant.placement, tenant.tenant_id)
    return ServerCollection(server, tenant.placement, tenant.tenant_id)
