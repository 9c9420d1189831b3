"""What the gateway sends, held strictly to the official Python packages' own types, which their clients only assume.

    python strict_python.py BASE_URL    with {"key"} as JSON on stdin

Prints one JSON line per case: {"case", "error": null | text}.
"""

import json
import sys
import traceback
import typing
import urllib.request

from anthropic.types import Message, MessageTokensCount, ModelInfo, RawMessageStreamEvent
from anthropic.types.beta import BetaMessage, BetaRawMessageStreamEvent
from openai.types import Model
from openai.types.chat import ChatCompletion, ChatCompletionChunk
from openai.types.responses import Response, ResponseStreamEvent
from pydantic import TypeAdapter

BASE_URL = sys.argv[1]
KEY = json.load(sys.stdin)["key"]
HOSTED = "open-05-3BIT-REAP"
SCRIPTS = ["text", "reasoning-text", "parallel-tools", "length"]
CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
WEATHER = {"name": "get_weather", "description": "The weather of a city"}


def asked(path, body=None):
    """The text of the reply to one request."""
    headers = {"authorization": f"Bearer {KEY}", "anthropic-version": "2023-06-01"}
    data = None if body is None else json.dumps(body).encode()
    with urllib.request.urlopen(urllib.request.Request(BASE_URL + path, data, headers)) as reply:
        return reply.read().decode()


def strictly(kind, text):
    TypeAdapter(kind).validate_json(text, strict=True)


def events(text):
    """The data of each event."""
    return [line[len("data: ") :] for line in text.splitlines() if line.startswith("data: {")]


def member(union, event):
    """The type of a union that an event says it is of: of the whole union an error would name every other one."""
    kinds = typing.get_args(typing.get_args(union)[0])
    name = json.loads(event)["type"]
    return next(kind for kind in kinds if name in typing.get_args(kind.model_fields["type"].annotation))


def chat(script):
    prompt = [{"role": "user", "content": f"hello [[{script}#strict]]"}]
    tools = [{"type": "function", "function": {**WEATHER, "parameters": CITY}}]
    body = {"model": HOSTED, "messages": prompt, "tools": tools}
    strictly(ChatCompletion, asked("/v1/chat/completions", body))
    usage = {"stream": True, "stream_options": {"include_usage": True}}
    for event in events(asked("/v1/chat/completions", {**body, **usage})):
        strictly(ChatCompletionChunk, event)


def messages(script):
    prompt = [{"role": "user", "content": f"hello [[{script}#strict]]"}]
    tools = [{**WEATHER, "input_schema": CITY}]
    thinking = {"type": "enabled", "budget_tokens": 2000}
    body = {"model": HOSTED, "max_tokens": 2100, "messages": prompt, "tools": tools, "thinking": thinking}
    whole = asked("/v1/messages", body)
    strictly(Message, whole)
    strictly(BetaMessage, whole)
    for event in events(asked("/v1/messages", {**body, "stream": True})):
        if json.loads(event)["type"] == "ping":
            continue  # the clients pass over it
        strictly(member(RawMessageStreamEvent, event), event)
        strictly(member(BetaRawMessageStreamEvent, event), event)
    strictly(MessageTokensCount, asked("/v1/messages/count_tokens", body))


def responses(script):
    tools = [{"type": "function", **WEATHER, "parameters": CITY, "strict": False}]
    body = {"model": HOSTED, "input": f"hello [[{script}#strict]]", "tools": tools}
    strictly(Response, asked("/v1/responses", {**body, "include": ["reasoning.encrypted_content"]}))
    for event in events(asked("/v1/responses", {**body, "stream": True})):
        strictly(member(ResponseStreamEvent, event), event)


def models(kind):
    for model in json.loads(asked("/v1/models"))["data"]:
        strictly(kind, json.dumps(model))


CASES = [(dialect, script) for dialect in (chat, messages, responses) for script in SCRIPTS]
CASES += [(models, Model), (models, ModelInfo)]

for case, argument in CASES:
    error = None
    try:
        case(argument)
    except Exception:
        error = traceback.format_exc(limit=3)
    print(json.dumps({"case": f"{case.__name__} {argument}", "error": error}), flush=True)
