"""Where models for ONNX Runtime lie, and the lock under which they are loaded.

fastembed takes seconds to import, so it is imported where a model is loaded, and nowhere else.
"""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from threading import RLock

from settings import get_settings

log = logging.getLogger("opora.embed")

_LOADING = RLock()


@contextmanager
def loading(name: str, folder: str) -> Iterator[None]:
    """One at a time, so that a model is loaded once however many components name it; failures are told to the log."""
    with _LOADING:
        try:
            yield
        except Exception:
            log.error("the model %s cannot be loaded: its files are missing or damaged in %s", name, folder)
            raise


def models_folder(cache_dir: str) -> str:
    """The folder that models are kept in, one sub-folder each as Hugging Face lays them out.

    :param cache_dir: empty for the folder of the settings.
    """
    return cache_dir or str(get_settings().models)
