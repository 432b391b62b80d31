"""A folder of data: tensors for training and validation, the tokenizer, and a card that says where they came from.

    data = open_data("shakespeare")
    Recipe(..., data=data.train, validation=data.validation, tokenizer=data.tokenizer_file)

Tensors are mapped: what a machine does not read takes no memory.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from assay.datasets.sources import digest_of, json_of, reading
from assay.datasets.tokenizers import Tokenizer, check_tokenizer, tokenizer_of
from assay.protocol.errors import UserError

if TYPE_CHECKING:
    from torch import Tensor

FORMAT: Final = "assay data 1"
CARD: Final = "card.json"
TRAIN: Final = "train.safetensors"
VALIDATION: Final = "validation.safetensors"
TOKENIZER: Final = "tokenizer.json"
MAX_DATA_CARD: Final = 1 << 30


@dataclass(frozen=True)
class DataFolder:
    """An opened folder. card: its document. train, validation: tensors as a recipe takes them, in their order."""

    folder: Path
    card: Mapping[str, Any]
    train: tuple[Tensor, ...]
    validation: tuple[Tensor, ...] | None

    @cached_property
    def tokenizer_file(self) -> bytes | None:
        """The exact bytes of the tokenizer's file, as a recipe publishes it. Raises UserError (WrongTokenizer)."""
        said = self.card["tokenizer"]
        if said is None:
            return None
        with reading(self.folder / TOKENIZER) as stream:
            file = stream.read()
        check_tokenizer(file, said["sha256"], str(self.folder / TOKENIZER))
        return file

    @cached_property
    def tokenizer(self) -> Tokenizer | None:
        """The tokenizer that the tokens were made with. Raises ConfigError (PackageMissing), UserError."""
        file = self.tokenizer_file
        return None if file is None else tokenizer_of(file)


def open_data(folder: Path | str, *, tokenizer: str | None = None) -> DataFolder:
    """The data in a folder that `assay data convert` wrote; every file is compared with its digest in the card.

    tokenizer: the SHA-256 that its tokenizer must have, in hex.

    Raises:
        UserError: NoDataFolder, DataUnreadable, DataDamaged, WrongTokenizer.
    """
    folder = Path(folder)
    card = read_data_card(folder)
    for name, digest in card["files"].items():
        with reading(folder / name) as stream:
            found, _ = digest_of(stream)
        if found != digest:
            raise damaged(folder / name, f"its SHA-256 is {found}, not {digest}")
    if tokenizer is not None:
        said = card["tokenizer"]
        if said is None:
            raise UserError(
                f"{folder} holds no tokens, and a tokenizer is asked for.",
                code="WrongTokenizer",
                remedy="Name the folder that was made with this tokenizer.",
            )
        with reading(folder / TOKENIZER) as stream:
            check_tokenizer(stream.read(), tokenizer, str(folder / TOKENIZER))
    train = _tensors(folder / TRAIN, card["tensors"]["train"])
    held_out = card["tensors"]["validation"]
    return DataFolder(folder, card, train, None if held_out is None else _tensors(folder / VALIDATION, held_out))


def read_data_card(folder: Path) -> dict[str, Any]:
    """The card of a folder of data, whose files are not looked at. Raises UserError (NoDataFolder)."""
    try:
        with reading(folder / CARD) as stream:
            card: dict[str, Any] | None = json_of(stream.read(MAX_DATA_CARD))
    except (UserError, ValueError):
        card = None
    if card is None or not _is_card(card):
        raise UserError(
            f"{folder} is no folder of data.",
            code="NoDataFolder",
            remedy="Make one: assay data convert SOURCE --to FOLDER.",
        )
    return card


def check_roots(data: DataFolder) -> None:
    """Whether tensors have the roots that a card names. Raises UserError (DataDamaged).

    Attack: a folder of a stranger's whose card names its files truly, and the roots of data that everybody knows.
    """
    from assay.engine.runtime.values.state_io import root_of

    parts = ((TRAIN, data.train, "train"), (VALIDATION, data.validation or (), "validation"))
    for file, tensors, part in parts:
        for (name, said), tensor in zip((data.card["tensors"][part] or {}).items(), tensors, strict=True):
            if (root := "0x" + root_of(tensor).hex()) != said["root"]:
                raise damaged(data.folder / file, f"the root of {name} is {root}, not {said['root']}")


def _is_card(card: Any) -> bool:
    """Whether a document says all that a card says. Attack: one that names no file, so that none is compared."""
    try:
        train, held_out, tokenizer = card["tensors"]["train"], card["tensors"]["validation"], card["tokenizer"]
        named = {TRAIN: train, VALIDATION: held_out, TOKENIZER: tokenizer}
        texts = [card["kind"], card.get("licence", ""), card.get("creator", ""), *card["files"].values()]
        for tensor in (*train.values(), *(held_out or {}).values()):
            texts += [tensor["dtype"], tensor["root"], str(tensor["shape"])]
        if tokenizer is not None:
            texts += [tokenizer["kind"], tokenizer["sha256"], str(tokenizer["size"])]
        return (
            card["format"] == FORMAT
            and card["files"].keys() == {name for name, what in named.items() if what is not None}
            and isinstance(card["sources"], list)
            and all(isinstance(text, str) and text.isprintable() for text in texts)
        )
    except (AttributeError, KeyError, TypeError):
        return False


def damaged(path: Path, why: str) -> UserError:
    """What is said of a file that its card names otherwise."""
    return UserError(
        f"{path} is not what its card names: {why}.",
        code="DataDamaged",
        remedy="Convert the data again; card and files belong together.",
    )


def _tensors(path: Path, names: Mapping[str, Any]) -> tuple[Tensor, ...]:
    """Mapped, in the card's order."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="pt") as file:
            return tuple(file.get_tensor(name) for name in names)
    except (SafetensorError, OSError, UnicodeEncodeError) as error:
        # Half of a surrogate pair, which JSON can name, is no part of a name.
        raise damaged(path, f"it holds no tensors {', '.join(map(ascii, names))} ({type(error).__name__})") from None
