"""The official Python packages' own calls of batches, to the gateway at argv[1] with the key argv[2]."""

import json
import sys
import time

import anthropic
import openai

url, key = sys.argv[1:]
client = openai.OpenAI(base_url=f"{url}/v1", api_key=key)
lines = [
    {
        "custom_id": f"python-{at}",
        "method": "POST",
        "url": "/v1/chat/completions",
        "body": {"model": "m", "max_tokens": 20, "messages": [{"role": "user", "content": f"python {at}"}]},
    }
    for at in range(20)
]
text = "\n".join(json.dumps(line) for line in lines)
file = client.files.create(file=("in.jsonl", text.encode()), purpose="batch")
batch = client.batches.create(input_file_id=file.id, endpoint="/v1/chat/completions", completion_window="24h")
while batch.status not in ("completed", "failed", "expired", "cancelled"):
    time.sleep(0.1)
    batch = client.batches.retrieve(batch.id)
answers = [json.loads(line) for line in client.files.content(batch.output_file_id).text.splitlines()]
found = any(each.id == batch.id for each in client.batches.list(limit=1))

other = anthropic.Anthropic(base_url=url, api_key=key)
params = {"model": "m", "max_tokens": 20, "messages": [{"role": "user", "content": "hey"}]}
messages = other.messages.batches.create(requests=[{"custom_id": "one", "params": params}])
while messages.processing_status != "ended":
    time.sleep(0.1)
    messages = other.messages.batches.retrieve(messages.id)
results = [(each.custom_id, each.result.type) for each in other.messages.batches.results(messages.id)]
print(
    json.dumps(
        {
            "status": batch.status,
            "completed": batch.request_counts.completed,
            "answers": sorted(answer["custom_id"] for answer in answers) == sorted(line["custom_id"] for line in lines),
            "found": found,
            "results": results,
            "deleted": other.messages.batches.delete(messages.id).type,
        }
    )
)
