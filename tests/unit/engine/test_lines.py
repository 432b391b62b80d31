"""Which line a refusal names: the user's own, with the package's that it calls."""

from __future__ import annotations

import sysconfig
from pathlib import Path

import pytest
import torch

from assay.engine.compiler.hidden import lines
from assay.protocol.errors import NumericsError
from assay.training.recipes import recipe
from tests.harness.engine.helpers import captured

PACKAGES = Path(sysconfig.get_path("purelib"))
LAYER = str(PACKAGES / "timm" / "layers.py"), 7
MODEL = str(PACKAGES / "timm" / "vit.py"), 40
PYTORCH = torch.nn.functional.__file__, 9
USER = "/own/train.py", 3


@pytest.mark.parametrize(
    ("places", "found"),
    [
        ([PYTORCH, USER], "/own/train.py:3"),
        ([PYTORCH, LAYER, PYTORCH, MODEL, USER], "/own/train.py:3 (in timm/layers.py:7)"),
        ([LAYER, MODEL, (recipe.__file__, 1)], "timm/layers.py:7"),
        ([PYTORCH, (recipe.__file__, 1)], None),
        ([("<string>", 1), USER], "/own/train.py:3"),
    ],
)
def test_the_users_own_line_is_named_with_the_innermost_of_a_package(places: list[tuple[str, int]], found: str | None):
    assert lines.users_line(places) == found


def test_an_operation_that_a_package_calls_is_refused_at_the_users_line(tmp_path: Path, monkeypatch):
    (tmp_path / "package.py").write_text("import torch\n\ndef layer(x):\n    return torch.fft.fft(x).real\n")
    monkeypatch.setattr(lines, "INSTALLED", (f"{tmp_path}/",))
    monkeypatch.syspath_prepend(str(tmp_path))
    for cached in (lines.short, lines.is_library, lines.installed_at):
        cached.cache_clear()
    import package

    with pytest.raises(NumericsError) as caught:
        captured(lambda x: (package.layer(x),), torch.zeros(4))
    assert "_fft_r2c.default at tests/unit/engine/test_lines.py:" in caught.value.message
    assert "(in package.py:4)" in caught.value.message


@pytest.mark.parametrize(
    ("path", "folder"),
    [
        ("/usr/lib/python3/dist-packages/six.py", "/usr/lib/python3/dist-packages/"),
        ("/own/.venv/lib/python3.12/site-packages/timm/a.py", "/own/.venv/lib/python3.12/site-packages/"),
        ("/own/vendored.zip/models/net.py", "/own/vendored.zip/"),
        ("/own/train.py", ""),
        ("<string>", ""),
    ],
)
def test_packages_are_known_wherever_they_are_installed(path: str, folder: str):
    assert lines.installed_at(path) == folder


def test_a_folder_of_the_module_path_that_lists_packages_holds_packages(tmp_path: Path, monkeypatch):
    packages, own = tmp_path / "packages", tmp_path / "own"
    (packages / "net-1.0.dist-info").mkdir(parents=True)
    (packages / "net-1.0.dist-info" / "RECORD").touch()
    monkeypatch.setattr(lines.sys, "path", [str(own), f"{packages}/"])
    assert lines.installed_at(f"{packages}/net/layer.py") == f"{packages}/"
    assert lines.installed_at(f"{own}/net/layer.py") == ""


def test_a_function_is_named_by_where_it_is_written():
    class Called:
        def __call__(self) -> None:
            pass

    def plain() -> None:
        pass

    assert lines.definition(plain) == f" (tests/unit/engine/test_lines.py:{plain.__code__.co_firstlineno})"
    assert lines.definition(Called()) == f" (tests/unit/engine/test_lines.py:{Called.__call__.__code__.co_firstlineno})"
    assert lines.definition(print) == ""
