"""Help pages and usage errors in the language of the terminal.

Typer 0.29 has its own words for headings, types and placeholders, in English and without a way to replace them, so its
module-level names and private classes are used here.
"""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from typer._click.core import Command as ClickCommand
from typer._click.exceptions import NoArgsIsHelpError, UsageError
from typer.core import TyperArgument, TyperOption

from components.language.texts import keys, terminal_locale, text

if TYPE_CHECKING:
    from typer._click.core import Context
    from typer._click.formatting import HelpFormatter

_PLACEHOLDERS = {"[OPTIONS]": "options_place", "COMMAND [ARGS]...": "command_place"}

_USAGE_ERRORS = {
    "option_unknown": r"No such option: (?P<name>\S+)",
    "option_unknown_similar": r"No such option: (?P<name>\S+) \(Possible options: (?P<similar>.+)\)",
    "command_unknown": r"No such command '(?P<name>.+)'\.",
    "command_unknown_similar": r"No such command '(?P<name>.+)'\. Did you mean (?P<similar>.+)\?",
    "argument_missing": r"Missing argument '(?P<name>[^']+)'\.",
    "option_missing": r"Missing option '(?P<name>[^']+)'\.",
    "too_many_arguments": r"Got unexpected extra argument\(s\) \((?P<names>.+)\)",
    "value_missing": r"Option '(?P<name>[^']+)' requires an argument\.",
    "value_invalid": r"Invalid value for '(?P<name>[^']+)': (?P<reason>.+)",
}
"""Typer's messages, by the keys of their translations. Others stay in English."""


@contextmanager
def translated_usage_errors() -> Iterator[None]:
    """Raise usage errors in the language of the terminal."""
    try:
        yield
    except NoArgsIsHelpError:
        raise
    except UsageError as error:
        from typer import rich_utils

        rich_utils.ERRORS_PANEL_TITLE = text("cli.error.label", terminal_locale())
        rich_utils.RICH_HELP = _say("try", command="[blue]{command_path} {help_option}[/]")
        raise UsageError(_usage_error(error.format_message()), error.ctx) from error


def _usage_error(message: str) -> str:
    for key, pattern in _USAGE_ERRORS.items():
        if match := re.fullmatch(pattern, message, re.DOTALL):
            return _say(f"usage_error.{key}", **match.groupdict())
    return message


class TranslatedHelp(ClickCommand):
    """A command whose help page is in the language of the terminal."""

    def format_usage(self, ctx: "Context", formatter: "HelpFormatter") -> None:
        pieces = [
            _say(_PLACEHOLDERS[piece]) if piece in _PLACEHOLDERS else piece for piece in self.collect_usage_pieces(ctx)
        ]
        formatter.write_usage(ctx.command_path, " ".join(pieces), prefix=_say("usage") + " ")

    def get_help_option(self, ctx: "Context") -> TyperOption | None:
        option = super().get_help_option(ctx)
        if option is not None:
            option.help = _say("help")
        return option

    def format_help(self, ctx: "Context", formatter: "HelpFormatter") -> None:
        from typer import rich_utils

        for panel in ("arguments", "options", "commands"):
            setattr(rich_utils, f"{panel.upper()}_PANEL_TITLE", _say(panel))
        rich_utils.DEFAULT_STRING = f"[{_say('default')}: {{}}]"
        rich_utils.REQUIRED_LONG_STRING = f"[{_say('required')}]"
        for parameter in self.get_params(ctx):
            if isinstance(parameter, TyperArgument | TyperOption):
                vars(parameter)["display_type_rich"] = _TypeName(parameter.display_type_rich)
        super().format_help(ctx, formatter)


class _TypeName:
    """Name the type of a parameter in the language of the terminal, in place of Python's name."""

    def __init__(self, python_name: Callable[["Context"], str | None]) -> None:
        self._python_name = python_name

    def __call__(self, ctx: "Context") -> str | None:
        shown = self._python_name(ctx)
        if shown is None or not (shown.startswith("<") and shown.endswith(">")):
            return shown
        python = shown[1:-1]
        if python == "bool":  # a flag takes no value
            return None
        element = python.removeprefix("list[").removesuffix("]")
        key = f"cli.help_page.type.{element.removesuffix(' range')}"
        name = text(key, terminal_locale()) if key in keys(key) else element
        return name if element == python else f"{name}…"


def _say(key: str, **params: str) -> str:
    return text(f"cli.help_page.{key}", terminal_locale(), **params)
