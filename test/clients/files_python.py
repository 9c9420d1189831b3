"""Files of the official Python clients; the setup is JSON on stdin. Prints what each found, as JSON."""

import io
import json
import sys

import anthropic
import openai

SETUP = json.load(sys.stdin)
PDF = bytes.fromhex(SETUP["pdf"])
PIXEL = bytes.fromhex(SETUP["pixel"])


def with_openai(client):
    line = b'{"custom_id": "1"}\n'
    made = client.files.create(
        file=("lines.jsonl", line), purpose="batch", expires_after={"anchor": "created_at", "seconds": 3600}
    )
    assert (made.bytes, made.filename, made.purpose, made.status) == (len(line), "lines.jsonl", "batch", "processed")
    assert made.expires_at - made.created_at == 3600
    assert client.files.wait_for_processing(made.id).id == made.id
    assert client.files.content(made.id).read() == line
    assert [file.id for file in client.files.list(purpose="batch", limit=1)] == [made.id]
    assert client.files.delete(made.id).deleted
    try:
        client.files.retrieve(made.id)
        raise AssertionError("it is still there")
    except openai.NotFoundError:
        pass
    try:
        client.files.create(file=b"x", purpose="fine-tune")
        raise AssertionError("it was taken")
    except openai.BadRequestError as error:
        assert "fine-tune" in str(error)
    image = client.files.create(file=("a.png", io.BytesIO(PIXEL)), purpose="vision")
    pdf = client.files.create(file=("a.pdf", PDF), purpose="user_data")
    content = [
        {"type": "input_text", "text": f"what is it? [[{SETUP['markers']['responses']}]]"},
        {"type": "input_image", "file_id": image.id, "detail": "auto"},
        {"type": "input_file", "file_id": pdf.id},
    ]
    answer = client.responses.create(model="core-3", input=[{"role": "user", "content": content}])
    return answer.output_text


def with_anthropic(client):
    made = client.beta.files.upload(file=("a.pdf", PDF, "application/pdf"), expires_in_seconds=7200)
    assert (made.size_bytes, made.filename, made.mime_type, made.type) == (len(PDF), "a.pdf", "application/pdf", "file")
    image = client.beta.files.upload(file=("a.png", PIXEL, "image/png"))
    assert client.beta.files.retrieve_metadata(made.id).id == made.id
    assert client.beta.files.download(made.id).read() == PDF
    mine = [file.id for file in client.beta.files.list(limit=1)]
    assert mine[:2] == [image.id, made.id], mine
    content = [
        {"type": "image", "source": {"type": "file", "file_id": image.id}},
        {"type": "document", "source": {"type": "file", "file_id": made.id}},
        {"type": "text", "text": f"what is it? [[{SETUP['markers']['messages']}]]"},
    ]
    answer = client.beta.messages.create(
        model="core-3", max_tokens=100, betas=["files-api-2025-04-14"], messages=[{"role": "user", "content": content}]
    )
    assert client.beta.files.delete(made.id).id == made.id
    try:
        client.beta.files.retrieve_metadata(made.id)
        raise AssertionError("it is still there")
    except anthropic.NotFoundError:
        pass
    return answer.content[0].text


print(
    json.dumps(
        [
            with_openai(openai.OpenAI(base_url=SETUP["base"] + "/v1", api_key=SETUP["key"])),
            with_anthropic(anthropic.Anthropic(base_url=SETUP["base"], api_key=SETUP["key"])),
        ]
    )
)
