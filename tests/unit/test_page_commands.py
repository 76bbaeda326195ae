"""The commands of the guides, run in the order of their page against an installation with some data."""

import json
import shlex
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from secrets import token_hex
from types import MappingProxyType

import pytest
from typer.testing import CliRunner

import cli
from components.ingest.document import SourceDocument
from pipelines.ask.engine import YAML
from pipelines.ingest.usecase import Ingest
from tenants.accounts.registry import Registry
from tenants.chats import store as chats
from tenants.core.context import SCOPES, Tenant, acting_as
from tenants.desk import feedback
from tests.chats import handed_over
from tests.installations import installed
from tests.pages import PAGES, marked_blocks

FOLLOWED = ("docs/tutorial.md", "docs/quickstart.md", "docs/ollama.md")
"""Pages that `tests/service/test_tutorial.py` follows."""
COMMANDS = {
    name: [block for block in marked_blocks(page) if block.language == "bash" and block.mark == ""]
    for name, page in PAGES.items()
    if name.startswith("docs/") and name not in FOLLOWED
}
"""The blocks to run, by page."""
RETURNS = "# Returns\n\nReturn an item within {} days, with the receipt.\n"
ARTICLES = {
    "returns.md": RETURNS.format(14),
    "returns-2023.md": "---\ntags: [returns]\n---\n# Returns in 2023\n\nItems were returned within 7 days.\n",
    "delivery.md": "---\nsource_type: forum\n---\n# Delivery\n\nDelivery costs £4.90 and takes two days.\n",
    "warranty.md": "# Warranty\n\nThe warranty of a washing machine lasts two years.\n",
}
PASSWORDS = "a long password\na long password\n"
"""Typed where a command asks for a password."""


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Mapping[str, str]]]:
    """A working folder and an installation with two tenants, versions, recorded turns, a rating and a waiting chat.

    Returns the folder and the values of placeholders.
    """
    folder = tmp_path_factory.mktemp("shop")
    (folder / "articles").mkdir()
    for name, text in ARTICLES.items():
        (folder / "articles" / name).write_text(text, encoding="utf-8")
    shutil.copy(YAML, folder / "my.yaml")
    with installed(folder / "data"):
        Registry().add("acme", locale="en")
        with acting_as(Tenant("acme", "anna", SCOPES)):
            ingest = Ingest()
            for days in (10, 11, 12, 13):
                ingest.run([SourceDocument("returns.md", "Returns", RETURNS.format(days))])
            ingest.run_path(folder / "articles")
            run('opora ask "Do you sell kettles?" --tenant acme')
            turn = json.loads(run('opora ask "How do I return an item?" --json --tenant acme'))
            feedback.give(turn["turn_id"], "anna", "up")
            handed_over(token_hex(8), "user_request", "Do you repair washing machines?")
            (chat,) = chats.latest()
        yield folder, {"CHAT": chat.chat_id}


def test_every_page_with_commands_is_followed() -> None:
    assert sum(map(len, COMMANDS.values())) > 15


@pytest.mark.parametrize("page", [name for name, blocks in COMMANDS.items() if blocks])
def test_the_commands_of_a_page_succeed(
    shop: tuple[Path, Mapping[str, str]], page: str, monkeypatch: pytest.MonkeyPatch, subtests: pytest.Subtests
) -> None:
    folder, placeholders = shop
    monkeypatch.chdir(folder)
    for block in marked_blocks(PAGES[page]):
        if block.path:
            (folder / block.path).parent.mkdir(parents=True, exist_ok=True)
            (folder / block.path).write_text(block.text, encoding="utf-8")
        for line in block.text.splitlines() if block in COMMANDS[page] else ():
            with subtests.test(command=line):
                run(line, placeholders)


def run(line: str, placeholders: Mapping[str, str] = MappingProxyType({})) -> str:
    """Run an `opora` command and return its output, which a `>` also writes to a file."""
    words = [placeholders.get(word, word) for word in shlex.split(line, comments=True)]
    words, out = (words[:-2], words[-1]) if ">" in words else (words, "")
    assert words[0] == "opora", f"cannot be run here; say why: <!-- not run: … -->\n{line}"
    done = CliRunner().invoke(cli.app, words[1:], input=PASSWORDS)
    assert done.exit_code == 0, done.output
    if out:
        Path(out).write_text(done.stdout, encoding="utf-8")
    return done.stdout
