"""The folder of ONNX models and the lock under which they are loaded.

fastembed takes seconds to import, so it is imported only where a model is loaded.
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
    """Load one model at a time, so that each is loaded once however many components name it; failures are logged."""
    with _LOADING:
        try:
            yield
        except Exception:
            log.error("the model %s cannot be loaded: its files are missing or damaged in %s", name, folder)
            raise


def models_folder(cache_dir: str) -> str:
    """Return the folder that models are kept in, one sub-folder each as Hugging Face lays them out.

    :param cache_dir: empty for the folder of the settings.
    """
    return cache_dir or str(get_settings().models)
