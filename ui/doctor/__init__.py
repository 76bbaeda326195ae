"""`opora doctor`: checks of an installation, all at once and with a time limit. They create and change nothing."""

from collections.abc import Callable, Iterable, Mapping
from threading import Thread
from time import monotonic
from types import MappingProxyType
from typing import TypeAlias

from settings import Settings
from tenants.core.errors import OporaError
from ui.doctor import machine, models, proxy, stores
from ui.doctor.finding import Finding, of_error, problem

Checker: TypeAlias = Callable[[Settings], Iterable[Finding]]

LIMIT_SECONDS = 20.0
"""Time limit of all checks: resolving a name may hang whatever the limit of the request."""

CHECKS: Mapping[str, Checker] = MappingProxyType(
    {
        "python": machine.check_python,
        "folder": machine.check_folder,
        "disk": machine.check_disk,
        "secrets": machine.check_secrets,
        "database": stores.check_database,
        "index": stores.check_index,
        "redis": stores.check_redis,
        "encoder": models.check_encoder,
        "profile": models.check_profiles,
        "models": models.check_models,
        "clock": machine.check_clock,
        "service": proxy.check_service,
        "proxy": proxy.check_proxy,
    }
)


def examine(
    settings: Settings, checks: Mapping[str, Checker] = CHECKS, seconds: float = LIMIT_SECONDS
) -> tuple[Finding, ...]:
    """Return what the checks find, in their order.

    :param seconds: after that the checks still running are reported as hanging, and left behind.
    """
    found: dict[str, tuple[Finding, ...]] = {}

    def run(name: str, check: Checker) -> None:
        try:
            found[name] = tuple(check(settings))
        except OporaError as error:
            found[name] = (of_error(name, error),)
        except Exception as error:
            found[name] = (problem(name, "failed", error=type(error).__name__),)

    # Daemons: a check that hangs must not keep the process from ending.
    threads = [Thread(target=run, args=pair, name=f"doctor {pair[0]}", daemon=True) for pair in checks.items()]
    for thread in threads:
        thread.start()
    ends_at = monotonic() + seconds
    for thread in threads:
        thread.join(max(0.0, ends_at - monotonic()))
    late = {name: (problem(name, "hangs", seconds=round(seconds)),) for name in checks}
    return tuple(finding for name in checks for finding in found.get(name, late[name]))
