"""Another pass searches for the missing parts, rewritten by a model if there is one, or ends the loop."""

from components.faults import collect_degraded
from components.understand.query_writer import LlmQueryWriter
from components.understand.rewrite import QueryRewriter
from tests.models import DOWN, ScriptedModels
from tests.turns import answer, document

SEEN = [document("Текст.")]


def test_what_is_missing_is_searched_beside_the_query() -> None:
    outputs = QueryRewriter(max_queries=2).run("возврат", [" цена \n возврата", "срок", "адрес"], 1, SEEN)
    assert outputs == {"query": "возврат", "variants": ["цена возврата", "срок"], "attempt": 2, "seen": SEEN}


def test_the_best_answer_so_far_is_passed_on() -> None:
    best = answer("Да.")
    assert QueryRewriter().run("возврат", ["срок"], 1, SEEN, best=best)["best"] is best
    assert QueryRewriter().run("возврат", [], 1, SEEN, best=best)["best"] is best


def test_nothing_to_search_for_ends_the_loop() -> None:
    outputs = QueryRewriter().run("возврат", ["возврат", " "], 1, SEEN)
    assert outputs["exhausted"].reasons == ("no_new_query",)
    assert "query" not in outputs


def test_the_queries_of_a_model_come_first() -> None:
    models = ScriptedModels(rewrite={"queries": ["оформить возврат"], "passage": ""})
    outputs = QueryRewriter(writer=LlmQueryWriter(models)).run("возврат", ["деньги"], 1, SEEN)
    assert outputs["variants"] == ["оформить возврат", "деньги"]


def test_the_topics_are_searched_if_the_model_fails() -> None:
    with collect_degraded() as noted:
        outputs = QueryRewriter(writer=LlmQueryWriter(ScriptedModels(rewrite=DOWN))).run("возврат", ["деньги"], 1, SEEN)
    assert (outputs["variants"], list(noted)) == (["деньги"], ["rewriter"])
