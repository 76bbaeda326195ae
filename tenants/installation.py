"""Whether this process has the secrets of the installation that it is part of."""

import logging

from sqlalchemy import update

from settings import Settings
from tenants import database
from tenants.errors import CallerError, InternalFault
from tenants.keys import KeyRing
from tenants.shared_tables import InstallationRow

log = logging.getLogger("opora.service")

_DATA_KEYS, _TOKEN_KEYS = "data-keys", "token-keys"


def check_secrets(settings: Settings) -> None:
    """Compare the secrets of a replica with those of the others; warn of other keys of tokens.

    Without `OPORA_DATA_KEYS` each data folder has a key of its own, so that one replica could not read what another has
    written, a text at a time. Raises `CallerError` with the code `data_keys_differ`.
    """
    if not database.is_shared(settings):
        return
    ours = {kid for kid, key in KeyRing(settings).current().items() if key.algorithm == "HS256"}
    try:
        with database.writing(settings) as session:
            database.locked(session, InstallationRow, name=_DATA_KEYS, value="opora")
            tokens = database.locked(session, InstallationRow, name=_TOKEN_KEYS, value=" ".join(ours))
            theirs = set(tokens.value.split())
            # Under the newest key: the oldest may be taken away once every replica has it.
            for name, value in ((_DATA_KEYS, "opora"), (_TOKEN_KEYS, " ".join(ours or theirs))):
                session.execute(update(InstallationRow).where(InstallationRow.name == name).values(value=value))
    except InternalFault as foreign:
        raise CallerError("data_keys_differ") from foreign
    if ours and theirs and ours.isdisjoint(theirs):
        log.warning("the keys that sign tokens are not those of the process before: see OPORA_TOKEN_KEYS")
