"""`opora doctor`: the checks of `ui.doctor` on the command line."""

import logging
from collections.abc import Sequence

import typer

from components.language.texts import terminal_locale
from settings import get_settings
from ui.cli.terminal import print_finding, texts, with_json
from ui.doctor import examine
from ui.doctor.finding import Finding

message = texts("doctor")


def _print(found: Sequence[Finding]) -> None:
    for one in found:
        print_finding(one.status, message(f"check.{one.check}"), one.words(terminal_locale()), one.command)
    problems, warnings = (sum(one.status == status for one in found) for status in ("problem", "warning"))
    typer.echo(message("counted", problem=problems, warning=warnings) if problems or warnings else message("well"))


def _as_json(finding: Finding) -> dict[str, object]:
    told = {name: getattr(finding, name) for name in ("check", "status", "code", "command")}
    return told | {"text": finding.words(terminal_locale())}


@with_json(
    _print,
    form=lambda found: [_as_json(one) for one in found],
    fails=lambda found: any(one.status == "problem" for one in found),
)
def doctor() -> Sequence[Finding]:
    logging.getLogger("opora.models").setLevel(logging.ERROR)  # the findings say what failed
    return examine(get_settings())
