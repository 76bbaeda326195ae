"""Prompts: files that authors of a pipeline edit, versioned by what they say. What is put into them is data.

A prompt `answer` is `answer.ru.md` and `answer.en.md` in the folder that `ChatModels` names: the system's part, a
line of three dashes, the user's part; a file without that line is the user's part alone. Places to fill are Jinja
expressions in its sandbox, so a prompt computes nothing. Text that somebody else has written, a question as well as a
document, stands in blocks whose fence is drawn by lot for each turn, so that no text can close its block and go on as
an instruction.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from pathlib import Path

from haystack.dataclasses import ChatMessage
from jinja2 import StrictUndefined, Template
from jinja2.sandbox import ImmutableSandboxedEnvironment

from components.models.calls import current
from settings import get_settings

FOLDER = "ask/prompts"
LANGUAGES = ("ru", "en")
_PARTS = re.compile(r"^---$", re.MULTILINE)
_JINJA = ImmutableSandboxedEnvironment(
    undefined=StrictUndefined, autoescape=False, trim_blocks=True, lstrip_blocks=True
)


@dataclass(frozen=True, slots=True)
class Prompt:
    """One prompt in one language. `version` are 8 hex digits of its digest."""

    name: str
    language: str
    text: str

    @property
    def version(self) -> str:
        """Changes with every letter of the file."""
        return sha256(self.text.encode()).hexdigest()[:8]

    @property
    def label(self) -> str:
        """How traces and records name it: `answer.ru@1a2b3c4d`."""
        return f"{self.name}.{self.language}@{self.version}"

    def messages(self, **values: object) -> list[ChatMessage]:
        """The prompt filled in. A place without a value raises `jinja2.UndefinedError`."""
        *system, user = (part.render(values) for part in _parts(self.text))
        return [*map(ChatMessage.from_system, system), ChatMessage.from_user(user)]


@lru_cache(maxsize=128)
def _parts(text: str) -> tuple[Template, ...]:
    """The parts of a prompt, compiled once: that takes longer than anything else about them."""
    return tuple(_JINJA.from_string(part.strip()) for part in _PARTS.split(text))


def prompt(name: str, locale: str, folder: str = FOLDER) -> Prompt:
    """The prompt in this language, or in the other when there is no such file.

    :param folder: where it is, below the folder of pipelines.
    :raises FileNotFoundError: there is none at all.
    """
    place = get_settings().pipelines_dir / folder
    for language in dict.fromkeys((locale, *LANGUAGES)):
        path = place / f"{name}.{language}.md"
        if path.is_file():
            return _read(path, path.stat().st_mtime_ns, name, language)
    raise FileNotFoundError(place / f"{name}.{locale}.md")


@lru_cache(maxsize=128)
def _read(path: Path, changed: int, name: str, language: str) -> Prompt:  # noqa: ARG001 - a changed file is read anew
    return Prompt(name, language, path.read_text(encoding="utf-8"))


def block(name: str, lines: Sequence[str] | str) -> str:
    """Text that is data: `<passages id="1a2b3c4d">`, the lines, and an end with the same id; empty for no lines."""
    if not lines:
        return ""
    body = lines if isinstance(lines, str) else "\n\n".join(lines)
    fence = current().fence
    return f'<{name} id="{fence}">\n{body.replace(fence, "")}\n</{name} id="{fence}">'
