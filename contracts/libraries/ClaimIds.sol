// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

import {ClaimKind} from "../interfaces/IClaims.sol";

/// @title ClaimIds: how claims and the locks behind them are named (docs/protocol.md, section 4)
library ClaimIds {
    uint8 internal constant VARIANT = 0; // programs of traps come later

    /// @notice K(chain id, charter, run, kind, variant, claimant, X root, Y root).
    function claim(address charter, bytes32 run, ClaimKind kind, address claimant, bytes32 x, bytes32 y)
        internal
        view
        returns (bytes32)
    {
        return keccak256(abi.encode(block.chainid, charter, run, kind, VARIANT, claimant, x, y));
    }

    /// @notice The lock S behind a commitment.
    function commitmentLock(uint64 round, uint32 seat) internal pure returns (bytes32) {
        return keccak256(abi.encode("assay.commitment", round, seat));
    }

    /// @notice The seat fee of a solver.
    function seatLock(address solver) internal pure returns (bytes32) {
        return keccak256(abi.encode("assay.seat", solver));
    }

    /// @notice The lock of a poster behind an outer root.
    function outerLock(uint64 round, bytes32 root, address poster) internal pure returns (bytes32) {
        return keccak256(abi.encode("assay.outer", round, root, poster));
    }

    /// @notice The stake of a verifier or whistleblower.
    function attesterLock(address who) internal pure returns (bytes32) {
        return keccak256(abi.encode("assay.attester", who));
    }

    /// @notice The escrow of the run.
    function escrowLock() internal pure returns (bytes32) {
        return keccak256(abi.encode("assay.escrow"));
    }
}
