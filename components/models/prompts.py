"""Prompts: files that authors of a pipeline edit, versioned by their content. Inserted values are data.

A prompt `answer` is `answer.ru.md` and `answer.en.md` in the folder that `ChatModels` names: the system message, then
messages under lines `--- user` and `--- assistant`. The last one is the user's and is filled in; those before it
are example turns, from which small models learn more than from rules; `ChatModels` may leave them out. A file without
such a line is the user's message alone. Places to fill are Jinja expressions in its sandbox, so a prompt
computes nothing.

Untrusted text, a question as well as a document, goes into blocks with a random fence for each turn, so that no text
can close its block and continue as an instruction. Only the last message names the fence: the messages before it are
the same in every turn, so that servers can cache them as a prefix.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
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
_ROLE = re.compile(r"^--- (user|assistant)$", re.MULTILINE)
_MESSAGES: Mapping[str, Callable[[str], ChatMessage]] = {
    "system": ChatMessage.from_system,
    "user": ChatMessage.from_user,
    "assistant": ChatMessage.from_assistant,
}
_JINJA = ImmutableSandboxedEnvironment(
    undefined=StrictUndefined, autoescape=False, trim_blocks=True, lstrip_blocks=True
)


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt in one language.

    :param schema: the JSON schema sent with it, empty for a reply in plain text.
    """

    name: str
    language: str
    text: str
    schema: str = ""

    @property
    def version(self) -> str:
        """Eight hex digits that change with every letter of the file and with the schema."""
        return sha256(f"{self.text}{self.schema}".encode()).hexdigest()[:8]

    @property
    def label(self) -> str:
        """Return the label for traces and records, such as `answer.ru@1a2b3c4d`."""
        return f"{self.name}.{self.language}@{self.version}"

    def without_examples(self) -> "Prompt":
        """Return the prompt with its rules and its last message only."""
        rules, *turns = _ROLE.split(self.text)
        return replace(self, text=f"{rules}--- {turns[-2]}{turns[-1]}") if turns else self

    def messages(self, **values: object) -> list[ChatMessage]:
        """Return the prompt filled in. A place without a value raises `jinja2.UndefinedError`."""
        return [_MESSAGES[role](part.render(values)) for role, part in _parts(self.text)]


@lru_cache(maxsize=128)
def _parts(text: str) -> tuple[tuple[str, Template], ...]:
    """Return the messages of a prompt, compiled once: that takes longer than anything else about them."""
    first, *rest = _ROLE.split(text)
    written = [("system", first), *zip(rest[::2], rest[1::2], strict=True)] if rest else [("user", text)]
    if written[-1][0] != "user":
        raise ValueError("a prompt ends with the user's message")
    return tuple((role, _JINJA.from_string(part.strip())) for role, part in written)


def prompt(name: str, locale: str, folder: str = FOLDER) -> Prompt:
    """Return the prompt in this language, or in the other one if the file is missing.

    :param folder: folder of the prompt, below the folder of pipelines.
    :raises FileNotFoundError: neither language has a file.
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


def as_asked(question: str, query: str) -> str:
    """Return the customer's words, and below them the standalone question unless they contain it."""
    return question if query in question else f"{question}\n({query})"


def block(name: str, lines: Sequence[str] | str) -> str:
    """Fence data: `<passages id="1a2b3c4d">`, the lines, and an end with the same id; empty for no lines."""
    if not lines:
        return ""
    body = lines if isinstance(lines, str) else "\n\n".join(lines)
    fence = current().fence
    return f'<{name} id="{fence}">\n{body.replace(fence, "")}\n</{name} id="{fence}">'
