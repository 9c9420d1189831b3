"""Encodes texts with the official tiktoken and a rank file of the npm package.

python python_tiktoken.py FOLDER/ENCODING.json    reads a JSON array of texts, prints one JSON array of token ids a line
"""

import base64
import json
import pathlib
import sys

import tiktoken

with open(sys.argv[1], encoding="utf-8") as file:
    encoder = json.load(file)
ranks = {}
for line in encoder["bpe_ranks"].split("\n"):
    _, first, *tokens = line.split(" ")
    ranks.update({base64.b64decode(token): int(first) + index for index, token in enumerate(tokens)})
encoding = tiktoken.Encoding(
    name=pathlib.Path(sys.argv[1]).stem,
    pat_str=encoder["pat_str"],
    mergeable_ranks=ranks,
    special_tokens=encoder["special_tokens"],
)
for text in json.load(sys.stdin):
    print(json.dumps(encoding.encode_ordinary(text)))
