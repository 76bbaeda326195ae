"""State of a Qdrant server for `opora doctor`."""

from importlib.metadata import version

import httpx
from qdrant_client.common.version_check import is_compatible

from settings import Settings
from tenants.storage.diagnosis import StoreState


def qdrant_state(settings: Settings, seconds: int) -> StoreState:
    """Return the state of the configured server; `older` or `newer` if the client does not fit it.

    :param seconds: most seconds of each of the two requests.
    """
    key = settings.qdrant_api_key.get_secret_value()
    headers = {"api-key": key} if key else {}
    try:
        with httpx.Client(base_url=settings.qdrant_url, headers=headers, timeout=seconds) as http:
            found = str(http.get("/").raise_for_status().json()["version"])
            listed = http.get("/collections")
            if listed.status_code in (401, 403):
                return StoreState("refused", found)
            listed.raise_for_status()
    except httpx.HTTPStatusError as refused:
        return StoreState("refused" if refused.response.status_code in (401, 403) else "unreachable")
    except (httpx.HTTPError, httpx.InvalidURL, ValueError, KeyError, TypeError):
        return StoreState("unreachable")
    if is_compatible(version("qdrant-client"), found):
        return StoreState("current", found)
    client = tuple(map(int, version("qdrant-client").split(".")[:2]))
    return StoreState("older" if tuple(map(int, found.split(".")[:2])) < client else "newer", found)
