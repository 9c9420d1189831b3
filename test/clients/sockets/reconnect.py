"""A client of openai-python whose gateway dies in the middle of a turn, and that goes on at another by the last stored response.
Arguments: the two base addresses. The key is in KEY. It prints `running` once the turn runs that is to be lost."""

import json
import os
import sys

from openai import OpenAI

LASTS = {"response.completed", "response.failed", "response.incomplete", "error"}
key = os.environ["KEY"]


def until(connection, *types):
    for event in connection:
        if event.type in types:
            return event
    raise RuntimeError("closed before the end")


with OpenAI(base_url=sys.argv[1], api_key=key).responses.connect() as connection:
    connection.response.create(model="core-3", input="hello [[text#lost-gateway]]")
    first = until(connection, *LASTS).response
    connection.response.create(model="core-3", input="[[endless#lost-turn]]", previous_response_id=first.id)
    until(connection, "response.output_text.delta")
    print("running", flush=True)
    try:
        lost = until(connection, *LASTS).type
    except Exception as error:
        lost = type(error).__name__

with OpenAI(base_url=sys.argv[2], api_key=key).responses.connect() as connection:
    connection.response.create(model="core-3", input="and?", previous_response_id=first.id)
    second = until(connection, *LASTS).response
    connection.response.create(model="core-3", input="once more", previous_response_id=second.id, store=False)
    third = until(connection, *LASTS).response
print(json.dumps({"lost": lost, "said": [first.output_text, second.output_text, third.output_text], "follows": second.previous_response_id == first.id}))
