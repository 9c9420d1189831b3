"""Encodes texts with the official tiktoken and the rank file of the npm package.

python python_tiktoken.py O200K_BASE.json    reads a JSON array of texts, prints one JSON array of token ids a line
"""

import base64
import json
import sys

import tiktoken

with open(sys.argv[1], encoding="utf-8") as file:
    encoder = json.load(file)
_, first, *tokens = encoder["bpe_ranks"].split(" ")
encoding = tiktoken.Encoding(
    name="o200k_base",
    pat_str=encoder["pat_str"],
    mergeable_ranks={base64.b64decode(token): int(first) + index for index, token in enumerate(tokens)},
    special_tokens=encoder["special_tokens"],
)
for text in json.load(sys.stdin):
    print(json.dumps(encoding.encode_ordinary(text)))
