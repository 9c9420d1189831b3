"""Inspect through what people do with it, over each provider that reaches a gateway. Argument: the gateway's address. The keys are
in KEY and POOR. Each line is a case and what came of it; see ../libraries.test.ts."""

import asyncio
import os
import sys
import tempfile

from inspect_ai import Task
from inspect_ai import eval as evaluate
from inspect_ai.dataset import Sample
from inspect_ai.model import ChatMessageUser, ContentImage, ContentText, GenerateConfig, ResponseSchema, get_model
from inspect_ai.scorer import includes
from inspect_ai.solver import generate
from inspect_ai.tool import tool
from inspect_ai.util import json_schema
from pydantic import BaseModel

url = sys.argv[1]
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


@tool
def get_weather():
    async def execute(city: str):
        """The weather of a city.

        Args:
            city: The city
        """
        return "sunny in " + city

    return execute


class Book(BaseModel):
    title: str
    year: int


async def case(name, run):
    try:
        value = await asyncio.wait_for(run(), 60)
    except Exception as error:
        last = getattr(error, "last_attempt", None)  # of a RetryError
        value = f"ERROR {last.exception() if last else error}"
    print(f"{name}: {value}".replace("\n", " "), flush=True)


providers = {
    "chat": ("openai-api/tollgate/core-3", {"base_url": f"{url}/v1"}),
    "responses": ("openai/core-3", {"base_url": f"{url}/v1", "responses_api": True}),
    "messages": ("anthropic/core-3", {"base_url": url}),
}


def model_of(dialect, key=os.environ["KEY"]):
    name, where = providers[dialect]
    return get_model(name, api_key=key, memoize=False, **where)


async def main():
    for dialect in providers:

        async def ask(script, model=None, more=(), dialect=dialect, **config):
            parts = [ContentText(text=f"[[{script}#inspect-{dialect}]]"), *more]
            reply = await (model or model_of(dialect)).generate(
                [ChatMessageUser(content=parts)], config=GenerateConfig(max_retries=0, **config)
            )
            return f"{reply.completion} {reply.usage.total_tokens if reply.usage else reply.stop_reason}"

        async def loop(script, dialect=dialect):
            prompt = f"[[{script}#inspect-{dialect}]]"
            messages, reply = await model_of(dialect).generate_loop(prompt, tools=[get_weather()])
            return f"{reply.completion} in {len(messages)}"

        schema = ResponseSchema(name="book", json_schema=json_schema(Book))
        picture = ContentImage(image=f"data:image/png;base64,{PIXEL}")
        await case(f"{dialect} text", lambda: ask("text"))
        await case(f"{dialect} tools", lambda: loop("parallel-tools"))
        await case(f"{dialect} object", lambda: ask("json", response_schema=schema))
        await case(f"{dialect} image", lambda: ask("text", more=[picture]))
        await case(f"{dialect} key", lambda: ask("text", model_of(dialect, "wrong")))
        await case(f"{dialect} balance", lambda: ask("text", model_of(dialect, os.environ["POOR"]), max_tokens=60_000))
        await case(f"{dialect} context", lambda: ask("prompt-too-long"))
        await case(f"{dialect} flood", lambda: ask("status-429"))

    async def count():
        return await model_of("messages").count_tokens("hello there my friend")

    await case("messages count", count)


asyncio.run(main())
samples = [Sample(input=f"[[text#inspect-{number}]]", target="Hi") for number in range(20)]
with tempfile.TemporaryDirectory() as folder:
    task = Task(dataset=samples, solver=[generate()], scorer=includes())
    [log] = evaluate(task, model=model_of("chat"), display="none", log_dir=folder)
print(f"evaluation: {log.status} {log.results.scores[0].metrics['accuracy'].value} {log.stats.model_usage['openai-api/tollgate/core-3'].total_tokens}")
