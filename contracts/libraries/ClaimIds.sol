// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

import {ClaimKind} from "../interfaces/IClaims.sol";

/// @title ClaimIds: how claims are named (docs/protocol.md, section 4)
library ClaimIds {
    uint8 internal constant VARIANT = 0; // the only one so far

    /// @notice K(chain id, charter, run, kind, variant, claimant, X root, Y root).
    function claim(address charter, bytes32 run, ClaimKind kind, address claimant, bytes32 x, bytes32 y)
        internal
        view
        returns (bytes32)
    {
        return keccak256(abi.encode(block.chainid, charter, run, kind, VARIANT, claimant, x, y));
    }
}
