"""timm: classifiers of images as `timm.create_model` makes them, narrow where the family has a width to choose."""

from collections.abc import Callable
from typing import Any

from assay.training.recipes.recipe import Recipe
from examples.models.listing import add, classify, images, labels, recipe


def pictured(kind: str, size: int = 32, **options: Any) -> Callable[[], Recipe]:
    """A factory of `timm.create_model(kind, num_classes=4, **options)`."""

    def factory() -> Recipe:
        import timm

        return recipe(timm.create_model(kind, num_classes=4, **options).train(), classify, images(size), labels())

    return factory


VIT = {"img_size": 32, "patch_size": 8, "embed_dim": 32, "depth": 2, "num_heads": 4}
MLP = {"img_size": 32}
NARROW = (16, 32, 48, 64)
STAGES = {"depths": (1, 1, 1, 1), "dims": (8, 16, 24, 32)}

for name, kind, size, options in (
    ("resnet18", "resnet18", 32, {"channels": NARROW}),
    ("resnetv2", "resnetv2_18", 32, {"channels": NARROW}),
    ("efficientnet", "test_efficientnet", 32, {}),
    ("mobilenetv3", "mobilenetv3_small_050", 32, {}),
    ("convnext", "convnext_atto", 32, STAGES),
    ("regnetx", "regnetx_002", 32, {}),
    ("densenet", "densenet121", 32, {"growth_rate": 8, "block_config": (2, 2, 2)}),
    ("vgg11", "vgg11", 32, {"mlp_ratio": 1 / 32}),
    ("vit", "vit_tiny_patch16_224", 32, VIT),
    ("eva02", "eva02_tiny_patch14_224", 32, VIT),
    (
        "swin",
        "swin_tiny_patch4_window7_224",
        32,
        {"img_size": 32, "patch_size": 2, "window_size": 4, "embed_dim": 8, "depths": (1, 2), "num_heads": (2, 4)},
    ),
    ("mixer", "mixer_s16_224", 32, MLP),
    ("gmlp", "gmlp_s16_224", 32, MLP),
    ("resmlp", "resmlp_12_224", 32, MLP),
    ("poolformer", "poolformer_s12", 32, {}),
    ("pvt-v2", "pvt_v2_b0", 32, {"depths": (1, 1, 1, 1), "embed_dims": (8, 16, 24, 32), "num_heads": (1, 2, 3, 4)}),
    ("mobilevit", "mobilevit_xxs", 64, {}),
):
    add(f"timm/{name}", pictured(kind, size, **options))
