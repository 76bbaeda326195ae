"""The profiles of an installation: the ask pipeline itself or with an overlay. Each tenant chooses one."""

from collections.abc import Mapping
from pathlib import Path
from threading import Lock

from components.turn import Turn
from pipelines import lint
from pipelines.ask.engine import AskEngine, NotRunnable
from pipelines.ask.steps import trace_steps
from pipelines.definition import PROFILES
from settings import EMBEDDED, get_settings
from tenants.accounts import policy
from tenants.accounts.policy import Policy
from tenants.core.errors import OporaError


def path_of(profile: str) -> Path:
    policy.check_profile(profile)
    folder = get_settings().pipelines_dir / "ask"
    return folder / "ask.yaml" if profile == EMBEDDED else folder / PROFILES / f"{profile}.yaml"


def check_file(profile: str) -> None:
    """Raise `Invalid` if the profile does not exist (`profile_unknown`) or cannot be loaded (`pipeline_faulty`)."""
    lint.check(path_of(profile))


def apply_policy(fields: Mapping[str, object], version: str = "") -> Policy:
    """Apply a change of policy (`tenants.accounts.policy.apply`) once the profile that it names can be loaded.

    :raises Invalid: the errors of `check_file` and `policy.apply`.
    :raises Conflict: `settings_changed`.
    """
    if isinstance(profile := fields.get("profile"), str) and profile:
        check_file(profile)
    return policy.apply(fields, version)


def is_own() -> bool:
    return bool(policy.current().profile)


def chosen() -> str:
    return policy.current().profile or get_settings().profile


class ProfileEngines:
    """Runs each turn through the pipeline of its tenant's profile. Thread-safe.

    A pipeline is loaded on first use, the installation's own at start-up, so that mistakes in its file show at once.
    """

    def __init__(self) -> None:
        self._engines: dict[str, AskEngine] = {}
        self._loading = Lock()
        self._engine(get_settings().profile)
        trace_steps()

    @property
    def digest(self) -> str:
        """Return the digest of the pipeline that the tenant in context uses; empty if it cannot be loaded."""
        try:
            return self._chosen().digest
        except NotRunnable:
            return ""

    def warm_up(self) -> None:
        self._engine(get_settings().profile).warm_up()

    def run(self, turn: Turn) -> Turn:
        return self._chosen().run(turn)

    def close(self) -> None:
        for engine in self._engines.values():
            engine.close()

    def _chosen(self) -> AskEngine:
        try:
            return self._engine(chosen())
        except OporaError as faulty:
            # The customer cannot change the profile: this is no mistake of their request.
            raise NotRunnable(f"{faulty.code}: {', '.join(map(str, faulty.params.values()))}") from None
        except Exception as faulty:
            raise NotRunnable(f"{path_of(chosen())}: {faulty}") from faulty

    def _engine(self, profile: str) -> AskEngine:
        with self._loading:
            if profile not in self._engines:
                check_file(profile)  # Haystack ignores some mistakes, and its errors do not name the line
                self._engines[profile] = AskEngine(path_of(profile))
            return self._engines[profile]
