"""The ways of answering that an installation has: one pipeline file each, chosen by the tenant."""

from pathlib import Path
from threading import Lock

from components.turn import Turn
from pipelines.ask.engine import AskEngine
from settings import Profile, get_settings
from tenants import policy


def path_of(profile: Profile) -> Path:
    """The pipeline file of a profile."""
    name = "ask.yaml" if profile == "embedded" else f"ask.{profile}.yaml"
    return get_settings().pipelines_dir / "ask" / name


def chosen() -> Profile:
    """The profile of the tenant in context: its own, or the installation's."""
    return policy.current().profile or get_settings().profile


class ProfileEngines:
    """Runs each turn through the pipeline of its tenant's profile. Thread-safe.

    A pipeline is loaded when it is first asked, the installation's own at the start: a mistake in its file shows then.
    """

    def __init__(self) -> None:
        self._engines: dict[Profile, AskEngine] = {}
        self._loading = Lock()
        self._engine(get_settings().profile)

    @property
    def digest(self) -> str:
        """Names the behaviour that the tenant in context has chosen."""
        return self._engine(chosen()).digest

    def warm_up(self) -> None:
        """Load what the first question needs."""
        self._engine(get_settings().profile).warm_up()

    def run(self, turn: Turn) -> Turn:
        """The finished turn, by the pipeline that the tenant in context has chosen."""
        return self._engine(chosen()).run(turn)

    def close(self) -> None:
        """Let go of what the engines hold."""
        for engine in self._engines.values():
            engine.close()

    def _engine(self, profile: Profile) -> AskEngine:
        with self._loading:
            if profile not in self._engines:
                self._engines[profile] = AskEngine(path_of(profile))
            return self._engines[profile]
