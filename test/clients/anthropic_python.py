"""The official Python client of the messages dialect against the gateway: the calls of official-clients.test.ts, sync and async.

    python anthropic_python.py BASE_URL    see python_cases.py
"""

import anthropic
import pydantic

from python_cases import KEY, SETUP, each, final, leave, marker, refused, run, settled

HOSTED = "open-05-3BIT-REAP"
WEATHER = {
    "name": "get_weather",
    "description": "The weather of a city",
    "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}
THINKING = {"type": "enabled", "budget_tokens": 2000}
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNkYAAAAAYAAjCB0C8AAAAASUVORK5CYII="


class Book(pydantic.BaseModel):
    title: str


def prompt(script, kind, **more):
    messages = [{"role": "user", "content": f"hello [[{marker(script, kind.name)}]]"}]
    return {"model": HOSTED, "max_tokens": 2100, "messages": messages, **more}


async def plain(kind):
    reply = await settled(kind.client().messages.create(**prompt("reasoning-text", kind)))
    assert [block.type for block in reply.content] == ["text"], reply  # thinking was not asked for
    assert reply.content[0].text == "Hi there!" and reply.stop_reason == "end_turn", reply
    usage = reply.usage
    assert (usage.input_tokens, usage.cache_read_input_tokens, usage.output_tokens) == (100, 20, 20), reply
    assert reply._request_id, reply


async def streamed(kind):
    stream = await settled(kind.client().messages.create(**prompt("text", kind, stream=True)))
    text, types = "", []
    async for event in each(stream):
        types.append(event.type)
        if event.type == "content_block_delta":
            text += event.delta.text
    assert text == "Hi there!", text
    assert (types[0], types[-1]) == ("message_start", "message_stop"), types


async def thinking_goes_back(kind):
    first = await final(kind.client().messages.stream(**prompt("reasoning-text", kind, thinking=THINKING)), "get_final_message")
    assert [block.type for block in first.content] == ["thinking", "text"], first
    assert first.content[0].thinking == "Let me think." and first.content[0].signature, first
    request = prompt("text", kind, thinking=THINKING)
    request["messages"] = [
        {"role": "user", "content": "hello"},
        {"role": "assistant", "content": first.content},
        *request["messages"],
    ]
    second = await settled(kind.client().messages.create(**request))
    assert second.content[0].text == "Hi there!", second


async def parallel_tools(kind):
    reply = await final(kind.client().messages.stream(**prompt("parallel-tools", kind, tools=[WEATHER])), "get_final_message")
    assert [block.input for block in reply.content] == [{"city": "London"}, {"city": "Tokyo"}], reply
    assert reply.stop_reason == "tool_use", reply


async def spoiled_arguments(kind):
    request = prompt("spoiled-arguments", kind, tools=[WEATHER])
    reply = await final(kind.client().messages.stream(**request), "get_final_message")
    spoiled = {"city": None, "INVALID_JSON": '{"city": Paris}'}
    assert [block.input for block in reply.content] == [spoiled, {"city": "Lon\n\u00e9"}], reply


async def refuses_a_format(kind):
    request = prompt("refused", kind, output_format=Book)
    for reply in (
        await settled(kind.client().messages.parse(**request)),
        await final(kind.client().messages.stream(**request), "get_final_message"),
    ):
        assert reply.stop_reason == "refusal" and reply.parsed_output is None, reply
        assert reply.stop_details.explanation == "I cannot do that.", reply


async def tool_runner(kind):
    asked = []

    def weather(city: str) -> str:
        """The weather of a city."""
        asked.append(city)
        return "sunny, 21 C"

    async def weather_later(city: str) -> str:
        """The weather of a city."""
        return weather(city)

    if kind.is_async:
        tool = anthropic.beta_async_tool(weather_later, name="get_weather")
    else:
        tool = anthropic.beta_tool(weather, name="get_weather")
    runner = kind.client().beta.messages.tool_runner(**prompt("one-tool", kind, tools=[tool]))
    last = await settled(runner.until_done())
    assert last.content[0].text == "It is sunny in Paris.", last
    assert asked == ["Paris"], asked


async def forced_tool(kind):
    choice = {"type": "tool", "name": "get_weather"}
    request = prompt("forced-tool", kind, tools=[WEATHER], tool_choice=choice)
    reply = await settled(kind.client().messages.create(**request))
    assert reply.stop_reason == "tool_use" and reply.content[0].input == {"city": "Paris"}, reply


async def image(kind):
    request = prompt("text", kind)
    source = {"type": "base64", "media_type": "image/png", "data": PIXEL}
    request["messages"].insert(0, {"role": "user", "content": [{"type": "image", "source": source}]})
    reply = await settled(kind.client().messages.create(**request))
    assert reply.content[0].text == "Hi there!", reply


async def refused_message(kind, expected, key=KEY, **request):
    error = await refused(expected, kind.client(key).messages.create, **request)
    assert error.body["type"] == "error" and error.body["error"]["message"], error.body
    return error


async def wrong_key(kind):
    error = await refused_message(kind, anthropic.AuthenticationError, "sk-tg-" + "x" * 43, **prompt("text", kind))
    assert error.body["error"]["type"] == "authentication_error", error.body


async def malformed(kind):
    await refused_message(kind, anthropic.BadRequestError, **prompt("text", kind, model="core-99"))
    await refused_message(kind, anthropic.BadRequestError, **prompt("text", kind, messages="hi"))


async def too_large(kind):
    messages = [{"role": "user", "content": "a" * 33_554_432}]
    error = await refused_message(
        kind, anthropic.ContentTooLargeError, **prompt("text", kind, messages=messages)
    )
    assert error.body["error"]["message"] == "Request body larger than 32 MiB", error.body


async def no_balance(kind):
    error = await refused_message(
        kind, anthropic.RateLimitError, SETUP["poor_key"], **prompt("text", kind, max_tokens=60_000, stream=True)
    )
    assert "Quota exceeded." in error.message, error.body
    assert error.body["error"]["requested"] == 60_000 > error.body["error"]["spendable"], error.body
    # what keeps the client from trying again
    assert error.response.headers["x-should-retry"] == "false", error.response.headers


async def failing_node(kind):
    await refused_message(kind, anthropic.InternalServerError, **prompt("status-500", kind))


async def died(kind):
    stream = await settled(kind.client().messages.create(**prompt("dies-rst", kind, stream=True)))
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
    stream = await settled(kind.client().messages.create(**prompt("endless", kind, stream=True)))
    await leave(kind, stream)


async def tokens(kind):
    request = prompt("text", kind, tools=[WEATHER])
    del request["max_tokens"]
    count = await settled(kind.client().messages.count_tokens(**request))
    assert 10 < count.input_tokens < 1000, count


async def models(kind):
    client = kind.client()
    ids = [model.id async for model in each(client.models.list(limit=5))]
    assert len(ids) == 21 and "core-coder-1" in ids, ids
    model = await settled(client.models.retrieve("core-3"))
    assert model.id == "core-3" and model.max_input_tokens == 196608, model
    await refused(anthropic.NotFoundError, client.models.retrieve, "core-99")


CASES = [
    plain,
    streamed,
    thinking_goes_back,
    parallel_tools,
    spoiled_arguments,
    refuses_a_format,
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


run(CASES, anthropic.Anthropic, anthropic.AsyncAnthropic)
