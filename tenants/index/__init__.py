"""The tenant's searchable chunks, behind one protocol."""

from tenants.index.access import (
    activate,
    attach,
    bytes_on_disk,
    close_all,
    damage,
    damage_noticed,
    damaged,
    is_open,
    open_collection,
    remove,
    remove_all,
    repairing,
    share,
    sweep,
)
from tenants.index.layout import DENSE, SPARSE
from tenants.index.protocol import Collection

__all__ = [
    "DENSE",
    "SPARSE",
    "Collection",
    "activate",
    "attach",
    "bytes_on_disk",
    "close_all",
    "damage",
    "damage_noticed",
    "damaged",
    "is_open",
    "open_collection",
    "remove",
    "remove_all",
    "repairing",
    "share",
    "sweep",
]
