"""Backups of a whole installation: one encrypted file, taken while it serves, to be restored elsewhere.

Included: every row of the records, the keys, records on their way to the database, and the files of unfinished jobs.
Not included: the index, which is rebuilt from the stored texts, models, and settings of the environment. The format of
rows is the same for SQLite and PostgreSQL, so a backup of one can be restored into the other.
"""

from tenants.backup.envelope import Manifest
from tenants.backup.restoring import Restored, restore
from tenants.backup.taking import take

__all__ = ["Manifest", "Restored", "restore", "take"]
