"""The official Python client of the messages dialect against the gateway: the calls of official-clients.test.ts, sync and async.

    python anthropic_python.py BASE_URL    with {"key", "poor_key", "markers": {script: marker}} as JSON on stdin

Prints one JSON line per case: {"case", "error": null | text}. The tags of the markers are the caller's, so that it
can read the node's records; everything else of the client is left as it is.
"""

import asyncio
import inspect
import json
import sys
import time
import traceback

import anthropic

BASE_URL = sys.argv[1]
SETUP = json.load(sys.stdin)
HOSTED = "open-05-3BIT-REAP"
WEATHER = {
    "name": "get_weather",
    "description": "The weather of a city",
    "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}
THINKING = {"type": "enabled", "budget_tokens": 2000}
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNkYAAAAAYAAjCB0C8AAAAASUVORK5CYII="


def marker(script, tag):
    return SETUP["markers"].get(f"{script}/{tag}", f"{script}#python-{tag}")


def prompt(script, tag, **more):
    messages = [{"role": "user", "content": f"hello [[{marker(script, tag)}]]"}]
    return {"model": HOSTED, "max_tokens": 2100, "messages": messages, **more}


class Sync:
    """The blocking client; every case is written against `await`, so results are wrapped."""

    name = "sync"

    def __init__(self, key):
        self.client = anthropic.Anthropic(base_url=BASE_URL, api_key=key)


class Async:
    name = "async"

    def __init__(self, key):
        self.client = anthropic.AsyncAnthropic(base_url=BASE_URL, api_key=key)


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


async def final(kind, **request):
    """The message that the stream helper puts together."""
    manager = kind(SETUP["key"]).client.messages.stream(**request)
    if kind is Async:
        async with manager as stream:
            return await stream.get_final_message()
    with manager as stream:
        return stream.get_final_message()


async def plain(kind):
    reply = await settled(kind(SETUP["key"]).client.messages.create(**prompt("reasoning-text", kind.name)))
    assert [block.type for block in reply.content] == ["text"], reply  # thinking was not asked for
    assert reply.content[0].text == "Hi there!" and reply.stop_reason == "end_turn", reply
    usage = reply.usage
    assert (usage.input_tokens, usage.cache_read_input_tokens, usage.output_tokens) == (100, 20, 20), reply
    assert reply._request_id, reply


async def streamed(kind):
    stream = await settled(kind(SETUP["key"]).client.messages.create(**prompt("text", kind.name, stream=True)))
    text, types = "", []
    async for event in each(stream):
        types.append(event.type)
        if event.type == "content_block_delta":
            text += event.delta.text
    assert text == "Hi there!", text
    assert (types[0], types[-1]) == ("message_start", "message_stop"), types


async def thinking_goes_back(kind):
    first = await final(kind, **prompt("reasoning-text", kind.name, thinking=THINKING))
    assert [block.type for block in first.content] == ["thinking", "text"], first
    assert first.content[0].thinking == "Let me think." and first.content[0].signature, first
    request = prompt("text", kind.name, thinking=THINKING)
    request["messages"] = [
        {"role": "user", "content": "hello"},
        {"role": "assistant", "content": first.content},
        *request["messages"],
    ]
    second = await settled(kind(SETUP["key"]).client.messages.create(**request))
    assert second.content[0].text == "Hi there!", second


async def parallel_tools(kind):
    reply = await final(kind, **prompt("parallel-tools", kind.name, tools=[WEATHER]))
    assert [block.input for block in reply.content] == [{"city": "London"}, {"city": "Tokyo"}], reply
    assert reply.stop_reason == "tool_use", reply


async def tool_runner(kind):
    asked = []

    def weather(city: str) -> str:
        """The weather of a city."""
        asked.append(city)
        return "sunny, 21 C"

    async def weather_later(city: str) -> str:
        """The weather of a city."""
        return weather(city)

    if kind is Async:
        tool = anthropic.beta_async_tool(weather_later, name="get_weather")
    else:
        tool = anthropic.beta_tool(weather, name="get_weather")
    runner = kind(SETUP["key"]).client.beta.messages.tool_runner(**prompt("one-tool", kind.name, tools=[tool]))
    last = await settled(runner.until_done())
    assert last.content[0].text == "It is sunny in Paris.", last
    assert asked == ["Paris"], asked


async def forced_tool(kind):
    choice = {"type": "tool", "name": "get_weather"}
    request = prompt("forced-tool", kind.name, tools=[WEATHER], tool_choice=choice)
    reply = await settled(kind(SETUP["key"]).client.messages.create(**request))
    assert reply.stop_reason == "tool_use" and reply.content[0].input == {"city": "Paris"}, reply


async def image(kind):
    request = prompt("text", kind.name)
    source = {"type": "base64", "media_type": "image/png", "data": PIXEL}
    request["messages"].insert(0, {"role": "user", "content": [{"type": "image", "source": source}]})
    reply = await settled(kind(SETUP["key"]).client.messages.create(**request))
    assert reply.content[0].text == "Hi there!", reply


async def refused(kind, expected, key, **request):
    started = time.monotonic()
    try:
        await settled(kind(key).client.messages.create(**request))
    except anthropic.APIStatusError as error:
        assert type(error) is expected, repr(error)
        assert error.request_id, "a request id"
        assert error.body["type"] == "error" and error.body["error"]["message"], error.body
        error.took_s = time.monotonic() - started
        return error
    raise AssertionError(f"expected {expected.__name__}")


async def wrong_key(kind):
    error = await refused(kind, anthropic.AuthenticationError, "sk-tg-" + "x" * 43, **prompt("text", kind.name))
    assert error.body["error"]["type"] == "authentication_error", error.body


async def malformed(kind):
    await refused(kind, anthropic.BadRequestError, SETUP["key"], **prompt("text", kind.name, model="core-99"))
    await refused(kind, anthropic.BadRequestError, SETUP["key"], **prompt("text", kind.name, messages="hi"))


async def too_large(kind):
    messages = [{"role": "user", "content": "a" * 33_554_432}]
    error = await refused(
        kind, anthropic.ContentTooLargeError, SETUP["key"], **prompt("text", kind.name, messages=messages)
    )
    assert error.body["error"]["message"] == "Request body larger than 32 MiB", error.body


async def no_balance(kind):
    error = await refused(
        kind, anthropic.RateLimitError, SETUP["poor_key"], **prompt("text", kind.name, max_tokens=60_000, stream=True)
    )
    assert "Quota exceeded." in error.message, error.body
    assert error.body["error"]["requested"] == 60_000 > error.body["error"]["spendable"], error.body
    # what keeps the client from trying again
    assert error.response.headers["x-should-retry"] == "false", error.response.headers


async def failing_node(kind):
    await refused(kind, anthropic.InternalServerError, SETUP["key"], **prompt("status-500", kind.name))


async def died(kind):
    stream = await settled(kind(SETUP["key"]).client.messages.create(**prompt("dies-rst", kind.name, stream=True)))
    text = ""
    try:
        async for event in each(stream):
            if event.type == "content_block_delta":
                text += event.delta.text
    except anthropic.APIError:
        assert text == "Hi there", text
        return
    raise AssertionError("expected an error in the stream")


async def aborted(kind):
    stream = await settled(kind(SETUP["key"]).client.messages.create(**prompt("endless", kind.name, stream=True)))
    events = 0
    async for _ in each(stream):
        events += 1
        if events == 5:
            break
    print(json.dumps({"aborted": kind.name, "at": time.time() * 1000}), flush=True)
    await settled(stream.close())


async def tokens(kind):
    request = prompt("text", kind.name, tools=[WEATHER])
    del request["max_tokens"]
    count = await settled(kind(SETUP["key"]).client.messages.count_tokens(**request))
    assert 10 < count.input_tokens < 1000, count


async def models(kind):
    client = kind(SETUP["key"]).client
    ids = [model.id async for model in each(client.models.list(limit=5))]
    assert len(ids) == 21 and "core-coder-1" in ids, ids
    model = await settled(client.models.retrieve("core-3"))
    assert model.id == "core-3" and model.max_input_tokens == 196608, model
    try:
        await settled(client.models.retrieve("core-99"))
    except anthropic.NotFoundError:
        return
    raise AssertionError("expected NotFoundError")


CASES = [
    plain,
    streamed,
    thinking_goes_back,
    parallel_tools,
    tool_runner,
    forced_tool,
    image,
    wrong_key,
    malformed,
    too_large,
    no_balance,
    failing_node,
    died,
    aborted,
    tokens,
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
