"""The tenant's searchable chunks, behind one door and one protocol."""

from tenants.index.door import close_all, open_collection, put_in_force, remove, sweep
from tenants.index.protocol import Collection, Conditions, Hit, Json, Point, Weights

__all__ = [
    "Collection",
    "Conditions",
    "Hit",
    "Json",
    "Point",
    "Weights",
    "close_all",
    "open_collection",
    "put_in_force",
    "remove",
    "sweep",
]
