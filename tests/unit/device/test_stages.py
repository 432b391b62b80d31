"""What stages do first: on a GPU, what its time is for."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from assay.conformance import answers, nodes
from assay.device import stages
from assay.engine.runtime.devices import Device

DIRECTLY = {Device.CUDA: "triton, cuda", Device.CPU: "reference"}


@pytest.mark.parametrize("device", DIRECTLY)
def test_a_gpu_that_is_asked_for_is_the_first_that_gives_known_answers(
    device: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: Any) -> list[list[bytes]]:
        raise ValueError("nothing is computed here")

    def executors() -> Iterator[tuple[str, nodes.RunNodes]]:
        yield from ((name, fails) for name in ("reference", "torch", "native vnni", "triton, cuda"))

    monkeypatch.setattr(nodes, "executors", executors)
    found = list(islice(answers.check_all(answers.default_vectors(), gpu_first=device is Device.CUDA), 6))
    assert found[0].implementation == DIRECTLY[device]
    if device is Device.CUDA:
        assert [t.group for t in found[:4]] == ["operations", "functions", "programs", "accumulators"]
        assert {t.implementation for t in found[:4]} == {"triton, cuda"}
        assert "triton, cuda" not in {t.implementation for t in found[4:]}


@pytest.mark.parametrize("device", DIRECTLY)
def test_the_stage_asks_for_its_own_device_first(device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[bool] = []

    def check_all(_: Path, *, gpu_first: bool) -> Iterator[answers.Tally]:
        asked.append(gpu_first)
        yield answers.Tally("triton, cuda", "programs", 3, 0, None)

    monkeypatch.setattr(stages, "check_all", check_all)
    (figures,) = stages.conformance(stages.DeviceTerms(device, 0.0, Path("nowhere")))
    assert asked == [device is Device.CUDA]
    assert figures["wrong"] == [] and figures["executors"][0]["equal"] is True
