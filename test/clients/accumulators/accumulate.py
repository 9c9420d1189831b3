"""Python clients that put a chat stream together. Arguments: base address, model. The key is in KEY; see accumulators.test.ts."""

import os
import sys

BASE_URL, MODEL = sys.argv[1:]
KEY = os.environ["KEY"]
os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "true"
WEATHER = {"type": "function", "function": {"name": "get_weather", "parameters": {"type": "object", "properties": {}}}}


def asked(form, script):
    """The messages, and what else a request of that form has."""
    more = {"stream_options": {"include_usage": True}} if form == "apart" else {}
    if script == "one-tool":
        more["tools"] = [WEATHER]
    return [{"role": "user", "content": f"hello [[{script}]]"}], more


def openai_python(form, script):
    import openai

    messages, more = asked(form, script)
    client = openai.OpenAI(base_url=BASE_URL, api_key=KEY, max_retries=0)
    with client.chat.completions.stream(model=MODEL, messages=messages, **more) as stream:
        whole = stream.get_final_completion()
    [choice] = whole.choices
    return choice.message.content, choice.finish_reason, choice.message.tool_calls, whole.usage.total_tokens


def naive_loop(form, script):
    import openai

    messages, more = asked(form, script)
    client = openai.OpenAI(base_url=BASE_URL, api_key=KEY, max_retries=0)
    text, finish, calls, usage = "", None, set(), None
    for chunk in client.chat.completions.create(model=MODEL, messages=messages, stream=True, **more):
        if form == "apart" and not chunk.choices:
            usage = chunk.usage
            continue
        delta = chunk.choices[0].delta
        text += delta.content or ""
        calls |= {call.index for call in delta.tool_calls or []}
        finish = chunk.choices[0].finish_reason or finish
        usage = chunk.usage or usage
    return text, finish, calls, usage.total_tokens


def langchain(form, script):
    from langchain_openai import ChatOpenAI

    messages, _ = asked(form, script)
    model = ChatOpenAI(base_url=BASE_URL, api_key=KEY, model=MODEL, max_retries=0, stream_usage=form == "apart")
    if script == "one-tool":
        model = model.bind_tools([WEATHER])
    whole = None
    for chunk in model.stream(messages):
        whole = chunk if whole is None else whole + chunk
    finish = whole.response_metadata["finish_reason"]
    return whole.content, finish, whole.tool_calls, whole.usage_metadata["total_tokens"]


def llama_index(form, script):
    from llama_index.core.llms import ChatMessage
    from llama_index.llms.openai_like import OpenAILike

    messages, more = asked(form, script)
    model = OpenAILike(api_base=BASE_URL, api_key=KEY, model=MODEL, max_retries=0, is_chat_model=True)
    chunks = list(model.stream_chat([ChatMessage(**message) for message in messages], **more))
    message = chunks[-1].message
    finishes = [choice.finish_reason for chunk in chunks for choice in chunk.raw.choices if choice.finish_reason]
    return message.content, finishes[0], message.additional_kwargs.get("tool_calls"), chunks[-1].raw.usage.total_tokens


def lite_llm(form, script):
    import litellm

    messages, more = asked(form, script)
    chunks = litellm.completion(
        model=f"openai/{MODEL}", api_base=BASE_URL, api_key=KEY, num_retries=0, messages=messages, stream=True, **more
    )
    whole = litellm.stream_chunk_builder(list(chunks))
    [choice] = whole.choices
    return choice.message.content, choice.finish_reason, choice.message.tool_calls, whole.usage.total_tokens


CLIENTS = {
    "openai-python": openai_python,
    "naive loop": naive_loop,
    "langchain": langchain,
    "llama-index": llama_index,
    "litellm": lite_llm,
}

for form in ("default", "apart"):
    for script in ("text", "one-tool"):
        for name, run in CLIENTS.items():
            try:
                text, finish, calls, tokens = run(form, script)
                said = f"{text or ''}|{finish}|{len(calls or [])}|{tokens}"
            except Exception as error:
                said = repr(error)
            print(f"{name} {form} {script}: {said}", flush=True)
