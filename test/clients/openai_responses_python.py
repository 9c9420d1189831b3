"""The official Python client's calls of the responses dialect, sync and async.

    python openai_responses_python.py BASE_URL    see python_cases.py
"""

import openai
import pydantic

from python_cases import each, final, marker, refused, run, settled

WEATHER = {
    "type": "function",
    "name": "get_weather",
    "description": "The weather of a city",
    "strict": True,
    "parameters": {
        "type": "object",
        "properties": {"city": {"type": "string"}},
        "required": ["city"],
        "additionalProperties": False,
    },
}


def prompt(script, kind):
    return f"hello [[{marker(script, kind.name)}]]"


async def plain(kind):
    create = kind.client().responses.create
    reply = await settled(create(model="open-05-3BIT-REAP", input=prompt("reasoning-text", kind)))
    assert reply.output_text == "Hi there!" and reply.status == "completed", reply
    assert [item.type for item in reply.output] == ["reasoning", "message"], reply
    assert reply.output[0].summary[0].text == "Let me think.", reply
    assert reply.usage.total_tokens == 140 and reply.usage.input_tokens_details.cached_tokens == 20, reply
    assert reply._request_id, reply


async def streamed(kind):
    stream = await settled(kind.client().responses.create(model="core-3", stream=True, input=prompt("text", kind)))
    events = [event async for event in each(stream)]
    assert "".join(event.delta for event in events if event.type == "response.output_text.delta") == "Hi there!", events
    assert events[-1].type == "response.completed" and events[-1].response.usage.total_tokens == 140, events


async def helper(kind):
    manager = kind.client().responses.stream(model="core-3", input=prompt("parallel-tools", kind), tools=[WEATHER])
    reply = await final(manager, "get_final_response")
    calls = [(item.name, item.arguments) for item in reply.output]
    assert calls == [("get_weather", '{"city":"London"}'), ("get_weather", '{"city":"Tokyo"}')], calls


async def conversation(kind):
    responses = kind.client().responses
    first = await settled(responses.create(model="core-3", input=prompt("one-tool", kind), tools=[WEATHER]))
    result = {"type": "function_call_output", "call_id": first.output[0].call_id, "output": "sunny"}
    second = await settled(
        responses.create(model="core-3", previous_response_id=first.id, input=[result], tools=[WEATHER])
    )
    assert second.output_text == "It is sunny in Paris.", second
    assert (await settled(responses.retrieve(second.id))).output_text == second.output_text
    items = responses.input_items.list(second.id)
    assert [item.type async for item in each(items if kind.is_async else iter(items))] == [
        "function_call_output"
    ]
    counted = await settled(responses.input_tokens.count(model="core-3", input="hello"))
    assert counted.input_tokens > 0, counted
    await settled(responses.delete(second.id))
    await refused(openai.NotFoundError, responses.retrieve, second.id)
    error = await refused(
        openai.BadRequestError, responses.create, model="core-3", previous_response_id=second.id, input="x"
    )
    assert error.code == "previous_response_not_found", error.body


async def kept_conversation(kind):
    conversations, responses = kind.client().conversations, kind.client().responses
    made = await settled(conversations.create(items=[{"role": "user", "content": prompt("text", kind)}], metadata={"a": "b"}))
    assert made.object == "conversation" and made.metadata == {"a": "b"}, made
    assert await settled(conversations.retrieve(made.id)) == made
    first = await settled(responses.create(model="core-3", conversation=made.id, input="hello", store=False))
    assert first.conversation.id == made.id, first
    more = [{"type": "function_call_output", "call_id": "call_1", "output": "sunny"}]
    added = await settled(conversations.items.create(made.id, items=more))
    assert [item.type for item in added.data] == ["function_call_output"], added
    listed = conversations.items.list(made.id, order="asc", limit=2)
    items = [item async for item in each(listed if kind.is_async else iter(listed))]
    assert [item.type for item in items] == ["message", "message", "message", "function_call_output"], items
    assert items[2].id == first.output[0].id and items[2].content[0].text == "Hi there!", items
    item = await settled(conversations.items.retrieve(items[1].id, conversation_id=made.id))
    assert item.role == "user" and item.status == "completed" and item.content[0].text == "hello", item
    await settled(conversations.items.delete(item.id, conversation_id=made.id))
    await refused(openai.NotFoundError, conversations.items.retrieve, item.id, conversation_id=made.id)
    changed = await settled(conversations.update(made.id, metadata={"c": "d"}))
    assert changed.metadata == {"c": "d"}, changed
    assert (await settled(conversations.delete(made.id))).deleted
    await refused(openai.NotFoundError, conversations.retrieve, made.id)
    await refused(openai.NotFoundError, responses.create, model="core-3", conversation=made.id, input="x")
    await refused(openai.BadRequestError, conversations.create, metadata={"k" * 65: "v"})


async def everything_sent_back(kind):
    responses = kind.client().responses
    items = [{"role": "user", "content": prompt("one-tool", kind)}]
    common = {"model": "core-3", "tools": [WEATHER], "store": False, "include": ["reasoning.encrypted_content"]}
    first = await settled(responses.create(input=items, **common))
    items += first.output
    items.append({"type": "function_call_output", "call_id": first.output[-1].call_id, "output": "sunny"})
    second = await settled(responses.create(input=items, **common))
    assert second.output_text == "It is sunny in Paris.", second


class Book(pydantic.BaseModel):
    title: str


async def refuses_a_format(kind):
    request = {"model": "core-3", "input": prompt("refused", kind), "text_format": Book}
    for reply in (
        await settled(kind.client().responses.parse(**request)),
        await final(kind.client().responses.stream(**request), "get_final_response"),
    ):
        assert reply.output_parsed is None and reply.output_text == "", reply
        assert reply.output[0].content[0].refusal == "I cannot do that.", reply


async def refusals(kind):
    create = kind.client().responses.create
    await refused(openai.BadRequestError, create, model="core-99", input="x")
    await refused(openai.BadRequestError, create, model="core-3", input=42)
    error = await refused(openai.AuthenticationError, kind.client("sk-tg-wrong").responses.create, model="core-3", input="x")
    assert error.code == "invalid_api_key", error.body
    error = await refused(openai.BadRequestError, create, model="core-3", input=prompt("prompt-too-long", kind))
    assert error.code == "context_length_exceeded", error.body


CASES = [plain, streamed, helper, conversation, kept_conversation, everything_sent_back, refuses_a_format, refusals]


run(CASES, openai.OpenAI, openai.AsyncOpenAI)
