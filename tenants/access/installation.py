"""Checks that all replicas of an installation share the same secrets and the same store of files."""

import logging
from uuid import uuid4

from sqlalchemy import update

from settings import Settings
from tenants.access.keys import KeyRing, given_keys
from tenants.core.errors import CallerError, InternalFault
from tenants.storage import database, files, sealed
from tenants.storage.sealed import create_once
from tenants.storage.tables import InstallationRow

log = logging.getLogger("opora.service")

_DATA_KEYS, _TOKEN_KEYS, _FILES = "data-keys", "token-keys", "files"


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
    with CallerError("data_keys_differ").instead_of(InternalFault), database.writing(settings) as session:
        session.locked(InstallationRow, name=_DATA_KEYS, value="opora")
        tokens = session.locked(InstallationRow, name=_TOKEN_KEYS, value=" ".join(local_ids))
        recorded_ids = set(tokens.value.split())
        differ = bool(local_ids and recorded_ids and local_ids.isdisjoint(recorded_ids))
        if differ and not given:
            raise CallerError("token_keys_differ")
        # Under the newest key: the oldest may be taken away once every replica has it.
        for name, value in ((_DATA_KEYS, "opora"), (_TOKEN_KEYS, " ".join(local_ids or recorded_ids))):
            session.execute(update(InstallationRow).where(InstallationRow.name == name).values(value=value))
    if differ:
        log.warning("the keys that sign tokens are not those of the process before: see OPORA_TOKEN_KEYS")


def check_files(settings: Settings) -> None:
    """Refuse a local folder of files where another replica has a different one: neither would find the other's files.

    :raises CallerError: `files_url_invalid`, `files_differ`.
    """
    files.check(settings)
    if not database.is_shared(settings):
        return
    place = settings.files_url or _local_place(settings)
    with database.writing(settings) as session:
        recorded = session.locked(InstallationRow, name=_FILES, value=place)
        if recorded.value != place:
            if not settings.files_url:
                raise CallerError("files_differ")
            log.warning("the files are not where the process before had them: see OPORA_FILES_URL")
            session.execute(update(InstallationRow).where(InstallationRow.name == _FILES).values(value=place))


def _local_place(settings: Settings) -> str:
    """Return an id of the data folder, which goes with the files into a backup."""
    path = settings.data_dir / "keys" / "files.id"
    if not path.exists():
        create_once(path, uuid4().hex)
    return path.read_text(encoding="ascii")
