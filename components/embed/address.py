"""Address of the embedding model: an index does not depend on it."""

from settings import get_settings

LOCAL_OLLAMA = "http://127.0.0.1:11434"
"""Address of Ollama in profiles, unless `OPORA_OLLAMA_URL` is set."""


def portable(json_form: str) -> str:
    """Return settings without the address in `OPORA_OLLAMA_URL`, so that an index does not depend on it."""
    url = get_settings().ollama_url
    return json_form.replace(f'"{url}"', f'"{LOCAL_OLLAMA}"') if url else json_form


def located(json_form: str) -> str:
    """Return settings with the address in `OPORA_OLLAMA_URL`, to be used here."""
    url = get_settings().ollama_url
    return json_form.replace(f'"{LOCAL_OLLAMA}"', f'"{url}"') if url else json_form
