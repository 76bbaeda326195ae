"""The tenant's searchable chunks, behind one protocol."""

from tenants.index.access import close_all, open_collection, put_in_force, remove, sweep
from tenants.index.layout import DENSE
from tenants.index.protocol import Collection, Conditions, Dense, Hit, Json, Point, Sparse, Vector, Weights

__all__ = [
    "DENSE",
    "Collection",
    "Conditions",
    "Dense",
    "Hit",
    "Json",
    "Point",
    "Sparse",
    "Vector",
    "Weights",
    "close_all",
    "open_collection",
    "put_in_force",
    "remove",
    "sweep",
]
