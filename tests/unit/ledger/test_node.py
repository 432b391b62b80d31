"""The local chain starts on a free port, keeps real networks' rules and its own clock, and says what is wrong."""

import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from assay.protocol.errors import ConfigError, UnavailableError
from assay_ledger.chain.node import GAS_LIMIT, Anvil, find_anvil


@pytest.fixture(scope="module")
def node() -> Iterator[Anvil]:
    with Anvil() as running:
        yield running


def block(node: Anvil, tag: str = "latest") -> dict[str, Any]:
    found = node.rpc("eth_getBlockByNumber", tag, False)
    assert isinstance(found, dict)
    return found


def test_the_node_has_the_gas_limit_and_chain_it_was_told(node: Anvil) -> None:
    assert int(block(node)["gasLimit"], 16) == GAS_LIMIT == 30_000_000
    assert node.rpc("eth_chainId") == hex(31337)
    assert len(node.dev_keys) == 1


def test_chain_time_moves_one_second_per_block_whatever_the_wall_clock_does(node: Anvil) -> None:
    before = int(block(node)["timestamp"], 16)
    for _ in range(5):
        node.rpc("evm_mine")
    assert int(block(node)["timestamp"], 16) == before + 5


def test_one_call_mines_a_block_at_a_named_time_and_later_blocks_go_on_from_it(node: Anvil) -> None:
    target = int(block(node)["timestamp"], 16) + 86_400
    node.rpc("evm_mine", target)
    assert int(block(node)["timestamp"], 16) == target
    node.rpc("evm_mine")
    assert int(block(node)["timestamp"], 16) == target + 1


def test_code_above_the_size_limit_is_refused_and_at_the_limit_accepted(node: Anvil) -> None:
    """Init code that returns n zero bytes: PUSH3 n, PUSH0, RETURN."""
    sender = node.rpc("eth_accounts")[0]  # type: ignore[index]

    def deployed(size: int) -> bool:
        code = "0x62" + size.to_bytes(3, "big").hex() + "5ff3"
        name = node.rpc("eth_sendTransaction", {"from": sender, "data": code, "gas": hex(10_000_000)})
        end = time.monotonic() + 20
        # The node answers before the block that holds the transaction is there.
        while (receipt := node.rpc("eth_getTransactionReceipt", name)) is None:
            assert time.monotonic() < end
        return receipt["status"] == "0x1"  # type: ignore[index, no-any-return]

    assert deployed(24_576)
    assert not deployed(24_577)


def test_two_nodes_at_once_get_ports_and_folders_of_their_own_and_leave_nothing() -> None:
    def start(_: int) -> Anvil:
        return Anvil()

    with ThreadPoolExecutor(2) as pool:
        nodes = list(pool.map(start, range(2)))
    try:
        # The threads that started them are gone; a parent-death signal tied to those would have killed both.
        assert all(node.is_running for node in nodes)
        assert len({node.port for node in nodes}) == len({node.data_dir for node in nodes}) == 2
        assert all(node.rpc("eth_blockNumber") == "0x0" for node in nodes)
    finally:
        for node in nodes:
            node.close()
    assert not any(node.data_dir.exists() for node in nodes)
    assert not any(node.is_running for node in nodes)


def test_a_kept_folder_carries_the_chain_on(tmp_path: Path) -> None:
    with Anvil(data_dir=tmp_path / "chain") as first:
        first.rpc("evm_mine")
        first.rpc("evm_mine", int(block(first)["timestamp"], 16) + 1000)
        head = block(first)
    with Anvil(data_dir=tmp_path / "chain") as second:
        assert block(second)["hash"] == head["hash"]
        second.rpc("evm_mine")
        assert int(block(second)["timestamp"], 16) == int(head["timestamp"], 16) + 1


def test_a_port_in_use_is_named_with_a_remedy() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(ConfigError, match=f"Port {port} is in use") as raised:
            Anvil(port=port)
    assert raised.value.code == "PortInUse"
    assert "0" in raised.value.remedy


def test_a_missing_anvil_is_named_with_a_remedy(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    script = tmp_path / "anvil"
    script.write_text("#!/bin/sh\n")
    script.chmod(0o755)
    monkeypatch.setenv("ASSAY_ANVIL", str(script))
    with pytest.raises(ConfigError, match="no native anvil") as raised:
        find_anvil()
    assert raised.value.code == "ToolMissing"
    assert "make setup" in raised.value.remedy


def test_a_corrupt_state_says_why_the_node_ended(tmp_path: Path) -> None:
    (tmp_path / "state.json").write_text("{ broken")
    with pytest.raises(UnavailableError, match="failed to parse json file") as raised:
        Anvil(data_dir=tmp_path)
    assert raised.value.code == "NodeFailed" and "anvil.log" in raised.value.remedy


@pytest.mark.parametrize("left", [0.0, 0.5])
def test_a_chain_that_was_killed_while_it_wrote_its_state_goes_on(tmp_path: Path, left: float) -> None:
    """A busy machine at Ctrl-C: the run that was posted on it, and all work of its members, were gone."""
    with Anvil(data_dir=tmp_path) as first:
        first.rpc("evm_mine")
        head = block(first)
    for _ in range(2):
        first.keep_copy()
    state = tmp_path / "state.json"
    state.write_bytes(state.read_bytes()[: int(state.stat().st_size * left)])
    # What is cut short is never copied, and whoever looks at it later has the copy still.
    for _ in range(3):
        first.keep_copy()
    with Anvil(data_dir=tmp_path) as second:
        assert second.is_mended and block(second)["hash"] == head["hash"]
    with Anvil(data_dir=tmp_path) as third:
        assert not third.is_mended and block(third)["hash"] == head["hash"]


def test_a_dead_node_is_unreachable_not_a_traceback() -> None:
    with Anvil() as node:
        node.process.kill()
        node.process.wait()
        start = time.monotonic()
        with pytest.raises(UnavailableError) as raised:
            node.rpc("eth_blockNumber")
        assert raised.value.code == "NodeUnreachable"
        assert time.monotonic() - start < 5
