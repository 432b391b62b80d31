"""The native kernels are built from exactly their sources, loaded for what the processor has, and never needed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from assay.engine.runtime.executor import usable_natives
from assay.engine.runtime.native import build, library
from assay.engine.runtime.native.library import allowed_instruction_sets, native, processor_flags

X86, ARM = (
    frozenset[str]().union(*(build.INSTRUCTION_SETS[name].needs for name in build.of_machine(machine)))
    for machine in ("x86_64", "aarch64")
)


def run(code: str, **environment: str) -> str:
    """What a fresh process prints."""
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, env={**os.environ, **environment}, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_a_processor_gets_the_best_instruction_set_it_has():
    assert allowed_instruction_sets({}, X86) == ["vnni", "avx512", "avx2", "sse41", "plain"]
    assert allowed_instruction_sets({}, ARM) == ["i8mm", "dotprod", "neon", "plain"]
    assert allowed_instruction_sets({}, ARM - {"i8mm"}) == ["dotprod", "neon", "plain"]
    assert allowed_instruction_sets({}, ARM - {"asimddp"}) == ["neon", "plain"]
    assert allowed_instruction_sets({}, frozenset({"sse4_1", "avx2"})) == ["avx2", "sse41", "plain"]
    assert allowed_instruction_sets({}, frozenset()) == ["plain"]


def test_torch_and_the_kernels_are_limited_by_one_setting():
    assert allowed_instruction_sets({"ATEN_CPU_CAPABILITY": "avx2"}, X86) == ["avx2", "sse41", "plain"]
    assert allowed_instruction_sets({"ATEN_CPU_CAPABILITY": "default"}, X86) == ["sse41", "plain"]
    assert allowed_instruction_sets({"ATEN_CPU_CAPABILITY": "avx512"}, X86) == build.of_machine("x86_64")


def test_one_instruction_set_can_be_asked_for_by_name():
    assert allowed_instruction_sets({"ASSAY_NATIVE": "plain"}, X86) == ["plain"]
    assert allowed_instruction_sets({"ASSAY_NATIVE": "avx2"}, X86) == ["avx2"]
    assert allowed_instruction_sets({"ASSAY_NATIVE": "neon"}, X86) == []
    code = "from assay.engine.runtime.native import library as l; c = l.native('canary'); print(c.handle, c.reason)"
    assert "does not have the instructions of ASSAY_NATIVE=neon" in run(code, ASSAY_NATIVE="neon")


def test_every_machine_has_kernels_in_plain_c():
    assert build.of_machine("riscv64") == ["plain"]
    assert build.object_path("dot", "plain", machine="x86_64") != build.object_path("dot", "plain", machine="aarch64")


def test_switched_off_is_said_as_the_reason():
    code = "from assay.engine.runtime.native import library as l; c = l.native('canary'); print(c.handle, c.reason)"
    assert run(code, ASSAY_NATIVE="off") == "None ASSAY_NATIVE=off"


def test_what_is_not_built_is_said_as_the_reason():
    code = "from assay.engine.runtime.native.library import native; print(native('no-such-unit').reason)"
    assert "not built" in run(code, ASSAY_NATIVE="")


def test_a_changed_header_makes_objects_stale(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "unit.c").write_text('#include "part.h"\n')
    (tmp_path / "part.h").write_text("int x;\n")
    monkeypatch.setattr(build, "_FOLDER", tmp_path)
    first = build.object_path.__wrapped__("unit", "sse41")
    (tmp_path / "part.h").write_text("int y;\n")
    assert first != build.object_path.__wrapped__("unit", "sse41")


def test_without_a_compiler_nothing_is_built_and_nothing_raised(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    folder = tmp_path / "engine" / "native"
    folder.mkdir(parents=True)
    (folder / "unit.c").write_text("int x;\n")
    monkeypatch.setattr(build, "_FOLDER", folder)
    monkeypatch.setenv("CC", "no-such-compiler")
    assert build.build(["unit"]) == ["no C compiler was found"]


@pytest.mark.skipif(build.compiler() is None, reason="no C compiler is here")
def test_where_a_compiler_is_the_kernels_are_built_and_pass_their_self_test():
    """Else every test of them would be skipped without a word."""
    if os.environ.get("ASSAY_NATIVE") == "off":
        pytest.skip("ASSAY_NATIVE=off")
    natives, reason = usable_natives()
    assert natives is not None, reason
    assert natives.products is not None
    assert {unit: native(unit).reason for unit in build.units()} == dict.fromkeys(build.units(), "")


@pytest.mark.skipif(build.compiler() is None, reason="no C compiler is here")
def test_a_unit_that_does_not_compile_leaves_the_others_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    folder, objects = tmp_path / "kernels", tmp_path / "objects"
    folder.mkdir()
    (folder / "good_unit_of_a_test.c").write_text("int x;\n")
    (folder / "bad_unit_of_a_test.c").write_text("int x\n")
    monkeypatch.setattr(build, "_FOLDER", folder)
    monkeypatch.setattr(build, "_OBJECTS", objects)
    reasons = build.build()
    assert len(reasons) == len(build.of_machine())
    assert all("bad_unit_of_a_test does not compile" in r for r in reasons)
    assert len(list(objects.glob("good_*.so"))) == len(build.of_machine())


@pytest.mark.skipif(native("canary").handle is None, reason=native("canary").reason or "-")
def test_the_canary_sees_flush_to_zero_and_clears_it():
    handle = native("canary").handle
    assert handle is not None
    assert native("canary").instruction_set in allowed_instruction_sets(os.environ, processor_flags())
    assert handle.assay_floats_are_usual() == 1
    torch.set_flush_denormal(True)
    try:
        assert handle.assay_floats_are_usual() == 0
        handle.assay_floats_reset()
        assert handle.assay_floats_are_usual() == 1
        assert torch.tensor(2.0**-126).mul(0.5).item() != 0.0
    finally:
        torch.set_flush_denormal(False)


@pytest.mark.parametrize(("checkout", "by"), [(True, "make setup"), (False, "assay.engine.runtime.native.build")])
def test_where_kernels_are_not_built_it_is_said_by_what_they_are(
    checkout: bool, by: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(library, "is_checkout", lambda: checkout)
    monkeypatch.setattr(library, "object_path", lambda unit, instruction_set: None)
    with pytest.raises(OSError, match=by):
        library.load("dot", "plain")
