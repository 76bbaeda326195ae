"""Manifest of a backup. It is written last, so a truncated backup has no manifest."""

from datetime import datetime
from importlib.metadata import version

from pydantic import BaseModel, ConfigDict

FORMAT = 1
NAME = "manifest.json"


class Manifest(BaseModel):
    """The contents of a backup.

    :param format: of the file; a newer one cannot be read here.
    :param opora: the version that took it.
    :param revision: of the database's schema.
    :param started_at: everything acknowledged before is in it, and so is every erasure.
    :param rows: how many, by table.
    :param checksums: SHA-256 of each part, by name.
    :param sealed: a text under the key that encrypts columns, to tell whether an installation has that key.
    """

    model_config = ConfigDict(frozen=True)

    format: int = FORMAT
    opora: str = version("opora")
    revision: str
    started_at: datetime
    rows: dict[str, int]
    checksums: dict[str, str]
    sealed: str
