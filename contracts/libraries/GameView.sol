// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

import {GameState} from "../interfaces/GameTypes.sol";

/// @title GameView: a game as it is stored, encoded as Solidity encodes a GameState
/// @notice The compiler's own encoder of 44 packed fields takes 1.9 KB, a twelfth of what the game may be; this one is a loop over their
/// widths. It serves readers outside alone: no contract decides anything by it, and every test of a game compares all of its fields.
library GameView {
    /// @dev Bytes of every field of GameState in order, one byte per field: the first 32, then the others.
    bytes32 private constant WIDTHS = 0x1401010101040201011408040808080808080808010410101020202020202020;
    bytes32 private constant MORE_WIDTHS = 0x2020202020200108040414200000000000000000000000000000000000000000;
    uint256 private constant FIELDS = 44;
    /// @dev The field `heads`, an array: its words stand behind the fields, and in its place where.
    uint256 private constant HEADS = 33;

    /// @notice Ends the call with abi.encode(game).
    function answer(GameState storage game) internal view {
        uint256[] memory heads = game.heads;
        assembly ("memory-safe") {
            let out := mload(0x40)
            mstore(out, 0x20)
            let at := add(out, 0x20)
            let slot := game.slot
            let used := 0
            for { let k := 0 } lt(k, FIELDS) { k := add(k, 1) } {
                let width := byte(mod(k, 32), WIDTHS)
                if gt(k, 31) { width := byte(mod(k, 32), MORE_WIDTHS) }
                // Fields fill a slot from its low end; what does not fit begins the next.
                if gt(add(used, width), 32) {
                    slot := add(slot, 1)
                    used := 0
                }
                mstore(at, and(shr(mul(8, used), sload(slot)), shr(sub(256, mul(8, width)), not(0))))
                if eq(k, HEADS) { mstore(at, mul(FIELDS, 0x20)) }
                at := add(at, 0x20)
                used := add(used, width)
            }
            let size := mul(add(mload(heads), 1), 0x20)
            mcopy(at, heads, size)
            return(out, sub(add(at, size), out))
        }
    }
}
