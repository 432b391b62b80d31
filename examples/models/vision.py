"""transformers: models of images, of images with words, of time series and of decisions."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from assay.training.recipes.recipe import Recipe
from examples.models.listing import EXAMPLES, add, entry, images, labels, recipe, tokens

PATCHES = {
    "image_size": 32,
    "patch_size": 8,
    "num_channels": 3,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
}


def seen(module: nn.Module, pixels: Tensor, wanted: Tensor) -> Tensor:
    """Cross-entropy of the model's logits."""
    return F.cross_entropy(module(pixel_values=pixels).logits, wanted)


def sight(kind: str, size: int = 32, **options: Any) -> Callable[[], Recipe]:
    """A factory of a classifier of images."""

    def factory() -> Recipe:
        import transformers

        config = getattr(transformers, f"{kind}Config")(num_labels=4, **options)
        model = getattr(transformers, f"{kind}ForImageClassification")(config).train()
        return recipe(model, seen, images(size), labels())

    return factory


STAGES = {"hidden_sizes": [8, 16, 16, 24], "depths": [1, 1, 1, 1]}
SWIN = {"image_size": 32, "patch_size": 2, "embed_dim": 8, "depths": [1, 2], "num_heads": [2, 4], "window_size": 4}

for name, kind, options in (
    ("vit", "ViT", PATCHES),
    ("deit", "DeiT", PATCHES),
    ("beit", "Beit", PATCHES | {"use_relative_position_bias": True}),
    ("dinov2", "Dinov2", PATCHES | {"mlp_ratio": 2}),
    ("swin", "Swin", SWIN),
    ("swinv2", "Swinv2", SWIN),
    ("convnext", "ConvNext", STAGES),
    ("convnextv2", "ConvNextV2", STAGES),
    ("resnet", "ResNet", {"embedding_size": 8} | STAGES | {"layer_type": "basic"}),
    ("mobilenet-v2", "MobileNetV2", {"depth_multiplier": 0.35}),
    ("segformer", "Segformer", STAGES | {"num_attention_heads": [1, 2, 2, 3], "decoder_hidden_size": 16}),
    (
        "mobilevit",
        "MobileViT",
        {"image_size": 64, "hidden_sizes": [16, 24, 32], "neck_hidden_sizes": [8, 8, 16, 16, 24, 24, 32]},
    ),
):
    add(f"transformers/{name}", sight(kind, options.get("image_size", 32), **options))


def paired(module: nn.Module, ids: Tensor, pixels: Tensor) -> Tensor:
    """The contrastive loss of texts and images, as the model ships it."""
    return module(input_ids=ids, pixel_values=pixels, return_loss=True).loss


def contrastive(kind: str) -> Callable[[], Recipe]:
    """A factory of a model with two towers."""

    def factory() -> Recipe:
        import transformers

        text = {"vocab_size": 64, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2}
        text |= {"num_attention_heads": 4, "max_position_embeddings": 64, "eos_token_id": 2, "projection_size": 32}
        config = getattr(transformers, f"{kind}Config")(
            text_config=text, vision_config=PATCHES | {"projection_size": 32}
        )
        model = getattr(transformers, f"{kind}Model")(config).train()
        return recipe(model, paired, tokens(), images())

    return factory


add("transformers/clip", contrastive("CLIP"))
add("transformers/siglip", contrastive("Siglip"))


def masked(module: nn.Module, pixels: Tensor) -> Tensor:
    """The loss of patches that the model hides from itself."""
    return module(pixel_values=pixels).loss


@entry("transformers/vit-mae")
def vit_mae() -> Recipe:
    """A masked autoencoder: random patches are hidden, chosen by a sort."""
    from transformers import ViTMAEConfig, ViTMAEForPreTraining

    decoder = {"decoder_hidden_size": 32, "decoder_num_hidden_layers": 1, "decoder_num_attention_heads": 4}
    config = ViTMAEConfig(**PATCHES, **decoder, decoder_intermediate_size=48)
    return recipe(ViTMAEForPreTraining(config).train(), masked, images())


def forecast(module: nn.Module, past: Tensor, future: Tensor) -> Tensor:
    """The model's own loss of what follows."""
    return module(past_values=past, future_values=future).loss


@entry("transformers/patchtst")
def patchtst() -> Recipe:
    """Forecasts of time series by patches."""
    from transformers import PatchTSTConfig, PatchTSTForPrediction

    shape = {
        "num_input_channels": 2,
        "context_length": 32,
        "patch_length": 8,
        "patch_stride": 8,
        "prediction_length": 8,
    }
    size = {"d_model": 32, "num_attention_heads": 4, "num_hidden_layers": 2, "ffn_dim": 48}
    model = PatchTSTForPrediction(PatchTSTConfig(**shape, **size)).train()
    return recipe(model, forecast, torch.randn(EXAMPLES, 32, 2), torch.randn(EXAMPLES, 8, 2))


@entry("transformers/patchtsmixer")
def patchtsmixer() -> Recipe:
    """Forecasts of time series by mixing."""
    from transformers import PatchTSMixerConfig, PatchTSMixerForPrediction

    shape = {
        "num_input_channels": 2,
        "context_length": 32,
        "patch_length": 8,
        "patch_stride": 8,
        "prediction_length": 8,
    }
    model = PatchTSMixerForPrediction(PatchTSMixerConfig(**shape, d_model=16, num_layers=2)).train()
    return recipe(model, forecast, torch.randn(EXAMPLES, 32, 2), torch.randn(EXAMPLES, 8, 2))


def acted(module: nn.Module, states: Tensor, actions: Tensor, returns: Tensor) -> Tensor:
    """Mean squared error of the actions."""
    times = torch.arange(8).expand(states.shape[0], 8)
    mask = torch.ones(states.shape[0], 8)
    out = module(
        states=states, actions=actions, rewards=returns, returns_to_go=returns, timesteps=times, attention_mask=mask
    )
    return F.mse_loss(out.action_preds, actions)


@entry("transformers/decision-transformer")
def decision_transformer() -> Recipe:
    """Actions from wished-for returns."""
    from transformers import DecisionTransformerConfig, DecisionTransformerModel

    config = DecisionTransformerConfig(state_dim=5, act_dim=3, hidden_size=32, max_ep_len=16, n_layer=2, n_head=4)
    data = torch.randn(EXAMPLES, 8, 5), torch.randn(EXAMPLES, 8, 3), torch.randn(EXAMPLES, 8, 1)
    return recipe(DecisionTransformerModel(config).train(), acted, *data)


def segmented(module: nn.Module, pixels: Tensor, wanted: Tensor) -> Tensor:
    """The model's own loss of a map of classes."""
    return module(pixel_values=pixels, labels=wanted).loss


@entry("transformers/segformer-maps")
def segformer_maps() -> Recipe:
    """A class for every pixel: bilinear enlargement."""
    from transformers import SegformerConfig, SegformerForSemanticSegmentation

    config = SegformerConfig(num_labels=4, num_attention_heads=[1, 2, 2, 3], decoder_hidden_size=16, **STAGES)
    maps = torch.randint(0, 4, (EXAMPLES, 32, 32))
    return recipe(SegformerForSemanticSegmentation(config).train(), segmented, images(), maps)
