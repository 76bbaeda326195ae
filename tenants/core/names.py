"""Names of collections and folders: one per tenant id, never shared by two, on any file system.

Threat: two tenants share one collection. A sanitiser that drops unsupported characters maps every pair of Cyrillic ids
of equal length to one name, and a case-insensitive file system maps `Acme` to `acme`. So a clean lower-case id is used
as the name, and any other gets a readable slug and 130 bits of SHA-256, with a `~` that no clean id contains.
"""

import re
import unicodedata
from base64 import b32encode
from hashlib import sha256

from tenants.core.errors import Invalid

MAX_ID_BYTES = 255
"""Longest tenant id or subject, in UTF-8 bytes."""

# A final dot is dropped by Windows, so it is not clean.
_CLEAN = re.compile(r"[a-z0-9](?:[a-z0-9._-]{0,61}[a-z0-9_-])?")
_NOT_SLUG = re.compile(r"[^a-z0-9]+")
_UNPRINTABLE = frozenset({"Cc", "Cs", "Zl", "Zp"})
_GENERATION = "~g"
_SLUG_LENGTH = 40
_HASH_LENGTH = 26
# Device names on Windows, with any extension.
_DEVICES = re.compile(r"(?:con|prn|aux|nul|com[0-9]|lpt[0-9])(?:\..*)?")


def check_tenant_id(tenant_id: str) -> str:
    """`tenant_id` itself when it can name a tenant: 1–255 bytes of UTF-8 without control characters.

    Raises `Invalid` with the code `tenant_id_invalid` otherwise. Control characters and line separators could forge log
    lines, NUL is refused by PostgreSQL, and lone surrogates have no UTF-8.
    """
    return _check(tenant_id, "tenant_id_invalid")


def check_subject(subject: str) -> str:
    """Check the person or system inside a tenant. Raises `Invalid` with the code `subject_invalid`."""
    return _check(subject, "subject_invalid")


def _check(name: str, code: str) -> str:
    if not name or any(unicodedata.category(character) in _UNPRINTABLE for character in name):
        raise Invalid(code)
    if len(name.encode()) > MAX_ID_BYTES:
        raise Invalid(code)
    return name


def collection_name(tenant_id: str) -> str:
    """Return the name of the tenant's collection: lower-case ASCII, at most 67 bytes, unique per id."""
    check_tenant_id(tenant_id)
    if _CLEAN.fullmatch(tenant_id) and not _DEVICES.fullmatch(tenant_id):
        return tenant_id
    slug = _NOT_SLUG.sub("-", tenant_id.lower()).strip("-")[:_SLUG_LENGTH] or "t"
    return f"{slug}~{b32encode(sha256(tenant_id.encode()).digest()).decode()[:_HASH_LENGTH].lower()}"


def physical_name(collection: str, generation: int) -> str:
    """Return the name of one generation of a collection; the collection's own name is an alias of it."""
    return f"{collection}{_GENERATION}{generation:06d}"


def shared_name(dimensions: int) -> str:
    """Return the name of the shared collection with dense vectors of this size; no tenant's own name equals it."""
    return f"shared~{dimensions}"


def collection_of(physical: str) -> str:
    """Return the collection of a generation or of its draft."""
    return physical.rpartition(_GENERATION)[0]
