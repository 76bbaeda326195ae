"""Whether this process has the secrets of the installation that it is part of."""

import logging

from sqlalchemy import update

from settings import Settings
from tenants.access.keys import KeyRing, given_keys
from tenants.core.errors import CallerError, InternalFault
from tenants.storage import database, sealed
from tenants.storage.shared_tables import InstallationRow

log = logging.getLogger("opora.service")

_DATA_KEYS, _TOKEN_KEYS = "data-keys", "token-keys"


def check_secrets(settings: Settings) -> None:
    """Refuse secrets that can be guessed, and compare those of a replica with those of the others.

    Without `OPORA_DATA_KEYS` each data folder has a key of its own, so that one replica could not read what another has
    written, a text at a time. Without `OPORA_TOKEN_KEYS` a token of one replica is refused by the next.

    :raises CallerError: `data_keys_short`, `token_keys_short`, `data_keys_differ`, `token_keys_differ`.
    """
    sealed.check_given(settings)
    given = given_keys(settings)
    if not database.is_shared(settings):
        return
    ours = {kid for kid, key in KeyRing(settings).current().items() if key.algorithm == "HS256"}
    try:
        with database.writing(settings) as session:
            database.locked(session, InstallationRow, name=_DATA_KEYS, value="opora")
            tokens = database.locked(session, InstallationRow, name=_TOKEN_KEYS, value=" ".join(ours))
            theirs = set(tokens.value.split())
            differ = bool(ours and theirs and ours.isdisjoint(theirs))
            if differ and not given:
                raise CallerError("token_keys_differ")
            # Under the newest key: the oldest may be taken away once every replica has it.
            for name, value in ((_DATA_KEYS, "opora"), (_TOKEN_KEYS, " ".join(ours or theirs))):
                session.execute(update(InstallationRow).where(InstallationRow.name == name).values(value=value))
    except InternalFault as foreign:
        raise CallerError("data_keys_differ") from foreign
    if differ:
        log.warning("the keys that sign tokens are not those of the process before: see OPORA_TOKEN_KEYS")
