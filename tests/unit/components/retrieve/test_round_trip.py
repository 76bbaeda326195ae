"""Components of retrieval survive a round trip through YAML with the settings that an author gave them."""

import pytest
from haystack import Pipeline
from haystack.components.generators.chat import OpenAIChatGenerator
from haystack.utils import Secret

from components.models.chat import ChatModels
from components.retrieve.dedupe import NearDuplicateFilter
from components.retrieve.reranker import FeatureRanker
from components.retrieve.retriever import TenantRetriever
from components.retrieve.tool_chooser import LlmToolChooser
from components.retrieve.tools import ToolSearch

MODELS = ChatModels(OpenAIChatGenerator(api_key=Secret.from_env_var("NO_SUCH_KEY", strict=False)))
RETRIEVER = {"dense_share": 0.5, "candidates": 30, "top_k": 10, "cache_size": 5, "failures": 4, "pause": 20}


@pytest.mark.parametrize(
    ("component", "settings"),
    [
        (NearDuplicateFilter(8, 2), {"distance": 8, "max_per_document": 2}),
        (FeatureRanker(0.25, top_k=7), {"trust_weight": 0.25, "top_k": 7}),
        (TenantRetriever(0.5, 30, 10, 5, 4, 20), RETRIEVER),
        (ToolSearch(None, 0.4, 0.6, 0.3, 1, 2, 3, 4), {}),
        (ToolSearch(LlmToolChooser(MODELS)), {}),
    ],
)
def test_settings_survive_a_round_trip(component: object, settings: dict[str, object]) -> None:
    pipeline = Pipeline()
    pipeline.add_component("one", component)  # type: ignore[arg-type]
    again = Pipeline.loads(pipeline.dumps(), allowed_modules=["components", "haystack"])
    assert again.dumps() == pipeline.dumps()
    assert again.to_dict()["components"]["one"]["init_parameters"].items() >= settings.items()
