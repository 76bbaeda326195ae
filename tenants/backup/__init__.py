"""Backups of a whole installation: one encrypted file, taken while it serves, from which it is set up elsewhere.

In it: every row of the records, the keys, records that were on their way to the database, and the files of jobs still
to be worked off. Not in it: the index, which is built anew from the kept texts, models, and what is set by the
environment. Rows are written the same from SQLite and PostgreSQL, so a backup of one is restored into the other.
"""

from tenants.backup.manifest import Manifest
from tenants.backup.restoring import Restored, restore
from tenants.backup.taking import take

__all__ = ["Manifest", "Restored", "restore", "take"]
