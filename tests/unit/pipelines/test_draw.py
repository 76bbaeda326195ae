import re
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import pytest
import yaml
from typer.testing import CliRunner

import cli
from pipelines.draw import draw, names, path_of

SVG = "{http://www.w3.org/2000/svg}"
PIPELINES = names()


def written(svg: str) -> str:
    return "\n".join(found.text or "" for found in ElementTree.fromstring(svg).iter(f"{SVG}text"))


@pytest.mark.parametrize("name", PIPELINES)
def test_the_committed_picture_is_that_of_the_file(name: str) -> None:
    path = path_of(name)
    committed = path.with_suffix(".svg").read_text(encoding="utf-8")
    assert committed == draw(path.read_text(encoding="utf-8")), f"opora pipeline draw {name} --out {path.stem}.svg"


@pytest.mark.parametrize("name", PIPELINES)
def test_every_step_and_every_number_is_in_the_picture(name: str) -> None:
    source = path_of(name).read_text(encoding="utf-8")
    shown = "".join(ElementTree.fromstring(draw(source)).itertext())
    for step, spec in yaml.safe_load(source)["components"].items():
        assert step in shown
        assert str(spec["type"]).rpartition(".")[2] in shown
        for parameter, value in (spec.get("init_parameters") or {}).items():
            assert f"{parameter}:" in shown
            assert not isinstance(value, int | float) or f"{parameter}: {value}" in shown


def test_both_loops_are_told_from_the_way_down() -> None:
    svg = draw(path_of("ask").read_text(encoding="utf-8"))
    assert len(re.findall(r'class="way back"', svg)) == 2
    assert svg.count('class="say backsay"') == 2
    assert "least probability" in svg, "a threshold says what it is for"


def test_boxes_do_not_overlap_and_nothing_leaves_the_picture() -> None:
    root = ElementTree.fromstring(draw(path_of("ask").read_text(encoding="utf-8")))
    _, _, width, height = map(float, root.attrib["viewBox"].split())
    boxes = [box.attrib for box in root.iter(f"{SVG}rect") if box.get("class") == "box"]
    spans = sorted((float(box["y"]), float(box["y"]) + float(box["height"])) for box in boxes)
    assert all(end < start for (_, end), (start, _) in pairwise(spans))
    numbers = [float(n) for way in root.iter(f"{SVG}path") for n in re.findall(r"[ML](-?[\d.]+)", way.attrib["d"])]
    assert min(numbers) >= 0
    assert max(numbers) <= width
    assert spans[-1][1] <= height


def test_steps_of_one_layer_stand_side_by_side_and_text_is_escaped() -> None:
    source = """
components:
  a: {type: x.y.First}
  b: {type: x.y.Second, init_parameters: {words: "<b>&", weights: {one: 1, two: 2}, judge: {type: p.Judge}}}
  c: {type: x.y.Third}
  d: {type: x.y.Last}
connections:
  - {sender: a.left, receiver: b.turn}
  - {sender: a.right, receiver: c.turn}
  - {sender: b.turn, receiver: d.turn}
  - {sender: c.turn, receiver: d.turn}
"""
    svg = draw(source)
    assert "&lt;b&gt;&amp;" in svg
    assert "weights: one 1 two 2" in written(svg)
    assert "judge: Judge" in written(svg)
    boxes = [box.attrib for box in ElementTree.fromstring(svg).iter(f"{SVG}rect") if box.get("class") == "box"]
    (b, c) = (box for box in boxes if box["y"] == boxes[1]["y"])
    assert abs(float(b["x"]) - float(c["x"])) > float(b["width"])
    assert not re.search(r"href|url\(|@import", svg), "the picture asks for something"


def test_the_command_draws_by_name_and_by_file_and_refuses_what_is_no_pipeline(tmp_path: Path) -> None:
    run = CliRunner().invoke
    out = tmp_path / "ask.svg"
    assert run(cli.app, ["pipeline", "draw", "ask", "--out", str(out)]).exit_code == 0
    assert run(cli.app, ["pipeline", "draw", str(path_of("ask"))]).stdout == out.read_text(encoding="utf-8")
    broken = tmp_path / "broken.yaml"
    broken.write_text("components: {a: {type: no.such.Thing}}", encoding="utf-8")
    for wrong in ("nothing", str(broken)):
        refused = run(cli.app, ["pipeline", "draw", wrong])
        assert (refused.exit_code, refused.stdout) == (2, "")
        assert refused.stderr.count("\n") == 1
