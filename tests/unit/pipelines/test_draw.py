"""Pipelines drawn as Mermaid text show every step and threshold."""

from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

import cli
from pipelines.draw import mermaid, names, overview, path_of
from settings import ROOT


def drawn(name: str) -> str:
    return mermaid(path_of(name).read_text(encoding="utf-8"))


@pytest.mark.parametrize("readme", ["README.md", "README.ru.md"])
def test_the_overview_in_a_readme_is_that_of_the_file(readme: str) -> None:
    picture = overview(path_of("ask").read_text(encoding="utf-8"))
    assert f"```mermaid\n{picture}```\n" in (ROOT / readme).read_text(encoding="utf-8"), (
        f"put into {readme} what `opora pipeline draw ask --overview` prints"
    )


@pytest.mark.parametrize("name", names())
def test_every_step_every_number_and_every_connection_is_in_the_picture(name: str) -> None:
    definition = yaml.safe_load(path_of(name).read_text(encoding="utf-8"))
    lines = drawn(name).splitlines()
    for step, spec in definition["components"].items():
        (node,) = (line for line in lines if line.startswith(f"  {step}["))
        assert f"<b>{step}</b><br>{str(spec['type']).rpartition('.')[2]}" in node
        for parameter, value in (spec.get("init_parameters") or {}).items():
            assert f"{parameter}: {value if isinstance(value, int | float) else ''}" in node
    arrows = [line for line in lines if line.endswith(tuple(definition["components"])) and "->" in line]
    joined = {tuple(one[end].split(".")[0] for end in ("sender", "receiver")) for one in definition["connections"]}
    assert len(arrows) == len(joined)


def test_nothing_in_a_file_can_leave_its_box() -> None:
    text = mermaid(
        """
components:
  end: {type: x.y.First, init_parameters: {words: '"]<b>&#', weights: {one: 1, two: 2}, judge: {type: p.Judge}}}
  a-b: {type: x.y.Last}
connections:
  - {sender: end.accept, receiver: a-b.turn}
"""
    )
    assert text == (
        "flowchart TD\n"
        '  end_["<b>end</b><br>First<br>words: #quot;]#lt;b#gt;#amp;#35;<br>weights: one 1, two 2<br>judge: Judge"]\n'
        '  a_b["<b>a-b</b><br>Last"]\n'
        "  end_ -- accept --> a_b\n"
    )


def test_the_command_draws_a_name_or_a_file_and_refuses_others(tmp_path: Path) -> None:
    run = CliRunner().invoke
    out = tmp_path / "ask.mmd"
    assert run(cli.app, ["pipeline", "draw", "ask", "--out", str(out)]).exit_code == 0
    assert run(cli.app, ["pipeline", "draw", str(path_of("ask"))]).stdout == out.read_text(encoding="utf-8")
    assert "GenerativeAnswerer" in run(cli.app, ["pipeline", "draw", "ollama"]).stdout
    broken = tmp_path / "broken.yaml"
    broken.write_text("components: {a: {type: no.such.Thing}}", encoding="utf-8")
    for wrong in ("nothing", str(broken)):
        refused = run(cli.app, ["pipeline", "draw", wrong])
        assert (refused.exit_code, refused.stdout) == (2, "")
        assert refused.stderr.count("\n") == 1
