"""The drawing of the house holds, and what stands against it is named."""

import ast
from pathlib import Path

from tools import check_layout, house

IMPURE = {
    *("torch", "web3", "numpy", "scipy", "requests", "httpx", "obstore", "safetensors", "sqlalchemy"),
    *("io", "os", "pathlib", "shutil", "socket", "subprocess", "tempfile", "threading", "asyncio", "urllib"),
    *("time", "datetime", "random", "secrets", "uuid", "logging", "multiprocessing"),
}
"""What the pure rules may not touch: the outside world, the clock, chance, and the heavy libraries."""


def tree(folder: Path, **sources: str) -> Path:
    """A tree of packages with these modules: `assay__protocol__types` is assay/protocol/types.py."""
    for package, where in house.PACKAGES.items():
        write(folder / where / package / "__init__.py", "")
    for name, text in sources.items():
        *rooms, leaf = name.split("__")
        top = folder / house.PACKAGES[rooms[0]]
        for k in range(len(rooms)):
            write(top.joinpath(*rooms[: k + 1], "__init__.py"), "")
        write(top.joinpath(*rooms, leaf + ".py"), text)
    return folder


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if text or not path.exists():
        path.write_text(text)


def upward(folder: Path) -> list[str]:
    """The complaints about arrows, those about rooms that this small tree lacks left out."""
    return [what for what in house.upward_arrows(house.modules(folder)) if "has no modules" not in what]


def test_the_house_stands_as_it_is_drawn() -> None:
    found = house.modules()
    assert len(found) > 300
    assert house.second_names() == []
    assert house.upward_arrows(found) == []
    assert house.cycles(found) == []
    assert house.large_files(check_layout.files(*check_layout.SOURCES)) == []


def test_an_import_from_a_room_above_is_named(tmp_path: Path) -> None:
    up = tree(tmp_path, assay__protocol__types="def f():\n    from assay.engine import ops\n", assay__engine__ops="")
    assert upward(up) == ["assay.protocol.types imports assay.engine.ops, which stands above it"]


def test_imports_downward_and_inside_a_room_are_free(tmp_path: Path) -> None:
    down = tree(
        tmp_path,
        assay__protocol__types="",
        assay__protocol__errors="from assay.protocol import types\n",
        assay__engine__ops="from assay.protocol.types import x\n",
        assay_ledger__chain__client="from assay.engine import ops\n",
    )
    assert upward(down) == []


def test_an_import_for_types_alone_is_an_arrow_too(tmp_path: Path) -> None:
    text = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from assay_solver.agent import A\n"
    found = upward(tree(tmp_path, assay_ledger__chain__client=text, assay_solver__agent=""))
    assert found == ["assay_ledger.chain.client imports assay_solver.agent, which stands above it"]


def test_a_relative_import_is_followed(tmp_path: Path) -> None:
    found = upward(tree(tmp_path, assay__protocol__game__moves="from ...engine import ops\n", assay__engine__ops=""))
    assert found == ["assay.protocol.game.moves imports assay.engine.ops, which stands above it"]


def test_a_role_that_imports_another_roles_code_is_named(tmp_path: Path) -> None:
    made = tree(
        tmp_path,
        assay_solver__strategy="",
        assay_verifier__agent="from assay_solver import strategy\n",
        assay_verifier__attesting="",
        assay_whistleblower__agent="from assay_verifier import attesting\n",
    )
    assert upward(made) == ["assay_verifier.agent imports assay_solver.strategy, which it must not know"]


def test_a_room_that_is_not_drawn_and_one_without_modules_are_named(tmp_path: Path) -> None:
    found = house.upward_arrows(house.modules(tree(tmp_path, assay__attic__old="")))
    assert "assay.attic is no room of tools/house.py: say there on which floor it stands" in found
    assert "assay.cli of tools/house.py has no modules" in found


def test_modules_that_import_each_other_in_a_ring_are_named_and_no_others(tmp_path: Path) -> None:
    ring = tree(
        tmp_path,
        assay__cli__a="from assay.cli.b import x\n",
        assay__cli__b="from assay.cli import c\n",
        assay__cli__c="import assay.cli.a\nfrom assay.cli import below\n",
        assay__cli__below="",
        assay__cli__above="from assay.cli import a\n",
    )
    assert house.cycles(house.modules(ring)) == [
        "these modules import each other: assay.cli.a, assay.cli.b, assay.cli.c"
    ]


def test_a_link_and_a_folder_without_a_face_are_second_names(tmp_path: Path) -> None:
    made = tree(tmp_path, assay__protocol__types="")
    assert house.second_names(made) == []
    (made / "assay" / "copy").symlink_to("protocol")
    write(made / "ledger" / "assay_ledger" / "room" / "x.py", "x = 1\n")
    assert house.second_names(made) == [
        "assay/copy is a link: a module has one path",
        "ledger/assay_ledger/room has modules and no __init__.py",
    ]


def test_a_source_file_of_the_most_lines_passes_and_one_more_does_not(tmp_path: Path) -> None:
    sizes = {"fits.py": house.LINES, "tests/large.py": house.LINES + 1, "large.sol": house.LINES + 1}
    for name, lines in sizes.items():
        write(tmp_path / name, "x = 1\n" * lines)
    assert house.large_files(map(tmp_path.joinpath, sizes), tmp_path) == [
        f"tests/large.py has {house.LINES + 1} lines, above {house.LINES}: split it",
        f"large.sol has {house.LINES + 1} lines, above {house.LINES}: split it",
    ]


def test_the_pure_rules_import_no_outside_world() -> None:

    paths = sorted((house.ROOT / "assay" / "protocol").rglob("*.py"))
    assert len(paths) > 40
    for path in paths:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            names += [str(node.module)] if isinstance(node, ast.ImportFrom) and not node.level else []
            assert not {n.partition(".")[0] for n in names} & IMPURE, path
