"""Images and files by address and inline, sent by the official Python clients; the setup is JSON on stdin.

Prints the three answers as JSON.
"""

import json
import sys

import anthropic
import openai

SETUP = json.load(sys.stdin)
MODEL = "core-3"
IMAGE_URL = "data:image/png;base64," + SETUP["pixelBase64"]
PDF_URL = "data:application/pdf;base64," + SETUP["pdfBase64"]


def question(way):
    return f"what is it? [[{SETUP['markers'][way]}]]"


def chat(client):
    content = [
        {"type": "text", "text": question("chat")},
        {"type": "image_url", "image_url": {"url": SETUP["imageAddress"]}},
        {"type": "image_url", "image_url": {"url": IMAGE_URL}},
        {"type": "file", "file": {"filename": "a.pdf", "file_data": PDF_URL}},
    ]
    reply = client.chat.completions.create(model=MODEL, messages=[{"role": "user", "content": content}])
    return reply.choices[0].message.content


def responses(client):
    content = [
        {"type": "input_text", "text": question("responses")},
        {"type": "input_image", "image_url": SETUP["imageAddress"], "detail": "auto"},
        {"type": "input_image", "image_url": IMAGE_URL, "detail": "auto"},
        {"type": "input_file", "filename": "a.pdf", "file_data": PDF_URL},
        {"type": "input_file", "file_url": SETUP["pdfAddress"]},
    ]
    return client.responses.create(model=MODEL, input=[{"role": "user", "content": content}]).output_text


def messages(client):
    pixel = {"type": "base64", "media_type": "image/png", "data": SETUP["pixelBase64"]}
    pdf = {"type": "base64", "media_type": "application/pdf", "data": SETUP["pdfBase64"]}
    content = [
        {"type": "image", "source": {"type": "url", "url": SETUP["imageAddress"]}},
        {"type": "image", "source": pixel},
        {"type": "document", "source": {"type": "url", "url": SETUP["pdfAddress"]}},
        {"type": "document", "source": pdf, "citations": {"enabled": True}},
        {"type": "text", "text": question("messages")},
    ]
    reply = client.messages.create(model=MODEL, max_tokens=100, messages=[{"role": "user", "content": content}])
    return reply.content[0].text


openai_client = openai.OpenAI(base_url=SETUP["base"] + "/v1", api_key=SETUP["key"])
anthropic_client = anthropic.Anthropic(base_url=SETUP["base"], api_key=SETUP["key"])
print(json.dumps([chat(openai_client), responses(openai_client), messages(anthropic_client)]))
