"""Checks that all replicas of an installation share the same secrets."""

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
    """Refuse weak secrets, and compare this replica's secrets with those of the other replicas.

    Without `OPORA_DATA_KEYS` each data folder has its own key, so replicas could not read each other's encrypted
    columns. Without `OPORA_TOKEN_KEYS` a token issued by one replica is refused by the next.

    :raises CallerError: `data_keys_short`, `token_keys_short`, `data_keys_differ`, `token_keys_differ`.
    """
    sealed.check_given(settings)
    given = given_keys(settings)
    if not database.is_shared(settings):
        return
    local_ids = {kid for kid, key in KeyRing(settings).current().items() if key.algorithm == "HS256"}
    try:
        with database.writing(settings) as session:
            session.locked(InstallationRow, name=_DATA_KEYS, value="opora")
            tokens = session.locked(InstallationRow, name=_TOKEN_KEYS, value=" ".join(local_ids))
            recorded_ids = set(tokens.value.split())
            differ = bool(local_ids and recorded_ids and local_ids.isdisjoint(recorded_ids))
            if differ and not given:
                raise CallerError("token_keys_differ")
            # Under the newest key: the oldest may be taken away once every replica has it.
            for name, value in ((_DATA_KEYS, "opora"), (_TOKEN_KEYS, " ".join(local_ids or recorded_ids))):
                session.execute(update(InstallationRow).where(InstallationRow.name == name).values(value=value))
    except InternalFault as foreign:
        raise CallerError("data_keys_differ") from foreign
    if differ:
        log.warning("the keys that sign tokens are not those of the process before: see OPORA_TOKEN_KEYS")
