"""torchvision: its models of images, maps and films, small where their builders allow it."""

import importlib
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from assay.training.recipes.recipe import Recipe
from examples.models.listing import EXAMPLES, add, classify, entry, images, labels, recipe


def vision() -> Any:
    """torchvision's models, beside a torch of any build.

    torchvision's wheels are built for one build of torch each. Where the two differ its own operators are missing, and
    it does not import until they are at least declared; no model of the list calls one.
    """
    for name, schema in (
        ("nms", "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"),
        ("qnms", "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"),
    ):
        try:
            importlib.import_module("torchvision")
            break
        except RuntimeError as error:
            if f"torchvision::{name}" not in str(error):
                raise
            torch.library.define(f"torchvision::{name}", schema)
    return importlib.import_module("torchvision").models


def pictured(kind: str, size: int = 32, **options: Any) -> Callable[[], Recipe]:
    """A factory of `torchvision.models.KIND(num_classes=4, **options)`."""

    def factory() -> Recipe:
        model = getattr(vision(), kind)(weights=None, num_classes=4, **options)
        return recipe(model.train(), classify, images(size), labels())

    return factory


for name, size, options in (
    ("alexnet", 64, {}),
    ("resnet18", 32, {}),
    ("resnext50_32x4d", 32, {}),
    ("mobilenet_v2", 32, {"width_mult": 0.35}),
    ("mobilenet_v3_small", 32, {"width_mult": 0.35}),
    ("efficientnet_b0", 32, {}),
    ("densenet121", 32, {}),
    ("squeezenet1_1", 64, {}),
    ("shufflenet_v2_x0_5", 32, {}),
    ("mnasnet0_5", 32, {}),
    ("regnet_y_400mf", 32, {}),
    ("convnext_tiny", 32, {}),
    ("swin_t", 32, {}),
):
    add(f"torchvision/{name}", pictured(name, size, **options))


@entry("torchvision/vgg11_bn")
def vgg() -> Recipe:
    """Convolutions of the oldest kind, under a head of one's own: theirs alone has 120 million parameters."""
    model = vision().vgg11_bn(weights=None)
    model.classifier = nn.Linear(512 * 7 * 7, 4)
    return recipe(model.train(), classify, images(), labels())


@entry("torchvision/vit")
def vit() -> Recipe:
    """The vision transformer."""
    model = vision().VisionTransformer(32, 8, 2, 4, 32, 48, num_classes=4)
    return recipe(model.train(), classify, images(), labels())


def mapped(module: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    """Cross-entropy of every pixel."""
    return F.cross_entropy(module(x)["out"], y)


def maps(kind: str, **options: Any) -> Callable[[], Recipe]:
    """A factory of a model that gives every pixel a class."""

    def factory() -> Recipe:
        model = getattr(vision().segmentation, kind)(weights=None, weights_backbone=None, num_classes=4, **options)
        return recipe(model.train(), mapped, images(), torch.randint(0, 4, (EXAMPLES, 32, 32)))

    return factory


add("torchvision/lraspp", maps("lraspp_mobilenet_v3_large"))
add("torchvision/deeplabv3", maps("deeplabv3_mobilenet_v3_large"))


def helped(module: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    """Cross-entropy of the output and of the auxiliary heads, as GoogLeNet trains."""
    out = module(x)
    return F.cross_entropy(out.logits, y) + 0.3 * (
        F.cross_entropy(out.aux_logits1, y) + F.cross_entropy(out.aux_logits2, y)
    )


@entry("torchvision/googlenet")
def googlenet() -> Recipe:
    """Inception with two auxiliary heads."""
    model = vision().googlenet(weights=None, num_classes=4, init_weights=False)
    return recipe(model.train(), helped, images(64), labels())


@entry("torchvision/r3d")
def r3d() -> Recipe:
    """Films: convolutions in three dimensions."""
    video = vision().video
    stem, block, conv = video.resnet.BasicStem, video.resnet.BasicBlock, video.resnet.Conv3DSimple
    model = video.resnet.VideoResNet(block, [conv] * 4, [1, 1, 1, 1], stem, num_classes=4)
    return recipe(model.train(), classify, torch.randn(EXAMPLES, 3, 4, 16, 16), labels())
