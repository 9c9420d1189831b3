"""Writes the tiny model, a Qwen3 in a GGUF file, in the form that engines for Hugging Face models read.

python weights_of_gguf.py MODEL.gguf FOLDER
"""

import json
import sys
from pathlib import Path

import numpy as np
import torch
from gguf import GGUFReader
from safetensors.torch import save_file
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers

reader = GGUFReader(sys.argv[1])
folder = Path(sys.argv[2])
folder.mkdir(parents=True, exist_ok=True)


def field(name):
    return reader.fields[name].contents()


def write(name, value):
    (folder / name).write_text(json.dumps(value))


layer_names = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "attn_q_norm": "self_attn.q_norm",
    "attn_k_norm": "self_attn.k_norm",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
weights = {}
for tensor in reader.tensors:
    shape = [int(size) for size in reversed(tensor.shape)]
    values = torch.from_numpy(np.array(tensor.data, dtype=np.float32).reshape(shape).copy())
    if tensor.name == "token_embd.weight":
        name = "model.embed_tokens.weight"
    elif tensor.name == "output_norm.weight":
        name = "model.norm.weight"
    else:
        _, layer, part, _ = tensor.name.split(".")
        name = f"model.layers.{layer}.{layer_names[part]}.weight"
    weights[name] = values
save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})

tokens = field("tokenizer.ggml.tokens")
merges = field("tokenizer.ggml.merges")
control, user_defined = 3, 4  # kinds of tokens in the file
special = [(i, tokens[i], kind) for i, kind in enumerate(field("tokenizer.ggml.token_type")) if kind != 1]
end_of_turn = tokens.index("<|im_end|>")
end_of_text = tokens.index("<|endoftext|>")
heads, key_value_heads = field("qwen3.attention.head_count"), field("qwen3.attention.head_count_kv")
embedding = weights["model.embed_tokens.weight"]

write(
    "config.json",
    {
        "architectures": ["Qwen3ForCausalLM"],
        "model_type": "qwen3",
        "hidden_size": embedding.shape[1],
        "intermediate_size": weights["model.layers.0.mlp.gate_proj.weight"].shape[0],
        "num_hidden_layers": field("qwen3.block_count"),
        "num_attention_heads": heads,
        "num_key_value_heads": key_value_heads,
        "head_dim": weights["model.layers.0.self_attn.q_norm.weight"].shape[0],
        "vocab_size": embedding.shape[0],
        "max_position_embeddings": field("qwen3.context_length"),
        "rms_norm_eps": 1e-6,
        "rope_theta": 10000.0,
        "tie_word_embeddings": True,
        "hidden_act": "silu",
        "attention_bias": False,
        "attention_dropout": 0.0,
        "bos_token_id": end_of_text,
        "eos_token_id": end_of_turn,
        "pad_token_id": end_of_text,
        "torch_dtype": "float32",
        "use_cache": True,
    },
)
ends = {"bos_token_id": end_of_text, "eos_token_id": [end_of_turn, end_of_text], "pad_token_id": end_of_text}
write("generation_config.json", {**ends, "do_sample": False})

tokenizer = Tokenizer(
    models.BPE(
        vocab={token: i for i, token in enumerate(tokens)},
        merges=[tuple(merge.split(" ", 1)) for merge in merges],
        byte_fallback=False,
    )
)
pieces = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
    [
        pre_tokenizers.Split(Regex(pieces), "isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
    ]
)
tokenizer.decoder = decoders.ByteLevel()
tokenizer.add_special_tokens([AddedToken(t, special=True, normalized=False) for _, t, kind in special if kind == control])
tokenizer.add_tokens([AddedToken(t, special=False, normalized=False) for _, t, kind in special if kind == user_defined])
tokenizer.save(str(folder / "tokenizer.json"))
write(
    "tokenizer_config.json",
    {
        "tokenizer_class": "Qwen2Tokenizer",
        "model_max_length": field("qwen3.context_length"),
        "eos_token": tokens[end_of_turn],
        "pad_token": tokens[end_of_text],
        "bos_token": None,
        "clean_up_tokenization_spaces": False,
        "chat_template": field("tokenizer.chat_template"),
        "added_tokens_decoder": {
            str(i): {
                "content": token,
                "lstrip": False,
                "rstrip": False,
                "normalized": False,
                "single_word": False,
                "special": kind == control,
            }
            for i, token, kind in special
        },
    },
)
(folder / "merges.txt").write_text("#version: 0.2\n" + "\n".join(merges) + "\n")
write("vocab.json", {token: i for i, token in enumerate(tokens)})
