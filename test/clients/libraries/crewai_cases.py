"""CrewAI through what people do with it, over each dialect that it speaks. Argument: the gateway's address. The keys are in KEY and
POOR. Each line is a case and what came of it; see ../libraries.test.ts."""

import logging
import os
import sys

os.environ.update(CREWAI_DISABLE_TELEMETRY="true", OTEL_SDK_DISABLED="true", CREWAI_TRACING_ENABLED="false")

from crewai import LLM, Agent, Crew, Task  # noqa: E402
from crewai.tools import tool  # noqa: E402
from pydantic import BaseModel  # noqa: E402

logging.disable(logging.CRITICAL)
url = sys.argv[1]
said = os.fdopen(os.dup(1), "w")
sys.stdout = open(os.devnull, "w")  # its own panels


class Book(BaseModel):
    title: str
    year: int


@tool("get_weather")
def get_weather(city: str) -> str:
    """The weather of a city."""
    return "sunny in " + city


def case(name, run):
    try:
        value = str(run())
    except Exception as error:
        value = f"ERROR {type(error).__name__} {error}".replace("\n", " ")
    print(f"{name}: {value}", file=said, flush=True)


dialects = {
    "chat": {"model": "openai/core-3", "base_url": f"{url}/v1"},
    "responses": {"model": "openai/core-3", "base_url": f"{url}/v1", "api": "responses"},
    "messages": {"model": "core-3", "provider": "anthropic", "base_url": url},
}
for dialect, where in dialects.items():

    def script(name, of=dialect):
        return f"[[{name}#crewai-{of}]]"

    def llm(key=os.environ["KEY"], where=where, **options):
        return LLM(**where, api_key=key, **options)

    def crew(name, llm=llm, script=script, **options):
        agent = Agent(role="r", goal="g", backstory="b", llm=llm(**options), tools=[get_weather], max_iter=3)
        task = Task(description=script(name), expected_output="text", agent=agent)
        return Crew(agents=[agent], tasks=[task]).kickoff()

    case(f"{dialect} text", lambda: llm().call(script("reasoning-text")))
    case(f"{dialect} stream", lambda: llm(stream=True).call(script("text")))
    case(f"{dialect} tools", lambda: crew("one-tool").raw)
    case(f"{dialect} tools stream", lambda: crew("parallel-tools", stream=True).raw)
    case(f"{dialect} object", lambda: llm().call(script("json-tool" if dialect == "messages" else "json"), response_model=Book))
    case(f"{dialect} key", lambda: llm("wrong").call("x"))
    case(f"{dialect} balance", lambda: llm(os.environ["POOR"], max_tokens=60_000).call("x"))
    case(f"{dialect} context", lambda: llm().call(script("prompt-too-long")))
    case(f"{dialect} failed", lambda: llm(stream=True).call(script("error-mid-stream")))
    case(f"{dialect} flood", lambda: llm(max_retries=0).call(script("status-429")))
said.flush()
os._exit(0)
