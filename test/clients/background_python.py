"""Background responses of the official Python client; the setup is JSON on stdin. Prints how each ended, as JSON."""

import json
import sys
import time

import openai

SETUP = json.load(sys.stdin)
CLIENT = openai.OpenAI(base_url=SETUP["base"], api_key=SETUP["key"])


def begin(marker, **more):
    return CLIENT.responses.create(model="core-3", input=f"hello [[{marker}]]", background=True, **more)


def until(response, statuses):
    while response.status in statuses:
        time.sleep(0.1)
        response = CLIENT.responses.retrieve(response.id)
    return response


polled = until(begin(SETUP["markers"]["slow"][0]), ("queued", "in_progress"))
assert polled.output_text == "tick " * 20, polled.output_text

cursor = None
text = ""
for event in begin(SETUP["markers"]["slow"][1], stream=True):
    cursor = event.sequence_number
    if event.type == "response.created":
        streamed_id = event.response.id
    if event.type == "response.output_text.delta":
        text += event.delta
        if len(text) > 20:
            break
for event in CLIENT.responses.retrieve(streamed_id, stream=True, starting_after=cursor):
    assert event.sequence_number == cursor + 1, (event.sequence_number, cursor)
    cursor = event.sequence_number
    if event.type == "response.output_text.delta":
        text += event.delta
assert text == "tick " * 20, text
streamed = CLIENT.responses.retrieve(streamed_id)

running = until(begin(SETUP["markers"]["endless"]), ("queued",))
assert running.status == "in_progress", running.status
cancelled = CLIENT.responses.cancel(running.id)
print(json.dumps([polled.status, streamed.status, cancelled.status]))
