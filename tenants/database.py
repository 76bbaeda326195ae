"""The records' database: SQLite under the data folder by default, PostgreSQL by URL. Same models, same migrations.

SQLite is set up for one writer and many readers: write-ahead log, foreign keys enforced, a commit on disk before it is
acknowledged, what is deleted overwritten, and transactions that write take the write lock when they begin, because one
that starts as a reader and turns writer fails at once when somebody else wrote in between.
"""

import logging
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from threading import Lock

from sqlalchemy import URL, Connection, Engine, create_engine, event, inspect, make_url, text
from sqlalchemy.exc import OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.orm import Session
from sqlalchemy.pool import ConnectionPoolEntry

from settings import Settings, get_settings
from tenants.errors import CallerError, InternalFault, TryAgain

HEAD = "0002"
"""The newest migration; migrations are numbered in order. A test compares it with the migrations and the models."""

_BUSY_MILLISECONDS = 30_000
_MIGRATION_LOCK = 0x6F706F7261  # "opora": the advisory lock that replicas starting together queue on
_ENGINES: dict[str, Engine] = {}
_OPENING = Lock()

log = logging.getLogger("opora.database")


def engine(settings: Settings | None = None) -> Engine:
    """The process's engine for these settings, its schema brought up to date when it is first opened."""
    settings = settings or get_settings()
    existing = _ENGINES.get(settings.database)
    if existing is not None:
        return existing
    with _OPENING:
        if settings.database not in _ENGINES:
            opened = _open(settings)
            try:
                # A server may have replicas of the older version on it: whoever runs them says when.
                _upgrade(opened, existing=opened.dialect.name == "sqlite")
            except BaseException:
                opened.dispose()
                raise
