"""Servers of models: whether they answer and have a model. No model is called, so nothing is loaded or paid for."""

import os
from collections.abc import Iterable, Mapping
from typing import Any, Literal, TypeAlias

import httpx

from pipelines.ask.named_models import NamedModel, public_address

Lack: TypeAlias = Literal["key_missing", "key_refused", "unreachable", "not_ollama", "server_error", "model_missing"]
"""Why no call of a model can succeed."""

_OPENAI, _OLLAMA = "https://api.openai.com/v1", "http://127.0.0.1:11434"
_KEY = "OPENAI_API_KEY"


def lack(model: NamedModel, seconds: float) -> Lack | None:
    """Return why calls of a model must fail; None if its server has it, or is of a kind that is not known here."""
    if model.provider not in ("ollama", "openai"):
        return None
    key = next(filter(None, map(os.environ.get, variables(model))), "")
    if not key and model.provider == "openai":
        return "key_missing"
    path, headers = ("/models", {"Authorization": f"Bearer {key}"}) if model.provider == "openai" else ("/api/tags", {})
    try:
        response = httpx.get(server(model) + path, headers=headers, timeout=seconds)
    except (httpx.HTTPError, httpx.InvalidURL):
        return "unreachable"
    if response.is_server_error and model.provider == "ollama":
        return "server_error"
    if response.status_code in (401, 403) and model.provider == "openai":
        return "key_refused"
    try:
        names = set(_names(response.raise_for_status().json()))
    except (httpx.HTTPError, ValueError, KeyError, TypeError, AttributeError):
        # Every Ollama lists its models; some gateways of the OpenAI protocol do not.
        return "not_ollama" if model.provider == "ollama" else None
    return None if _tagged(model.name, model) in {_tagged(name, model) for name in names} else "model_missing"


def server(model: NamedModel) -> str:
    """Return the address that calls of a model go to; it may contain a password."""
    said = model.parameters
    if model.provider == "ollama":
        return str(said.get("url") or _OLLAMA).rstrip("/")
    return str(said.get("api_base_url") or os.environ.get("OPENAI_BASE_URL") or _OPENAI).rstrip("/")


def shown_server(model: NamedModel) -> str:
    return public_address(server(model))


def variables(model: NamedModel) -> tuple[str, ...]:
    """Return the environment variables that may hold the key of a model; empty for Ollama."""
    if model.provider == "ollama":
        return ()
    described = model.parameters.get("api_key")
    named = described.get("env_vars", ()) if isinstance(described, Mapping) else ()
    return tuple(named) or (_KEY,)


def command(model: NamedModel, fault: str) -> str:
    if fault == "files_missing":
        return "opora models add e5-small"
    if fault in ("key_missing", "key_refused"):
        return f"export {variables(model)[0]}=…" if variables(model) else ""
    if model.provider != "ollama":
        return ""
    return {"model_missing": f"ollama pull {model.name}", "unreachable": "ollama serve", "timeout": "ollama ps"}.get(
        fault, ""
    )


def _names(listed: Mapping[str, Any]) -> Iterable[str]:
    return [one["name"] for one in listed["models"]] if "models" in listed else [one["id"] for one in listed["data"]]


def _tagged(name: str, model: NamedModel) -> str:
    """Return a name as the server of the model reads it: for Ollama, no tag means `latest`."""
    return f"{name}:latest" if model.provider == "ollama" and ":" not in name else name
