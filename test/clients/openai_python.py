"""The official Python client against the gateway: the same calls as official-clients.test.ts, sync and async.

    python openai_python.py BASE_URL    with {"key", "poor_key", "markers": {script: marker}} as JSON on stdin

Prints one JSON line per case: {"case", "error": null | text}. The tags of the markers are the caller's, so that it
can read the node's records; everything else of the client is left as it is.
"""

import asyncio
import inspect
import json
import sys
import time
import traceback

import openai

BASE_URL = sys.argv[1]
SETUP = json.load(sys.stdin)
WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "The weather of a city",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}


def prompt(script, tag):
    marker = SETUP["markers"].get(f"{script}/{tag}", f"{script}#python-{tag}")
    return [{"role": "user", "content": f"hello [[{marker}]]"}]


class Sync:
    """The blocking client; every case is written against `await`, so results are wrapped."""

    name = "sync"

    def __init__(self, key):
        self.client = openai.OpenAI(base_url=BASE_URL, api_key=key)


class Async:
    name = "async"

    def __init__(self, key):
        self.client = openai.AsyncOpenAI(base_url=BASE_URL, api_key=key)


async def settled(value):
    """The value itself, or what it resolves to."""
    return await value if inspect.isawaitable(value) else value


async def each(stream):
    """The items of a sync or async iterable."""
    if hasattr(stream, "__aiter__"):
        async for item in stream:
            yield item
    else:
        for item in stream:
            yield item


async def plain(kind):
    reply = await settled(
        kind(SETUP["key"]).client.chat.completions.create(
            model="open-05-3BIT-REAP", messages=prompt("reasoning-text", kind.name)
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
        kind(SETUP["key"]).client.chat.completions.create(
            model="core-3", stream=True, messages=prompt("reasoning-text", kind.name)
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
        kind(SETUP["key"]).client.chat.completions.create(
            model="core-3",
            stream=True,
            stream_options={"include_usage": True},
            messages=prompt("text", kind.name),
        )
    )
    chunks = [chunk async for chunk in each(stream)]
    assert [len(chunk.choices) for chunk in chunks] == [1] * (len(chunks) - 1) + [0], chunks
    assert [chunk.usage for chunk in chunks[:-1]] == [None] * (len(chunks) - 1), chunks
    assert chunks[-1].usage.total_tokens == 140, chunks


async def helper(kind):
    manager = kind(SETUP["key"]).client.chat.completions.stream(
        model="core-3", messages=prompt("parallel-tools", kind.name), tools=[WEATHER]
    )
    if kind is Async:
        async with manager as stream:
            reply = await stream.get_final_completion()
    else:
        with manager as stream:
            reply = stream.get_final_completion()
    calls = [(call.function.name, call.function.arguments) for call in reply.choices[0].message.tool_calls]
    assert calls == [("get_weather", '{"city":"London"}'), ("get_weather", '{"city":"Tokyo"}')], calls
    assert reply.choices[0].finish_reason == "tool_calls", reply


async def tool_round(kind):
    completions = kind(SETUP["key"]).client.chat.completions
    messages = prompt("one-tool", kind.name)
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
        kind(SETUP["key"]).client.chat.completions.create(
            model="core-3",
            messages=prompt("forced-tool", kind.name),
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
        kind(SETUP["key"]).client.chat.completions.create(
            model="core-3",
            messages=prompt("json", kind.name),
            response_format={"type": "json_schema", "json_schema": {"name": "book", "strict": True, "schema": schema}},
        )
    )
    assert json.loads(reply.choices[0].message.content) == {"title": "Dune", "year": 1965}, reply


async def refused(kind, expected, key, **request):
    try:
        await settled(kind(key).client.chat.completions.create(**request))
    except openai.APIStatusError as error:
        assert type(error) is expected, repr(error)
        assert error.request_id, "a request id"
        return error
    raise AssertionError(f"expected {expected.__name__}")


async def wrong_key(kind):
    error = await refused(
        kind, openai.AuthenticationError, "sk-tg-" + "x" * 43, model="core-3", messages=prompt("text", kind.name)
    )
    assert error.code == "invalid_api_key" and error.type == "authentication_error", error.body


async def malformed(kind):
    await refused(kind, openai.BadRequestError, SETUP["key"], model="core-99", messages=prompt("text", kind.name))
    await refused(kind, openai.BadRequestError, SETUP["key"], model="core-3", messages="hi")


async def no_balance(kind):
    started = time.monotonic()
    error = await refused(
        kind,
        openai.RateLimitError,
        SETUP["poor_key"],
        model="core-3",
        max_tokens=60_000,
        messages=prompt("text", kind.name),
    )
    assert error.code == "insufficient_quota" and "Quota exceeded." in error.message, error.body
    assert error.body["requested"] == 60_000 > error.body["spendable"], error.body
    # the client's first retry would have come after at least half a second
    assert time.monotonic() - started < 0.5 or error.response.headers["x-should-retry"] == "false", "retried"


async def died(kind):
    stream = await settled(
        kind(SETUP["key"]).client.chat.completions.create(
            model="core-3", stream=True, messages=prompt("dies-rst", kind.name)
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
        kind(SETUP["key"]).client.chat.completions.create(
            model="core-3", stream=True, messages=prompt("endless", kind.name)
        )
    )
    chunks = 0
    async for chunk in each(stream):
        chunks += 1
        if chunks == 5:
            break
    print(json.dumps({"aborted": kind.name, "at": time.time() * 1000}), flush=True)
    await settled(stream.close())


async def models(kind):
    client = kind(SETUP["key"]).client
    page = client.models.list()
    ids = [model.id async for model in each(page if kind is Async else iter(page))]
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
    wrong_key,
    malformed,
    no_balance,
    died,
    aborted,
    models,
]


async def main():
    for kind in (Sync, Async):
        for case in CASES:
            error = None
            try:
                await case(kind)
            except Exception:
                error = traceback.format_exc(limit=3)
            print(json.dumps({"case": f"{case.__name__} {kind.name}", "error": error}), flush=True)


asyncio.run(main())
