"""The official Python client's responses over a WebSocket, sync and async. Arguments: base address. The key is in KEY."""

import asyncio
import json
import os
import sys

from openai import AsyncOpenAI, OpenAI

LASTS = {"response.completed", "response.failed", "response.incomplete", "error"}
options = {"base_url": sys.argv[1], "api_key": os.environ["KEY"]}
create = {"model": "core-3", "store": False}


def sync():
    said = {}
    with OpenAI(**options).responses.connect() as connection:

        def of(*types, stream_id=None):
            for event in connection:
                if event.type in types and (stream_id is None or event.stream_id == stream_id):
                    return event
            raise RuntimeError("closed before the end")

        connection.response.create(input="hello [[text#python]]", **create)
        first = of(*LASTS).response
        connection.response.create(input="and?", previous_response_id=first.id, **create)
        second = of(*LASTS).response
        said["continued"] = [first.output_text, second.previous_response_id == first.id]
        connection.response.create(stream_id="slow", input="[[slow#python]]", **create)
        connection.response.create(stream_id="quick", input="[[text#python]]", **create)
        ends = [of(*LASTS, stream_id=stream).response.status for stream in ("quick", "slow")]
        said["streams"] = ends
        connection.response.create(input="[[slow#python-steered]]", **create)
        response = of("response.created").response
        connection.send({"type": "response.steer", "previous_response_id": response.id, "input": "shorter"})
        said["steered"] = of("response.steer.accepted").steer.previous_response_id == response.id
        of(*LASTS)
        said["successor"] = of(*LASTS).response.previous_response_id == response.id
        connection.response.create(input="x", previous_response_id="resp_missing", **create)
        said["refused"] = of(*LASTS).error.code
    return said


async def asynchronous():
    async with AsyncOpenAI(**options).responses.connect() as connection:
        await connection.response.create(input="hello [[text#python-async]]", **create)
        async for event in connection:
            if event.type in LASTS:
                return event.response.output_text


print(json.dumps({**sync(), "async": asyncio.run(asynchronous())}))
