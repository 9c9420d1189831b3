"""The official Python client against the gateway: the same calls as official-clients.test.ts, sync and async.

    python openai_python.py BASE_URL    see python_cases.py
"""

import json
import time

import openai
import pydantic

from python_cases import SETUP, each, final, leave, marker, refused, run, settled

WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "The weather of a city",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}


def prompt(script, kind):
    return [{"role": "user", "content": f"hello [[{marker(script, kind.name)}]]"}]


async def plain(kind):
    reply = await settled(
        kind.client().chat.completions.create(
            model="open-05-3BIT-REAP", messages=prompt("reasoning-text", kind)
        )
    )
    assert reply.choices[0].message.content == "Hi there!", reply
    assert reply.choices[0].message.reasoning_content == "Let me think.", reply
    assert reply.choices[0].finish_reason == "stop", reply
    assert reply.usage.prompt_tokens == 120 and reply.usage.total_tokens == 140, reply
    assert reply.usage.prompt_tokens_details.cached_tokens == 20, reply
    assert reply._request_id, reply


async def streamed(kind):
    stream = await settled(
        kind.client().chat.completions.create(
            model="core-3", stream=True, messages=prompt("reasoning-text", kind)
        )
    )
    content = reasoning = ""
    usage = None
    async for chunk in each(stream):
        usage = chunk.usage or usage
        delta = chunk.choices[0].delta  # as tutorials do: each chunk has a choice
        content += delta.content or ""
        reasoning += getattr(delta, "reasoning_content", None) or ""
    assert (content, reasoning) == ("Hi there!", "Let me think."), (content, reasoning)
    assert usage.total_tokens == 140, usage


async def usage_apart(kind):
    stream = await settled(
        kind.client().chat.completions.create(
            model="core-3",
            stream=True,
            stream_options={"include_usage": True},
            messages=prompt("text", kind),
        )
    )
    chunks = [chunk async for chunk in each(stream)]
    assert [len(chunk.choices) for chunk in chunks] == [1] * (len(chunks) - 1) + [0], chunks
    assert [chunk.usage for chunk in chunks[:-1]] == [None] * (len(chunks) - 1), chunks
    assert chunks[-1].usage.total_tokens == 140, chunks


async def helper(kind):
    manager = kind.client().chat.completions.stream(
        model="core-3", messages=prompt("parallel-tools", kind), tools=[WEATHER]
    )
    reply = await final(manager, "get_final_completion")
    calls = [(call.function.name, call.function.arguments) for call in reply.choices[0].message.tool_calls]
    assert calls == [("get_weather", '{"city":"London"}'), ("get_weather", '{"city":"Tokyo"}')], calls
    assert reply.choices[0].finish_reason == "tool_calls", reply


async def tool_round(kind):
    completions = kind.client().chat.completions
    messages = prompt("one-tool", kind)
    first = await settled(completions.create(model="core-3", messages=messages, tools=[WEATHER]))
    message = first.choices[0].message
    call = message.tool_calls[0]
    assert message.content is None and call.type == "function", message
    assert json.loads(call.function.arguments) == {"city": "Paris"}, call
    messages += [message, {"role": "tool", "tool_call_id": call.id, "content": "sunny, 21 C"}]
    second = await settled(completions.create(model="core-3", messages=messages, tools=[WEATHER]))
    assert second.choices[0].message.content == "It is sunny in Paris.", second


async def forced_tool(kind):
    reply = await settled(
        kind.client().chat.completions.create(
            model="core-3",
            messages=prompt("forced-tool", kind),
            tools=[WEATHER],
            tool_choice={"type": "function", "function": {"name": "get_weather"}},
        )
    )
    assert reply.choices[0].finish_reason == "tool_calls", reply


async def json_schema(kind):
    schema = {
        "type": "object",
        "properties": {"title": {"type": "string"}, "year": {"type": "integer"}},
        "required": ["title", "year"],
        "additionalProperties": False,
    }
    reply = await settled(
        kind.client().chat.completions.create(
            model="core-3",
            messages=prompt("json", kind),
            response_format={"type": "json_schema", "json_schema": {"name": "book", "strict": True, "schema": schema}},
        )
    )
    assert json.loads(reply.choices[0].message.content) == {"title": "Dune", "year": 1965}, reply


class Book(pydantic.BaseModel):
    title: str


async def refuses_a_format(kind):
    request = {"model": "core-3", "messages": prompt("refused", kind), "response_format": Book}
    for reply in (
        await settled(kind.client().chat.completions.parse(**request)),
        await final(kind.client().chat.completions.stream(**request), "get_final_completion"),
    ):
        message = reply.choices[0].message
        assert (message.refusal, message.parsed, message.content) == ("I cannot do that.", None, None), reply
        assert reply.choices[0].finish_reason == "stop", reply


async def wrong_key(kind):
    create = kind.client("sk-tg-" + "x" * 43).chat.completions.create
    error = await refused(openai.AuthenticationError, create, model="core-3", messages=prompt("text", kind))
    assert error.code == "invalid_api_key" and error.type == "authentication_error", error.body


async def malformed(kind):
    create = kind.client().chat.completions.create
    await refused(openai.BadRequestError, create, model="core-99", messages=prompt("text", kind))
    await refused(openai.BadRequestError, create, model="core-3", messages="hi")


async def no_balance(kind):
    started = time.monotonic()
    error = await refused(
        openai.RateLimitError,
        kind.client(SETUP["poor_key"]).chat.completions.create,
        model="core-3",
        max_tokens=60_000,
        messages=prompt("text", kind),
    )
    assert error.code == "insufficient_quota" and "Quota exceeded." in error.message, error.body
    assert error.body["requested"] == 60_000 > error.body["spendable"], error.body
    # the client's first retry would have come after at least half a second
    assert time.monotonic() - started < 0.5 or error.response.headers["x-should-retry"] == "false", "retried"


async def died(kind):
    stream = await settled(
        kind.client().chat.completions.create(
            model="core-3", stream=True, messages=prompt("dies-rst", kind)
        )
    )
    content = ""
    try:
        async for chunk in each(stream):
            content += "".join(choice.delta.content or "" for choice in chunk.choices)
    except openai.APIError:
        assert content == "Hi there", content
        return
    raise AssertionError("expected an error in the stream")


async def aborted(kind):
    stream = await settled(
        kind.client().chat.completions.create(
            model="core-3", stream=True, messages=prompt("endless", kind)
        )
    )
    await leave(kind, stream)


async def models(kind):
    client = kind.client()
    page = client.models.list()
    ids = [model.id async for model in each(page if kind.is_async else iter(page))]
    assert len(ids) == 21 and "core-coder-1" in ids, ids
    model = await settled(client.models.retrieve("core-3"))
    assert model.id == "core-3" and model.context_window == 196608, model


CASES = [
    plain,
    streamed,
    usage_apart,
    helper,
    tool_round,
    forced_tool,
    json_schema,
    refuses_a_format,
    wrong_key,
    malformed,
    no_balance,
    died,
    aborted,
    models,
]


run(CASES, openai.OpenAI, openai.AsyncOpenAI)
