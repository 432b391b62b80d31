"""By what ranks exchange: NCCL where all of them compute on GPUs of their own, and Gloo everywhere else."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import timedelta
from typing import NoReturn

import psutil
import pytest
import torch
import torch.distributed as dist

from assay.cli import ranks as places
from assay.engine.runtime import devices, executor
from assay.engine.runtime.devices import Device
from assay.engine.runtime.triton import backend
from assay.protocol.errors import ConfigError
from assay.training import ranked_compute
from assay.training.ranked_compute import (
    GLOO,
    NCCL,
    PATIENCE,
    SILENCE,
    RanksLost,
    agreed,
    check_alike,
    join,
    name_interface,
    usual_backend,
)


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """A machine with two GPUs that give the right bits; which of them this rank has taken."""
    found: list[int] = []
    monkeypatch.setenv(backend.INTERPRETER, "0")
    monkeypatch.setenv("LOCAL_RANK", "1")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.cuda, "set_device", found.append)
    monkeypatch.setattr(dist, "is_nccl_available", lambda: True)
    monkeypatch.setattr(executor, "_wrong_by_triton", lambda: "" if found else "another's GPU was tried")
    backend.absence.cache_clear()
    yield found
    monkeypatch.undo()
    backend.absence.cache_clear()


def test_ranks_exchange_over_nccl_where_programs_run_on_gpus(taken: list[int]) -> None:
    """Each takes its own before anything is tried on one."""
    devices.ask_for(Device.CUDA)
    assert (usual_backend(2), taken) == (NCCL, [1])


@pytest.mark.parametrize("device", [Device.AUTO, Device.CPU])
def test_a_gpu_that_no_program_runs_on_is_not_touched(device: Device, taken: list[int]) -> None:
    """Left open programs run on the CPU until kernels were seen on a GPU; exchanges would go there and back."""
    devices.ask_for(device)
    assert (usual_backend(2), taken) == (GLOO, [])


def test_left_open_gpus_are_taken_once_their_kernels_were_seen(
    taken: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backend, "SEEN_ON_A_GPU", True)
    assert (usual_backend(2), taken) == (NCCL, [1])


def test_more_ranks_than_gpus_exchange_over_gloo(taken: list[int]) -> None:
    devices.ask_for(Device.CUDA)
    assert (usual_backend(3), taken) == (GLOO, [])


def test_a_rank_whose_gpu_is_wrong_says_so(taken: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(executor, "_wrong_by_triton", lambda: "Triton's kernels (a card) fail their self-test: SUM")
    devices.ask_for(Device.CUDA)
    with pytest.raises(ConfigError, match="self-test: SUM"):
        usual_backend(2)


@pytest.mark.parametrize(("wanted", "found"), [((NCCL, NCCL, NCCL), NCCL), ((NCCL, GLOO, NCCL), GLOO)], ids=str)
def test_all_ranks_exchange_alike_also_where_one_machine_has_no_gpu(wanted: tuple[str, ...], found: str) -> None:
    store = dist.HashStore()
    with ThreadPoolExecutor(3) as pool:
        ends = list(pool.map(lambda rank: agreed(store, rank, 3, wanted[rank]), range(3)))
    assert ends == [found] * 3


def test_ranks_of_other_code_compute_nothing_together() -> None:
    """One machine was updated and the other was not: they might divide a program otherwise."""
    store = dist.HashStore()
    store.set("code_1", "that of another release")
    with pytest.raises(ConfigError, match="than rank 1") as refused:
        check_alike(store, 0, 2)
    assert refused.value.code == "RanksDiffer"
    store.set("code_1", store.get("code_0"))
    check_alike(store, 0, 2)


def _interfaces() -> Iterator[tuple[str, str]]:
    for name, addresses in psutil.net_if_addrs().items():
        yield from ((name, one.address) for one in addresses if one.family is socket.AF_INET)


@pytest.mark.parametrize(("machines", "wished"), [(1, ""), (2, ""), (2, "wished0")])
def test_ranks_of_several_machines_exchange_by_the_interface_over_which_they_met(
    machines: int, wished: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A machine's own name is a loopback address to itself on most systems, and that is what Gloo would tell others."""
    monkeypatch.setattr(ranked_compute, "rendezvous", _meets_nobody)
    values = {"RANK": "1", "WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": str(2 // machines), "MASTER_PORT": "29500"}
    for name, value in values.items():
        monkeypatch.setenv(name, value)
    for interface, address in _interfaces():
        monkeypatch.setenv("MASTER_ADDR", address)
        monkeypatch.setenv("GLOO_SOCKET_IFNAME", wished)
        if not wished:
            monkeypatch.delenv("GLOO_SOCKET_IFNAME")
        with pytest.raises(RanksLost):
            join(GLOO)
        found = os.environ.get("GLOO_SOCKET_IFNAME")
        assert found == (wished or (interface if machines > 1 else None)), address


def _meets_nobody(_: str, *, timeout: timedelta) -> NoReturn:
    raise RuntimeError(f"nobody is there within {timeout}")


@pytest.mark.parametrize("place", [("no name", "29500"), ("127.0.0.1", "none"), ("", "")])
def test_of_a_meeting_place_that_is_none_the_meeting_tells(
    place: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("GLOO_SOCKET_IFNAME", raising=False)
    for name, value in zip(("MASTER_ADDR", "MASTER_PORT"), place, strict=True):
        monkeypatch.setenv(name, value)
    name_interface()
    assert "GLOO_SOCKET_IFNAME" not in os.environ


@pytest.mark.parametrize(("rank", "waits"), [("0", SILENCE), ("1", PATIENCE)])
def test_ranks_wait_for_a_leader_that_stands_by_and_it_not_for_them(
    rank: str, waits: timedelta, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It joins once the first process of its key is gone, and then a clock may run in a game."""
    seen: list[timedelta] = []

    def meets(_: str, *, timeout: timedelta) -> NoReturn:
        seen.append(timeout)
        raise RuntimeError("nobody is there")

    monkeypatch.setenv("RANK", rank)
    monkeypatch.setattr(ranked_compute, "rendezvous", meets)
    with pytest.raises(RanksLost, match="nobody is there"):
        join(GLOO)
    assert seen == [waits]


def test_a_leader_that_reaches_nobody_acts_alone(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """One that stood by takes over in a game, when the others have gone."""
    monkeypatch.setattr(ranked_compute, "rendezvous", _meets_nobody)
    with _as_usual(), places.leading(places.RankPlace(0, 2)) as compute:
        assert compute is None
    assert "the others are lost" in capsys.readouterr().err
    with pytest.raises(RanksLost), _as_usual():
        places.follow(places.RankPlace(1, 2))


@contextmanager
def _as_usual() -> Iterator[None]:
    """Signals and threads of this process are put back."""
    kept, threads = [(n, signal.getsignal(n)) for n in (signal.SIGINT, signal.SIGTERM)], torch.get_num_threads()
    try:
        yield
    finally:
        torch.set_num_threads(threads)
        for number, handler in kept:
            signal.signal(number, handler)
