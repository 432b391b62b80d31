"""What a run starts from, where it is not its module's own values: taken whole and as it is, or refused by name."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import pytest
import torch
from safetensors.torch import save, save_file
from torch import Tensor, nn

from assay.cli.starting import check_start
from assay.engine.runtime.values.state_io import list_roots
from assay.protocol.errors import AssayError, ConfigError, UsageError, UserError
from assay.protocol.trees.state import TrainingList
from assay.sponsor.preparing import prepare_recipe_rounds
from assay.sponsor.publishing import publish
from assay.sponsor.starting import StartValues, check_letters, first_lists, load_start, read_start
from assay.training.recipes.recipe import Recipe
from assay_ledger.store.blobs import open_store
from assay_ledger.store.objects import Objects


class Tied(nn.Module):
    """An embedding whose weight is the head's, statistics, and a mask that no step changes."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(6, 4)
        self.norm = nn.BatchNorm1d(4)
        self.head = nn.Linear(4, 6, bias=False)
        self.head.weight = self.table.weight
        self.register_buffer("mask", torch.tensor([0.0, float("-inf")]))

    def forward(self, rows: Tensor) -> Tensor:
        return self.head(self.norm(self.table(rows)))


def values(**changes: Tensor | None) -> dict[str, Tensor]:
    """The tensors of a file of that module, other than its own, with some changed or, where None, left out."""
    torch.manual_seed(3)
    module = Tied()
    with torch.no_grad():
        module.norm.running_mean.fill_(0.5)
        module.norm.num_batches_tracked.fill_(7)
    found = {name: t.clone() for name, t in module.state_dict().items()} | changes
    return {name: t for name, t in found.items() if t is not None}


def refusal(tensors: dict[str, Tensor], module: nn.Module | None = None) -> UserError:
    with pytest.raises(UserError) as refused:
        load_start(module or Tied(), StartValues(tensors, "there.safetensors"))
    assert "there.safetensors" in refused.value.message and refused.value.remedy
    return refused.value


def test_a_file_of_the_module_becomes_the_first_state_of_a_run_to_the_last_bit(tmp_path: Path) -> None:
    module, given = Tied(), values()
    given["table.weight"][0, 0] = -0.0
    given["head.weight"] = given["table.weight"].clone()
    save_file(given, tmp_path / "model.safetensors")
    recipe = Recipe(
        module,
        lambda m, x: nn.functional.cross_entropy(m(x[:, 0].long()), x[:, 1].long()),
        torch.optim.SGD(module.parameters(), lr=0.1),
        (torch.arange(64, dtype=torch.int32).reshape(32, 2) % 6,),
        batch_size=4,
    )
    start = read_start(tmp_path / "model.safetensors")
    made = prepare_recipe_rounds(recipe, "own", 2, inner_steps=4, start=start)
    first = dict(zip(made.origin.names, made.parameters, strict=True))
    for name, t in first.items():
        assert torch.equal(t, given[name].to(t.dtype)), name
    assert torch.signbit(first["table.weight"][0, 0]) and int(first["norm.num_batches_tracked"]) == 7
    assert made.momentum == () and made.mapped == ()
    # The charter names its root, and the store gives it to everybody.
    store = open_store(tmp_path / "store")
    publish(store, made)
    assert made.genesis.parameters == list_roots([list(made.parameters)])[0]
    step = made.programs[0]
    specs = [step.specs[k] for k in step.input_nodes[TrainingList.PARAMETERS]]
    assert Objects(store).list(made.genesis.parameters, specs)


def test_tied_copies_may_lie_in_a_file_once_or_twice_but_not_unlike() -> None:
    once, twice = values(**{"head.weight": None}), values()
    for given in (once, twice):
        found = load_start(Tied(), StartValues(given, "there"))
        assert torch.equal(found.tensors["head.weight"], given["table.weight"])
    unlike = refusal(values(**{"head.weight": values()["head.weight"] + 1.0}))
    assert unlike.code == "StartMismatch" and "head.weight" in unlike.message


def test_everything_that_is_missing_besides_or_of_another_shape_is_named() -> None:
    wrong = values(**{"norm.bias": None, "more": torch.ones(1), "norm.weight": torch.ones(5)})
    error = refusal(wrong)
    assert error.code == "StartMismatch"
    for words in ("lacks norm.bias", "has besides more", "norm.weight [5] for [4]"):
        assert words in error.message


def test_a_module_is_left_alone_by_a_state_that_is_refused() -> None:
    module = Tied()
    before = {name: t.clone() for name, t in module.state_dict().items()}
    for changes in ({"norm.bias": None}, {"norm.bias": torch.full((4,), float("nan"))}):
        refusal(values(**changes), module)
    assert all(torch.equal(t, before[name]) for name, t in module.state_dict().items())


def test_names_may_all_have_one_prefix_more_or_less() -> None:
    wrapped = {f"module.{name}": t for name, t in values().items()}
    assert "prefix 'module.'" in load_start(Tied(), StartValues(wrapped, "there")).mapped[0]

    class Outer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = Tied()

    found = load_start(Outer(), StartValues(values(), "there"))
    assert "lack the prefix 'model.'" in found.mapped[0]
    assert torch.equal(found.tensors["model.table.weight"], values()["table.weight"])
    twins = nn.ModuleDict({"a": nn.Linear(2, 2), "b": nn.Linear(2, 2)})
    assert refusal(dict(nn.Linear(2, 2).state_dict()), twins).code == "StartMismatch", "either could be meant"


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64])
def test_floats_of_other_widths_are_taken_where_none_is_rounded_and_it_is_said(dtype: torch.dtype) -> None:
    given = values(**{"norm.bias": torch.tensor([0.5, -1.5, 0.0, 2.0], dtype=dtype)})
    found = load_start(Tied(), StartValues(given, "there"))
    assert found.tensors["norm.bias"].tolist() == [0.5, -1.5, 0.0, 2.0]
    assert found.mapped == (f"1 tensors are {str(dtype)[6:]} there and float32 in the module",)


def test_a_module_of_sixteen_bits_keeps_what_a_file_has_of_it_in_the_run() -> None:
    module = nn.Linear(2, 1, bias=False).to(torch.bfloat16)
    exact = torch.tensor([[0.1, 0.2]])
    found = load_start(module, StartValues({"weight": exact}, "there"))
    (first,), momentum = first_lists(["weight"], [torch.zeros(1, 2)], found)
    assert torch.equal(first, exact) and momentum is None
    assert torch.equal(module.weight, exact.to(torch.bfloat16))


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"norm.bias": torch.full((4,), 0.1, dtype=torch.float64)}, "StartLossy"),
        ({"norm.bias": torch.ones(4, dtype=torch.int32)}, "StartLossy"),
        ({"norm.bias": torch.ones(4, dtype=torch.complex64)}, "StartLossy"),
        ({"norm.num_batches_tracked": torch.tensor(0.5)}, "StartLossy"),
        ({"norm.bias": torch.tensor([0.0, float("nan"), 0.0, 0.0])}, "StartNotFinite"),
        ({"norm.bias": torch.tensor([0.0, float("inf"), 0.0, 0.0])}, "StartNotFinite"),
        ({"norm.bias": torch.tensor([0.0, 1e300, 0.0, 0.0], dtype=torch.float64)}, "StartLossy"),
        ({"mask": torch.tensor([0.0, float("nan")])}, "StartNotFinite"),
    ],
)
def test_what_a_run_would_hold_otherwise_or_could_not_train_is_refused(changes: dict[str, Tensor], code: str) -> None:
    assert refusal(values(**changes)).code == code


def test_momentum_is_taken_under_the_same_names_and_in_the_runs_own_layout() -> None:
    given = values()
    momentum = {"table.weight": torch.full((6, 4), 0.25)}
    found = load_start(Tied(), StartValues(given, "there", momentum))
    first, kept = first_lists(["table.weight"], [torch.zeros(6, 4)], found)
    assert (
        kept is not None
        and torch.equal(kept[0], momentum["table.weight"])
        and torch.equal(first[0], given["table.weight"])
    )
    for names, slots in ((["norm.weight"], [torch.zeros(4)]), (["table.weight"], [torch.zeros(6, 4).to(torch.int32)])):
        with pytest.raises(UserError) as refused:
            first_lists(names, slots, found)
        assert refused.value.code == "StartMismatch" and names[0] in refused.value.message


def test_tokens_that_meant_other_letters_are_refused() -> None:
    check_letters(StartValues({}, "there", letters="ab"), "ab")
    check_letters(StartValues({}, "there"), "ab")
    with pytest.raises(UserError, match="other letters"):
        check_letters(StartValues({}, "there", letters="ba"), "ab")


# --- files


def sharded(folder: Path, **index: object) -> Path:
    """A checkpoint in two files with an index, as transformers writes large ones."""
    folder.mkdir(exist_ok=True)
    names = sorted(values())
    files = {name: f"model-0000{1 + k % 2}-of-00002.safetensors" for k, name in enumerate(names)}
    for file in set(files.values()):
        save_file({n: t.clone() for n, t in values().items() if files[n] == file}, folder / file)
    document = {"metadata": {}, "weight_map": files} | index
    (folder / "model.safetensors.index.json").write_text(json.dumps(document))
    return folder


def test_a_folder_of_a_pretrained_model_is_read_whole(tmp_path: Path) -> None:
    found = read_start(sharded(tmp_path / "two")).tensors
    assert found.keys() == values().keys()
    assert load_start(Tied(), StartValues(found, "two")).mapped == ()
    save_file(values(), tmp_path / "model.safetensors")
    assert read_start(tmp_path).tensors.keys() == found.keys()


def with_header(header: bytes, data: bytes = bytes(8)) -> bytes:
    return struct.pack("<Q", len(header)) + header + data


BAD_FILES: dict[str, bytes] = {
    "empty": b"",
    "text": b"not a file of tensors",
    "long header": struct.pack("<Q", 1 << 60) + b"{}",
    "deep header": with_header(b"[" * 5000),
    "cut": save({"w": torch.ones(4)})[:-1],
    "left over": save({"w": torch.ones(4)}) + b"\0",
    "hole": with_header(b'{"w":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}}'),
    "overlap": with_header(
        b'{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"b":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}}'
    ),
    "shape": with_header(b'{"w":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}}'),
    "beyond": with_header(b'{"w":{"dtype":"F32","shape":[4],"data_offsets":[0,16]}}'),
    "type": with_header(b'{"w":{"dtype":"F33","shape":[2],"data_offsets":[0,8]}}'),
}


@pytest.mark.parametrize("what", BAD_FILES)
def test_bytes_that_are_no_safetensors_file_are_refused_by_name(tmp_path: Path, what: str) -> None:
    file = tmp_path / "bad.safetensors"
    file.write_bytes(BAD_FILES[what])
    with pytest.raises(ConfigError) as refused:
        read_start(file)
    assert refused.value.code == "FileUnreadable" and str(file) in refused.value.message


@pytest.mark.parametrize(
    "index",
    [
        {"weight_map": ["mask"]},
        {"weight_map": {"mask": 3}},
        {"weight_map": {"mask": "model-00001-of-00002.safetensors"}},
        {"weight_map": {"elsewhere": "model-00001-of-00002.safetensors"}},
        {"weight_map": {"mask": "gone.safetensors"}},
    ],
)
def test_an_index_that_does_not_agree_with_its_files_is_refused(tmp_path: Path, index: dict[str, object]) -> None:
    save_file(values(), tmp_path / "model.safetensors")
    with pytest.raises(ConfigError):
        read_start(sharded(tmp_path / "two", **index))


@pytest.mark.parametrize("file", ["../model.safetensors", "/etc/hostname", "deeper/model.safetensors", "."])
def test_an_index_that_leads_elsewhere_is_refused_though_a_whole_model_is_there(tmp_path: Path, file: str) -> None:
    save_file(values(), tmp_path / "model.safetensors")
    with pytest.raises(ConfigError, match="outside of the folder"):
        read_start(sharded(tmp_path / "two", weight_map=dict.fromkeys(values(), file)))


def test_a_folder_without_a_checkpoint_says_what_it_should_hold(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"model\.safetensors"):
        read_start(tmp_path)


# --- as typed


@pytest.mark.parametrize(
    ("start_from", "resume", "code"),
    [
        ("model.safetensors", "0x" + "ab" * 20, "OptionsClash"),
        (None, "model.safetensors", "StartInvalid"),
        ("gone.safetensors", None, "StartInvalid"),
        ("0x" + "ab" * 20 + "@", None, "StartInvalid"),
        ("0x" + "ab" * 20 + "@-1", None, "StartInvalid"),
        ("0x" + "ab" * 19, None, "StartInvalid"),
    ],
)
def test_what_names_no_start_is_refused_before_anything_is_asked(
    start_from: str | None, resume: str | None, code: str
) -> None:
    with pytest.raises(UsageError) as refused:
        check_start(start_from, resume)
    assert refused.value.code == code and isinstance(refused.value, AssayError) and refused.value.remedy


def test_runs_and_generations_are_starts() -> None:
    check_start("0x" + "ab" * 20, None)
    check_start(None, "0x" + "Ab" * 20 + "@12")
    check_start(None, None)
