"""transformers: models that fill gaps, encode, or translate, by their own losses."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from assay.training.recipes.recipe import Recipe
from examples.models.listing import EXAMPLES, add, entry, labels, recipe, tokens
from examples.models.text import PADS, SMALL


def filled(module: nn.Module, ids: Tensor, wanted: Tensor) -> Tensor:
    """The model's own loss of the tokens at all places."""
    return module(input_ids=ids, labels=wanted).loss


def translated(module: nn.Module, ids: Tensor, wanted: Tensor) -> Tensor:
    """The model's own loss of a target given a source."""
    return module(input_ids=ids, labels=wanted).loss


def headed(kind: str, head: str, **options: Any) -> Callable[[], Recipe]:
    """A factory of a model with a head that takes `labels`."""

    def factory() -> Recipe:
        import transformers

        config = getattr(transformers, f"{kind}Config")(**options)
        wanted = labels(2) if head == "ForSequenceClassification" else tokens()
        return recipe(getattr(transformers, kind + head)(config).train(), filled, tokens(), wanted)

    return factory


ENCODER = SMALL | {"type_vocab_size": 2}
SEQ2SEQ = {
    "vocab_size": 64,
    "d_model": 32,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 48,
    "decoder_ffn_dim": 48,
    "max_position_embeddings": 64,
    "decoder_start_token_id": 2,
} | PADS
T5 = {
    "vocab_size": 64,
    "d_model": 32,
    "d_kv": 8,
    "d_ff": 48,
    "num_layers": 2,
    "num_heads": 4,
    "decoder_start_token_id": 0,
}
DISTIL = {"vocab_size": 64, "dim": 32, "hidden_dim": 48, "n_layers": 2, "n_heads": 4, "max_position_embeddings": 64}
DEBERTA = {"relative_attention": True, "pos_att_type": ["c2p", "p2c"], "position_buckets": 8, "type_vocab_size": 0}
XLNET = {"vocab_size": 64, "d_model": 32, "n_layer": 2, "n_head": 4, "d_inner": 48}

for name, kind, head, options in (
    ("bert", "Bert", "ForMaskedLM", ENCODER),
    ("bert-classifier", "Bert", "ForSequenceClassification", ENCODER),
    ("roberta", "Roberta", "ForMaskedLM", ENCODER | PADS),
    ("distilbert", "DistilBert", "ForMaskedLM", DISTIL),
    ("albert", "Albert", "ForMaskedLM", ENCODER | {"embedding_size": 16}),
    ("electra", "Electra", "ForMaskedLM", ENCODER | {"embedding_size": 16}),
    ("deberta-v2", "DebertaV2", "ForMaskedLM", SMALL | DEBERTA),
    (
        "modernbert",
        "ModernBert",
        "ForMaskedLM",
        SMALL | PADS | {"local_attention": 8, "cls_token_id": 1, "sep_token_id": 2},
    ),
    (
        "funnel",
        "Funnel",
        "ForMaskedLM",
        {"vocab_size": 64, "d_model": 32, "n_head": 4, "d_head": 8, "d_inner": 48, "block_sizes": [1, 1]},
    ),
    ("fnet", "FNet", "ForMaskedLM", ENCODER),
    ("xlnet", "XLNet", "ForSequenceClassification", XLNET),
    ("longformer", "Longformer", "ForMaskedLM", ENCODER | PADS | {"attention_window": 8}),
    ("big-bird", "BigBird", "ForMaskedLM", ENCODER | {"attention_type": "original_full"}),
):
    stays = "Fourier transform" if name == "fnet" else ""
    add(f"transformers/{name}", headed(kind, head, **options), stays)

for name, kind, options in (
    ("bart", "Bart", SEQ2SEQ),
    ("marian", "Marian", SEQ2SEQ),
    # Layers that are left out by a draw are control flow that depends on values.
    ("m2m100", "M2M100", SEQ2SEQ | {"encoder_layerdrop": 0.0, "decoder_layerdrop": 0.0}),
    ("t5", "T5", T5),
    (
        "switch-transformers",
        "SwitchTransformers",
        T5 | {"num_experts": 2, "num_sparse_encoder_layers": 1, "num_sparse_decoder_layers": 1},
    ),
):
    head = "MTModel" if kind == "Marian" else "ForConditionalGeneration"
    stays = "control flow that depends on values (experts that a batch reaches)" if kind == "SwitchTransformers" else ""
    add(f"transformers/{name}", headed(kind, head, **options), stays)


def heard(module: nn.Module, features: Tensor, wanted: Tensor) -> Tensor:
    """Whisper's own loss of a transcript."""
    return module(input_features=features, labels=wanted).loss


@entry("transformers/whisper")
def whisper() -> Recipe:
    """Speech to text: convolutions, encoder, decoder."""
    from transformers import WhisperConfig, WhisperForConditionalGeneration

    more = {"num_mel_bins": 8, "max_source_positions": 16, "max_target_positions": 32, "suppress_tokens": None}
    config = WhisperConfig(**(SEQ2SEQ | more | {"begin_suppress_tokens": None}))
    model = WhisperForConditionalGeneration(config).train()
    return recipe(model, heard, torch.randn(EXAMPLES, 8, 32), tokens(length=8))


WAVE = {
    "vocab_size": 16,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 48,
    "conv_dim": (16, 16),
    "conv_stride": (5, 2),
    "conv_kernel": (10, 3),
    "num_conv_pos_embeddings": 8,
    "num_conv_pos_embedding_groups": 2,
    "mask_time_prob": 0.0,
    "layerdrop": 0.0,
}


def sounded(module: nn.Module, wave: Tensor, wanted: Tensor) -> Tensor:
    """The model's own loss of a recording."""
    return module(input_values=wave, labels=wanted).loss


def wave(kind: str, head: str, **options: Any) -> Callable[[], Recipe]:
    """A factory of a model of recordings."""

    def factory() -> Recipe:
        import transformers

        config = getattr(transformers, f"{kind}Config")(**(WAVE | options))
        is_ctc = head == "ForCTC"
        wanted = tokens(16, 4, 1) if is_ctc else labels(2)
        model = getattr(transformers, kind + head)(config).train()
        return recipe(model, sounded, torch.randn(EXAMPLES, 320), wanted)

    return factory


add("transformers/wav2vec2", wave("Wav2Vec2", "ForSequenceClassification"))
add(
    "transformers/wav2vec2-ctc", wave("Wav2Vec2", "ForCTC"), "control flow that depends on values (its check of labels)"
)
add("transformers/hubert", wave("Hubert", "ForSequenceClassification"))
