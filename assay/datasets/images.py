"""Folders of images, a folder a class, as u8 [N, C, H, W] and the classes' numbers."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from assay.datasets.examples import ExampleFiles
from assay.datasets.sources import SourceFile, lacking, reading, unreadable
from assay.protocol.errors import UserError
from assay.protocol.types import DType

MAX_SIDE: Final = 1 << 14
"""Pixels."""

FORMATS: Final = ("PNG", "JPEG", "BMP", "GIF", "WEBP", "PPM")
"""Attack: PostScript that is called a picture, which Pillow has Ghostscript run; and decoders that nobody needs."""

MOST: Final = (1 << 8) - 1
"""Of a channel."""

_MODES: Final = ("1", "L", "LA", "P", "RGB", "RGBA")
"""Of 8 bits a channel, or fewer; what is wider would lose its low bits without a word."""


@dataclass(frozen=True, slots=True)
class ImageForm:
    """What every image is brought to. size: height and width in pixels, as the images are where it is None."""

    size: tuple[int, int] | None = None
    is_gray: bool = False

    @property
    def channels(self) -> int:
        """C."""
        return 1 if self.is_gray else 3


AS_THEY_ARE: Final = ImageForm()


def classes_of(files: Sequence[SourceFile]) -> list[str]:
    """The folders that images lie in, by the bytes of their names: the place of each is its number.

    Raises UserError (NoClass): an image lies in no folder of a class.
    """
    for file in files:
        if "/" not in file.name:
            raise UserError(
                f"{file.path} lies in no folder of a class.",
                code="NoClass",
                remedy="Give a folder that holds one folder for each class, and images in these.",
            )
    return sorted({file.name.split("/")[0] for file in files}, key=os.fsencode)


def write_images(folder: Path, files: Sequence[SourceFile], form: ImageForm, percent: int) -> ExampleFiles:
    """Images and labels; of each class the same share is held out.

    Raises ConfigError (PackageMissing), UserError (NoClass, DataUnreadable, ImageSize, ImageMode).
    """
    numbers = {name: k for k, name in enumerate(classes_of(files))}
    made = ExampleFiles(folder, ("images", "labels"), percent)
    first: tuple[SourceFile, tuple[int, ...]] | None = None
    for file in files:
        pixels = _pixels(file.path, form)
        if first is None:
            first = file, pixels.shape
            made.open([DType.U8, DType.U8 if len(numbers) <= 1 << 8 else DType.I32], [pixels.shape, ()])
        if pixels.shape != first[1]:
            raise UserError(
                f"{file.path} has {_size(pixels.shape)} pixels, {first[0].path} {_size(first[1])}.",
                code="ImageSize",
                remedy="Scale them all: --size HEIGHTxWIDTH.",
            )
        number = numbers[file.name.split("/")[0]]
        made.append((pixels, number), kind=number)
    made.close()
    return made


def decoder() -> str:
    """Name and version of what decodes images. Raises ConfigError (PackageMissing)."""
    return f"Pillow {_pillow().__version__}"


def _pixels(path: Path, form: ImageForm) -> npt.NDArray[np.uint8]:
    """u8 [C, H, W]."""
    pillow = _pillow()
    with reading(path) as stream:
        try:
            with warnings.catch_warnings():
                # Attack: a few kilobytes that unpack to gigabytes.
                warnings.simplefilter("error", pillow.DecompressionBombWarning)
                with pillow.open(stream, formats=FORMATS) as image:
                    if image.mode not in _MODES or _is_wide(image):
                        raise UserError(
                            f"{path} has pixels of the kind {image.mode}, wider than 8 bits or no colours of a screen.",
                            code="ImageMode",
                            remedy="Save it with 8 bits a channel, in gray or RGB.",
                        )
                    whole = image.convert("RGB").convert("L" if form.is_gray else "RGB")
                    if form.size is not None and whole.size != form.size[::-1]:
                        whole = whole.resize(form.size[::-1], pillow.Resampling.BILINEAR)
                    found = np.asarray(whole, dtype=np.uint8)
        except UserError:
            raise
        except Exception as error:  # decoders raise whatever a damaged file leads them to
            why = f"it is no whole image of {', '.join(FORMATS)} ({type(error).__name__})"
            raise unreadable(path, why) from None
    return found[None] if form.is_gray else np.ascontiguousarray(found.transpose(2, 0, 1))


def _is_wide(image: Any) -> bool:
    """Whether an image has 16 bits a channel, of which Pillow drops the lower 8 where there are several channels."""
    for codec, _, _, form in image.tile:
        if (codec == "zip" and str(form).endswith(";16B")) or (codec.startswith("ppm") and form[1] > MOST):
            return True
    return False


def _pillow() -> Any:
    try:
        from PIL import Image  # type: ignore[import-not-found, import-untyped, unused-ignore]
    except ImportError:
        raise lacking("pillow", "Images") from None
    return Image


def _size(shape: Sequence[int]) -> str:
    return f"{shape[1]}x{shape[2]}"
