"""The ask pipeline as an MCP tool, by the protocol's own client."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import httpx
from mcp import ClientSession
from mcp.client.streamable_http import streamable_http_client
from mcp.types import CallToolResult, TextContent

from pipelines.ask.contract import TurnAnswer
from tests.service.test_streams import ABSENT, ANSWERABLE


@asynccontextmanager
async def connected(url: httpx.URL, token: str, language: str = "") -> AsyncIterator[ClientSession]:
    headers = {"Authorization": f"Bearer {token}", "Accept-Language": language}
    async with (
        httpx.AsyncClient(headers=headers, timeout=60) as client,
        streamable_http_client(str(url.join("/mcp")), http_client=client) as (reading, writing, _),
        ClientSession(reading, writing) as session,
    ):
        await session.initialize()
        yield session


def text_of(result: CallToolResult) -> str:
    (content,) = result.content
    assert isinstance(content, TextContent)
    return content.text


async def test_the_tool_answers_in_words_and_as_the_object(acme: httpx.Client, token: Callable[..., str]) -> None:
    async with connected(acme.base_url, token()) as session:
        (tool,) = (await session.list_tools()).tools
        assert tool.name == "ask"
        assert tool.description
        assert tool.inputSchema["required"] == ["question"]
        result = await session.call_tool("ask", {"question": ANSWERABLE, "quality": "quick"})
        refused = await session.call_tool("ask", {"question": ABSENT})
    answer = TurnAnswer.model_validate(result.structuredContent)
    assert (answer.outcome, result.isError) == ("answered", False)
    assert answer.answer.text in text_of(result)
    assert "[1] Коды ошибок стиральной машины" in text_of(result)
    assert TurnAnswer.model_validate(refused.structuredContent).outcome == "refused"
    assert not refused.isError


async def test_concurrent_tenants_are_not_mixed(
    acme: httpx.Client, token: Callable[..., str], ingest: Callable[..., httpx.Response]
) -> None:
    valve = {"doc_id": "valve.md", "title": "Valve", "text": "The code E20 of the zephyr valve means: turn it left."}
    assert ingest("globex", [valve]).status_code == 200

    async def ask(session: ClientSession, question: str) -> TurnAnswer:
        result = await session.call_tool("ask", {"question": question})
        return TurnAnswer.model_validate(result.structuredContent)

    async with (
        connected(acme.base_url, token("acme")) as ours,
        connected(acme.base_url, token("globex")) as theirs,
    ):
        asked = [(ours, ANSWERABLE), (theirs, "What does the code E20 of the valve mean?")] * 8
        answers = await asyncio.gather(*(ask(session, question) for session, question in asked))
    for answer, (session, _) in zip(answers, asked, strict=True):
        assert answer.outcome == "answered"
        documents = {citation.doc_id for citation in answer.citations}
        assert documents & {"errors.md", "valve.md"} == {"errors.md" if session is ours else "valve.md"}
        assert answer.locale == ("ru" if session is ours else "en")


INVALID: list[tuple[str, dict[str, object], str]] = [
    ("ask", {"question": " "}, "question_empty"),
    ("ask", {}, "field_missing"),
    ("ask", {"question": "q", "tenant_id": "globex"}, "unknown_field"),
    ("ask", {"question": "q", "headers": {"authorization": "Bearer x"}}, "unknown_field"),
    ("ask", {"question": "q", "filters": {"collection": "globex"}}, "unknown_filter"),
    ("ingest", {"documents": []}, "not_found"),
    ("get_all_pipeline_statuses", {}, "not_found"),
    ("deploy_pipeline", {"name": "x", "files": []}, "not_found"),
]


async def test_an_invalid_tool_call_returns_a_problem(acme: httpx.Client, token: Callable[..., str]) -> None:
    async with connected(acme.base_url, token(), language="en") as session:
        for tool, arguments, code in INVALID:
            result = await session.call_tool(tool, arguments)
            assert result.isError
            assert result.structuredContent is not None
            assert result.structuredContent["code"] == code, (tool, arguments)
            assert text_of(result) == result.structuredContent["detail"]
            assert "Error" not in text_of(result)


async def test_calls_of_the_tool_spend_the_quota(acme: httpx.Client, token: Callable[..., str]) -> None:
    async with connected(acme.base_url, token("hurried", "ask", subject="agent")) as session:
        await session.list_tools()
        results = [await session.call_tool("ask", {"question": "What does E20 mean?"}) for _ in range(4)]
    assert [result.isError for result in results] == [False, False, False, True]
    assert (results[-1].structuredContent or {})["code"] == "rate_limited"
