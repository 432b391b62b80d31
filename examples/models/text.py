"""transformers: language models that predict the next token, by their own loss."""

from collections.abc import Callable
from typing import Any

from torch import Tensor, nn

from assay.training.recipes.recipe import Recipe
from examples.models.listing import add, recipe, tokens

SMALL = {
    "vocab_size": 64,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "max_position_embeddings": 64,
}
GROUPED = SMALL | {"num_key_value_heads": 2}
PADS = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}


def next_token(module: nn.Module, ids: Tensor) -> Tensor:
    """The model's own loss of each token given those before."""
    return module(input_ids=ids, labels=ids).loss


def causal(kind: str, head: str = "ForCausalLM", config: str = "", **options: Any) -> Callable[[], Recipe]:
    """A factory of `KINDConfig(**options)`, or of another config, and `KIND` with a head."""

    def factory() -> Recipe:
        import transformers

        made = getattr(transformers, config or f"{kind}Config")(**options)
        return recipe(getattr(transformers, kind + head)(made).train(), next_token, tokens())

    return factory


GPT2 = {"vocab_size": 64, "n_positions": 64, "n_embd": 32, "n_layer": 2, "n_head": 4} | PADS
MLA = {"q_lora_rank": 16, "kv_lora_rank": 16, "qk_rope_head_dim": 8, "qk_nope_head_dim": 8, "v_head_dim": 8}
EXPERTS = {"moe_intermediate_size": 16, "num_experts_per_tok": 2}

for name, kind, options in (
    ("gpt2", "GPT2", GPT2),
    (
        "gpt-neo",
        "GPTNeo",
        SMALL | PADS | {"num_layers": 2, "num_heads": 4, "attention_types": [[["global", "local"], 1]]},
    ),
    ("gpt-j", "GPTJ", GPT2 | {"rotary_dim": 4}),
    ("gpt-neox", "GPTNeoX", SMALL | PADS),
    ("gpt-bigcode", "GPTBigCode", GPT2),
    ("codegen", "CodeGen", GPT2 | {"rotary_dim": 4}),
    ("llama", "Llama", GROUPED | PADS),
    ("mistral", "Mistral", GROUPED | PADS | {"sliding_window": 8}),
    ("qwen2", "Qwen2", GROUPED | PADS),
    ("qwen3", "Qwen3", GROUPED | PADS | {"head_dim": 8}),
    ("gemma", "Gemma", GROUPED | PADS | {"head_dim": 8}),
    ("gemma2", "Gemma2", GROUPED | PADS | {"head_dim": 8, "sliding_window": 8}),
    ("gemma3", "Gemma3", GROUPED | PADS | {"config": "Gemma3TextConfig", "head_dim": 8, "sliding_window": 8}),
    ("phi", "Phi", SMALL | PADS),
    ("phi3", "Phi3", GROUPED | PADS),
    ("stablelm", "StableLm", GROUPED | PADS),
    ("olmo2", "Olmo2", GROUPED | PADS),
    ("granite", "Granite", GROUPED | PADS),
    ("cohere", "Cohere", GROUPED | PADS),
    ("starcoder2", "Starcoder2", GROUPED | PADS),
    ("smollm3", "SmolLM3", GROUPED | PADS),
    ("falcon", "Falcon", SMALL | PADS),
    ("bloom", "Bloom", {"vocab_size": 64, "hidden_size": 32, "n_layer": 2, "n_head": 4} | PADS),
    ("opt", "OPT", SMALL | PADS | {"ffn_dim": 48, "word_embed_proj_dim": 32}),
    ("mpt", "Mpt", {"vocab_size": 64, "d_model": 32, "n_layers": 2, "n_heads": 4, "max_seq_len": 64}),
    ("mixtral", "Mixtral", GROUPED | PADS | {"num_local_experts": 4}),
    ("qwen2-moe", "Qwen2Moe", GROUPED | PADS | EXPERTS | {"num_experts": 4, "shared_expert_intermediate_size": 16}),
    ("qwen3-moe", "Qwen3Moe", GROUPED | PADS | EXPERTS | {"num_experts": 4, "head_dim": 8}),
    ("olmoe", "Olmoe", GROUPED | PADS | {"num_experts": 4, "num_experts_per_tok": 2}),
    (
        "deepseek-v3",
        "DeepseekV3",
        SMALL
        | PADS
        | MLA
        | EXPERTS
        | {"num_key_value_heads": 4, "n_routed_experts": 4, "n_group": 2, "topk_group": 1, "first_k_dense_replace": 1},
    ),
    ("mamba", "Mamba", {"vocab_size": 64, "hidden_size": 32, "num_hidden_layers": 2, "state_size": 8} | PADS),
    (
        "mamba2",
        "Mamba2",
        PADS
        | {"vocab_size": 64, "hidden_size": 32, "num_hidden_layers": 2, "state_size": 8, "num_heads": 4, "head_dim": 16}
        | {"n_groups": 2, "chunk_size": 8},
    ),
    ("rwkv", "Rwkv", {"vocab_size": 64, "hidden_size": 32, "num_hidden_layers": 2, "context_length": 32} | PADS),
    (
        "recurrent-gemma",
        "RecurrentGemma",
        GROUPED | PADS | {"num_hidden_layers": 3, "lru_width": 32, "attention_window_size": 8},
    ),
):
    add(f"transformers/{name}", causal(kind, "LMHeadModel" if kind == "GPT2" else "ForCausalLM", **options))
