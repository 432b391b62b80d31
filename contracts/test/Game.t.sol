// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

import {Digests} from "../libraries/Digests.sol";
import {GameBounds} from "../libraries/GameBounds.sol";
import {Merkle} from "../libraries/Merkle.sol";
import {GameHarness} from "./GameHarness.sol";
import {Test} from "./Test.sol";

/// @dev The trees that the game's proofs stand on, and the bounds that its clocks and bonds stand on.
contract GameTest is Test {
    GameHarness private immutable _harness = new GameHarness();

    function _digests(uint256 count) private pure returns (bytes32[] memory digests) {
        digests = new bytes32[](count);
        for (uint256 i = 0; i < count; ++i) {
            digests[i] = keccak256(abi.encode(i));
        }
    }

    /// @dev The path of a digest, by levels.
    function _path(bytes32[] memory level, uint256 index) private pure returns (bytes32[] memory path) {
        uint256 length = Merkle.pathLength(index, level.length);
        path = new bytes32[](length);
        uint256 used;
        uint256 count = level.length;
        while (count > 1) {
            if (index ^ 1 < count) path[used++] = level[index ^ 1];
            for (uint256 i = 0; i < count / 2; ++i) {
                level[i] = Digests.node(level[2 * i], level[2 * i + 1]);
            }
            if (count % 2 == 1) level[count / 2] = level[count - 1];
            (index, count) = (index / 2, (count + 1) / 2);
        }
    }

    function test_a_path_leads_to_the_root_from_its_own_place_only(uint256 count, uint256 index, uint256 other)
        public
        view
    {
        count = bound(count, 1, 64);
        index = bound(index, 0, count - 1);
        other = bound(other, 0, count - 1);
        bytes32 root = _harness.root(_digests(count));
        bytes32[] memory path = _path(_digests(count), index);
        bytes32 digest = keccak256(abi.encode(index));
        assertEq(_harness.rootFromPath(digest, index, count, path), root, "own place");
        if (other == index || Merkle.pathLength(other, count) != path.length) return;
        assertTrue(_harness.rootFromPath(digest, other, count, path) != root, "another place");
    }

    function test_an_opening_folds_to_its_entry_at_every_level(uint256 count, uint256 level, uint256 index)
        public
        view
    {
        count = bound(count, 1, 64);
        level = bound(level, 0, Merkle.height(count));
        index = bound(index, 0, Merkle.levelCount(count, level) - 1);
        (uint256 below, uint256 first, uint256 number) = Merkle.opening(count, level, index, 6);
        assertEq(below, 0, "six levels reach the digests");
        bytes32[] memory covered = new bytes32[](number);
        for (uint256 i = 0; i < number; ++i) {
            covered[i] = keccak256(abi.encode(first + i));
        }
        // The entry, folded level by level over the whole tree.
        bytes32[] memory entries = _digests(count);
        uint256 size = count;
        for (uint256 h = 0; h < level; ++h) {
            for (uint256 i = 0; i < size / 2; ++i) {
                entries[i] = Digests.node(entries[2 * i], entries[2 * i + 1]);
            }
            if (size % 2 == 1) entries[size / 2] = entries[size - 1];
            size = (size + 1) / 2;
        }
        assertEq(_harness.root(covered), entries[index], "entry");
    }

    function test_the_empty_prefix_is_twenty_levels_of_nothing() public view {
        bytes32 digest = Digests.ZERO;
        bytes32[] memory path = new bytes32[](Merkle.PREFIX_DEPTH);
        for (uint256 h = 0; h < Merkle.PREFIX_DEPTH; ++h) {
            path[h] = digest;
            digest = Digests.prefix(digest, digest);
        }
        assertEq(digest, Merkle.EMPTY_PREFIX, "constant");
        assertEq(_harness.prefixRoot(Digests.ZERO, 12345, path), digest, "any place");
    }

    function test_a_longer_program_never_makes_a_shorter_game(uint32 steps, uint256 nodes, uint256 leaves, uint64 terms)
        public
        pure
    {
        nodes = bound(nodes, 1, 1 << 20);
        leaves = bound(leaves, 1, 1 << 57);
        GameBounds.Clock memory clock = GameBounds.Clock(100, 10, 1);
        GameBounds.Shape memory shape = GameBounds.Shape(uint256(steps) + 1, nodes, leaves, uint256(terms) + 1, 7);
        uint256 longest = GameBounds.longestGame(shape, 64, 6, clock);
        assertLe(longest, GameBounds.longestGame(GameBounds.largest(), 64, 6, clock), "largest");
        shape.steps /= 2;
        shape.terms /= 2;
        assertLe(GameBounds.longestGame(shape, 64, 6, clock), longest, "half");
    }
}
