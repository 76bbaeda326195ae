"""The linter of pipeline YAML: our own files pass, and each rule detects its fault."""

from pathlib import Path

import pytest
import yaml
from haystack import Pipeline

from components.language.texts import LOCALES, keys
from components.turn import PASSES
from pipelines.ask.engine import YAML
from pipelines.definition import ALLOWED_MODULES, load
from pipelines.lint import Finding, deployed, lint, lint_file, main
from tests.pages import profile

OURS = deployed()
MAX_PASSES = max(PASSES.values())
JOINER = "{type: haystack.components.joiners.branch.BranchJoiner, init_parameters: {type_: str}}"
FETCHER = "haystack.components.fetchers.link_content.LinkContentFetcher"
PROMPT = "{type: haystack.components.builders.prompt_builder.PromptBuilder, init_parameters: {template: '{{a}}{{b}}'}}"
ROUTER = """
    type: haystack.components.routers.conditional_router.ConditionalRouter
    init_parameters:
      routes:
        - {condition: "{{n}}", output: "{{n}}", output_name: again, output_type: str}
        - {condition: "{{not n}}", output: "{{n}}", output_name: done, output_type: str}
"""
LOOP = f"""
components:
  start: {JOINER}
  head: {JOINER}
  prompt: {PROMPT}
  router: {ROUTER}
  end: {JOINER}
connections:
  - {{sender: start.value, receiver: head.value}}
  - {{sender: head.value, receiver: prompt.a}}
  - {{sender: prompt.prompt, receiver: router.n}}
  - {{sender: router.again, receiver: head.value}}
  - {{sender: router.done, receiver: end.value}}
max_runs_per_component: {MAX_PASSES + 1}
"""
SOUND = f"""
components:
  one: {JOINER}
  two: {JOINER}
connections:
  - {{sender: one.value, receiver: two.value}}
"""


ENDING = """
components:
  one: {type: components.understand.guard.Guard, init_parameters: {}}
  two: {type: components.decide.outcome.OutcomeComposer, init_parameters: {}}
connections:
  - {sender: one.blocked, receiver: two.blocked}
"""


@pytest.mark.parametrize("path", OURS, ids=lambda path: path.name)
def test_our_pipelines_are_sound(path: Path) -> None:
    assert lint_file(path) == []


@pytest.mark.parametrize("path", OURS, ids=lambda path: path.name)
def test_our_pipelines_survive_a_round_trip_through_yaml(path: Path) -> None:
    described = load(path)
    once = Pipeline.from_dict(described, allowed_modules=ALLOWED_MODULES).to_dict()
    again = Pipeline.loads(yaml.safe_dump(once), allowed_modules=ALLOWED_MODULES).to_dict()
    assert again["components"] == once["components"]
    assert sorted(map(str, again["connections"])) == sorted(map(str, once["connections"]))
    for name, step in described["components"].items():
        for parameter, value in (step.get("init_parameters") or {}).items():
            if isinstance(value, int | float | str):
                assert once["components"][name]["init_parameters"][parameter] == value, (name, parameter)


def faults_of_profile(text: str, folder: Path, base: str | None = None) -> list[Finding]:
    """Return the findings in a profile over the deployed pipeline, or over the given one."""
    path = folder / "ask" / "profiles" / "own.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    (folder / "ask" / "ask.yaml").write_text(base or YAML.read_text(encoding="utf-8"), encoding="utf-8")
    path.write_text(text, encoding="utf-8")
    return lint_file(path)


EVALUATORS = f"components: {{one: {JOINER}, two: {JOINER}}}\nconnections: []"


@pytest.mark.parametrize("source", [SOUND, LOOP, EVALUATORS])
def test_a_sound_pipeline_has_no_findings(source: str) -> None:
    assert lint(source) == []


def changed(old: str, new: str, source: str = SOUND) -> str:
    assert old in source
    return source.replace(old, new, 1)


_CONNECTION = "{sender: one.value, receiver: two.value}"
BROKEN = [
    ("components: [", "not_yaml", "yaml"),
    ("- a\n- b", "not_a_mapping", "yaml"),
    ("components: 5", "not_a_mapping", "components"),
    (changed("connections:", "conections:"), "unknown_key", "yaml"),
    (changed("connections:", "max_loops: 3\nconnections:"), "unknown_key", "yaml"),
    (changed("two:", "one:"), "duplicate_key", "yaml:4"),
    (changed("init_parameters", "init_params"), "unknown_key", "components.one"),
    (changed("one: " + JOINER, "one: joiner"), "not_a_mapping", "components.one"),
    (changed("{type_: str}", "str"), "not_a_mapping", "components.one.init_parameters"),
    (changed("BranchJoiner", "BranchJoyner"), "not_built", "components.one"),
    (changed("haystack.components.joiners.branch", "haystack.nowhere"), "not_built", "components.one"),
    (changed("haystack.components.joiners.branch.BranchJoiner", "os.PathLike"), "not_built", "components.one"),
    (changed("{type_: str}", "{type_: str, tpye: 1}"), "not_built", "components.one"),
    (changed("{type_: str}", "{}"), "not_built", "components.one"),
    (changed("{type_: str}", "{type_: no.such.type}"), "not_built", "components.one"),
    (
        changed("{type_: str}", "{type_: {type: haystack.dataclasses.Document, init_parameters: {contnet: a}}}"),
        "not_built",
        "components.one",
    ),
    (
        changed("one: " + JOINER, f"one: {{type: {FETCHER}, init_parameters: {{user_agents: [{JOINER}]}}}}"),
        "nested_too_deep",
        "components.one",
    ),
    (changed(_CONNECTION, "one.value -> two.value"), "not_a_mapping", "connections.1"),
    (changed("  - " + _CONNECTION, "  one: two"), "not_a_mapping", "connections"),
    (changed("receiver:", "reciever:"), "unknown_key", "connections.1"),
    (changed("sender: one.value", "sender: one.value.more"), "not_assembled", "connections.1"),
    (changed("sender: one.value", "sender: onee.value"), "not_assembled", "connections.1"),
    (changed("receiver: two.value", "receiver: two.text"), "not_assembled", "connections.1"),
    (changed("connections:", f"  three: {JOINER}\nconnections:"), "unconnected", "components.three"),
    (SOUND + "inputs: {query: [one.value]}", "unknown_key", "yaml"),
    (changed("str}", "int}"), "not_assembled", "connections.1"),
    (
        changed("  - {sender: head", "  - {sender: start.value, receiver: prompt.b}\n  - {sender: head", LOOP),
        "loop_trap",
        "prompt.b",
    ),
    (changed(f"max_runs_per_component: {MAX_PASSES + 1}", "", LOOP), "loop_without_net", "max_runs_per_component"),
    (
        changed(f"component: {MAX_PASSES + 1}", f"component: {MAX_PASSES}", LOOP),
        "loop_without_net",
        "max_runs_per_component",
    ),
    (
        changed("one: {type: haystack.components.joiners.branch.BranchJoiner, ", "one: {"),
        "missing_type",
        "components.one",
    ),
    (SOUND + "metadata: {exit: two}", "no_turn", "metadata.exit"),
    (ENDING + "metadata: {exit: one}", "no_turn", "metadata.exit"),
    (SOUND + "metadata: [one]", "not_a_mapping", "metadata"),
    (ENDING, "missing_end", "metadata.exit"),
]
UNFED = """
components:
  sorted: {type: components.retrieve.reranker.FeatureRanker, init_parameters: {}}
connections:
  - {sender: rank.documents, receiver: sorted.documents}
  - {sender: sorted.documents, receiver: expand.documents}
"""
BROKEN_PROFILES = [
    (UNFED, "no_sender", "sorted.query"),
    (profile("both").replace("unite", "join"), "joins_early", "join.documents"),
    ("steps: []", "overlay_key", "yaml"),
    ("connections: [{sender: rank.documents, receiver: expand.docs}]", "not_assembled", "connections.1"),
    ("connections: [{sender: rank.documents, reciever: expand.documents}]", "unknown_key", "connections.1"),
    ("models: 1\ncomponents: {verfy: {init_parameters: {}}}", "overlay_step", "components.verfy"),
    ("remove: [verfy]", "overlay_removed", "remove"),
    ("remove: [{sender: answer.answers, receiver: outcome.answers}]", "overlay_removed", "remove"),
    ("remove: verify", "not_a_list", "remove"),
    ("components: {verify: {init_parameters: {max_claim: 3}}}", "not_built", "components.verify"),
    (
        "components: {verify: {init_parameters: {judge: {init_parameters: {}}}}}",
        "missing_type",
        "components.verify.judge",
    ),
    (
        "components: {verify: {type: components.judge.verifier.FactVerifier, init_parameter: {}}}",
        "unknown_key",
        "components.verify",
    ),
    (
        "components: {answer: {type: components.answer.generative.GenerativeAnswerer, init_parameters: {}}}",
        "not_built",
        "components.answer",
    ),
    (
        "components: {grade: 1}",
        "not_a_mapping",
        "components.grade",
    ),
    ("components: [verify]", "not_a_mapping", "components"),
    ("metadata: {exit: outcomes}", "no_turn", "metadata.exit"),
    ("max_runs_per_component: 2", "loop_without_net", "max_runs_per_component"),
    (
        "components: {retry_router: {init_parameters: {passes: {thorough: 6}}}}",
        "loop_without_net",
        "max_runs_per_component",
    ),
    ("components: {retry_router: {init_parameters: {passes: {quik: 1}}}}", "not_built", "components.retry_router"),
    ("a: [", "not_yaml", "yaml"),
]


@pytest.mark.parametrize(
    ("text", "code", "where"), BROKEN_PROFILES, ids=[f"{code}-{where}" for _, code, where in BROKEN_PROFILES]
)
def test_each_fault_of_a_profile_is_found_where_it_is(text: str, code: str, where: str, tmp_path: Path) -> None:
    findings = faults_of_profile(text, tmp_path)
    assert (code, where) in {(finding.code, finding.where) for finding in findings}
    assert all("\n" not in finding.describe(locale) for finding in findings for locale in LOCALES)


def test_a_profile_over_nothing_or_over_a_broken_pipeline_says_so(tmp_path: Path) -> None:
    path = tmp_path / "ask" / "profiles" / "own.yaml"
    path.parent.mkdir(parents=True)
    path.write_text("{}", encoding="utf-8")
    assert lint_file(path) == [Finding("no_base", "yaml", "ask.yaml")]
    assert [finding.code for finding in faults_of_profile("{}", tmp_path, "components: 5")] == ["not_a_mapping"]


@pytest.mark.parametrize(("source", "code", "where"), BROKEN, ids=[f"{code}-{where}" for _, code, where in BROKEN])
def test_each_fault_is_found_where_it_is(source: str, code: str, where: str) -> None:
    findings = lint(source)
    assert (code, where) in {(finding.code, finding.where) for finding in findings}
    assert all(finding.describe(locale) for finding in findings for locale in LOCALES)


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        (changed("two.value", "two.text"), "'two.text' does not exist"),
        (changed("haystack.components.joiners.branch", "haystack.nowhere"), "No module named 'haystack.nowhere'"),
    ],
)
def test_a_fault_gives_its_reason(source: str, reason: str) -> None:
    assert lint(source)[0].found.endswith(reason)


def test_every_rule_has_its_broken_file() -> None:
    rules = {key.removeprefix("lint.") for key in keys("lint.")} - {"clean", "help", "no_file", "as_pipeline"}
    assert {code for _, code, _ in (*BROKEN, *BROKEN_PROFILES)} | {"no_base"} == rules


def test_the_command_names_file_and_fault(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LC_ALL", "en_US.UTF-8")
    sound, broken = tmp_path / "sound.yaml", tmp_path / "broken.yaml"
    sound.write_text(SOUND, encoding="utf-8")
    broken.write_text(changed("one.value", "one.vale"), encoding="utf-8")
    assert main([str(sound)]) == 0
    assert main([str(sound), str(broken)]) == 1
    captured = capsys.readouterr()
    assert str(sound) in captured.out
    assert captured.err.startswith(f"{broken}: connections.1: ")
    assert "one.vale" in captured.err
    for arguments, code in ((["--help"], 0), (["absent.yaml"], 2)):
        with pytest.raises(SystemExit) as ended:
            main(arguments)
        assert ended.value.code == code
    assert "no such file: absent.yaml" in capsys.readouterr().err


def test_a_profile_in_another_folder_is_told_where_it_belongs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LC_ALL", "en_US.UTF-8")
    overlay = "connections: [{sender: rank.documents, receiver: expand.documents}]"
    pipeline = tmp_path / "own" / "own.yaml"
    pipeline.parent.mkdir()
    misspelt = changed("init_parameters", "init_parametres")
    for path, source, hints in (
        (tmp_path / "newest.yaml", overlay, 1),
        (pipeline, overlay, 0),
        (tmp_path / "evaluators.yaml", misspelt, 0),
    ):
        path.write_text(source, encoding="utf-8")
        assert main([str(path)]) == 1
        assert capsys.readouterr().err.count("a profile has to be in a folder “profiles”") == hints
