"""Preloaded by the process that services are forked from: it builds a service once.

That fills the caches of pipelines, schemas and routes, most of the time of a start. Nothing is left open, no thread is
running, and no setting is kept.
"""

import gc
import os
from tempfile import TemporaryDirectory
from threading import active_count

import app
from settings import get_settings
from tenants import index
from tenants.storage import database
from tenants.work import locks

with TemporaryDirectory() as _folder:
    os.environ |= {"OPORA_DATA_DIR": _folder, "OPORA_FETCH_MODELS": "false", "OPORA_MODELS_DIR": os.devnull}
    get_settings.cache_clear()
    app.create_app(get_settings())
    index.close_all()
    locks.close_all()
    database.close_all()
get_settings.cache_clear()
if active_count() > 1:
    raise RuntimeError("a process with threads cannot be forked safely")
gc.collect()
gc.freeze()  # a collection in a forked process would copy the memory of all that is loaded
