"""Where models for ONNX Runtime lie, and how fastembed is told of those that it does not know.

fastembed is an optional part of the installation and takes seconds to import, so it is imported where a model is
loaded, and nowhere else.
"""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import RLock

from settings import get_settings

log = logging.getLogger("opora.embed")

FOLDER = "models"

_LOADING = RLock()


@contextmanager
def loading(name: str, folder: str) -> Iterator[None]:
    """One at a time, so that a model is loaded once however many components name it; failures are told to the log."""
    with _LOADING:
        try:
            yield
        except ImportError:
            log.error("the model %s needs the extra `vectors`: pip install 'opora[vectors]'", name)
            raise
        except Exception:
            log.error("the model %s cannot be loaded: its files are missing or damaged in %s", name, folder)
            raise


def models_folder(cache_dir: str) -> str:
    """The folder that models are kept in, one sub-folder each as Hugging Face lays them out.

    :param cache_dir: empty for `models` in the data folder.
    """
    return cache_dir or str(Path(get_settings().data_dir) / FOLDER)
