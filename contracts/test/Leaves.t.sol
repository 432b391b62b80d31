// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

import {ILeaf, Read} from "../interfaces/ILeaf.sol";
import {DotLeaf} from "../leaves/DotLeaf.sol";
import {GatherLeaf} from "../leaves/GatherLeaf.sol";
import {MapLeaf} from "../leaves/MapLeaf.sol";
import {MaxLeaf} from "../leaves/MaxLeaf.sol";
import {RandomLeaf} from "../leaves/RandomLeaf.sol";
import {RankLeaf} from "../leaves/RankLeaf.sol";
import {RowExpLeaf} from "../leaves/RowExpLeaf.sol";
import {ScatterSumLeaf} from "../leaves/ScatterSumLeaf.sol";
import {SumLeaf} from "../leaves/SumLeaf.sol";
import {Descriptor} from "../libraries/Descriptor.sol";
import {Elements} from "../libraries/Elements.sol";
import {FloatOrder} from "../libraries/FloatOrder.sol";
import {Quantize} from "../libraries/Quantize.sol";
import {Views} from "../libraries/Views.sol";
import {Test} from "./Test.sol";

/// @notice Properties of the leaves on the runner's own fuzz; tests/contracts compares values with the reference.
contract LeavesTest is Test {
    uint256 private constant MOVE_GAS = 1_000_000;

    ILeaf[] private leaves;
    uint8[] private families;

    function setUp() external {
        _add(new MapLeaf(), Descriptor.MAP);
        _add(new RowExpLeaf(), Descriptor.ROWEXP);
        _add(new MaxLeaf(), Descriptor.MAX);
        _add(new DotLeaf(), Descriptor.DOT);
        _add(new SumLeaf(), Descriptor.SUM);
        _add(new GatherLeaf(), Descriptor.GATHER);
        _add(new ScatterSumLeaf(), Descriptor.SCATTER_SUM);
        _add(new RankLeaf(), Descriptor.RANK);
        _add(new RandomLeaf(), Descriptor.RANDOM);
    }

    function testFuzz_EveryLeafIsTotalOnAnyBytes(
        bytes calldata tail,
        uint64 element,
        uint64 k,
        uint256[] calldata words,
        int256[] calldata parts
    ) external view {
        for (uint256 i = 0; i < leaves.length; ++i) {
            bytes memory node = abi.encodePacked(families[i], tail);
            uint256 before = gasleft();
            leaves[i].headReads(node, element);
            leaves[i].start(node, element, words);
            leaves[i].fold(node, words, parts);
            leaves[i].combine(node, parts);
            leaves[i].termReads(node, element, k, words);
            leaves[i].term(node, element, k, words, words);
            assertLt(before - gasleft(), MOVE_GAS, "gas of all functions");
        }
    }

    function testFuzz_PartsFoldAsTheirCombinedParts(int256[8] calldata some, uint8 cut) external view {
        // One-dimensional nodes without elements behind their operands: fold and combine look at type and precision alone.
        cut = uint8(bound(cut, 1, 7));
        for (uint256 i = 0; i < leaves.length; ++i) {
            bytes memory node = _reduction(families[i]);
            if (node.length == 0) continue;
            int256[] memory parts = new int256[](8);
            int256[] memory left = new int256[](cut);
            int256[] memory right = new int256[](8 - cut);
            for (uint256 j = 0; j < 8; ++j) {
                parts[j] = some[j];
                if (j < cut) left[j] = some[j];
                else right[j - cut] = some[j];
            }
            int256[] memory coarse = new int256[](2);
            coarse[0] = leaves[i].combine(node, left);
            coarse[1] = leaves[i].combine(node, right);
            uint256[] memory heads = new uint256[](2);
            assertEq(leaves[i].fold(node, heads, parts), leaves[i].fold(node, heads, coarse), "fold");
            assertEq(leaves[i].combine(node, parts), leaves[i].combine(node, coarse), "combine");
        }
    }

    function testFuzz_QuantizationIsOddBoundedAndMonotone(uint32 x, uint32 y, uint256 p, int256 e) external pure {
        p = bound(p, 2, 31);
        e = int256(bound(uint256(e), 0, 1 << 32)) - (1 << 31);
        int256 limit = p == 8 ? int256(127) : int256(1 << (p - 1));
        int256 q = Quantize.quantize(x, p, e);
        assertTrue(q <= limit && q >= -limit, "bounded");
        assertEq(Quantize.quantize(x ^ 0x80000000, p, e), -q, "odd");
        if ((x & 0x7f800000) == 0x7f800000 || (y & 0x7f800000) == 0x7f800000) return;
        if (FloatOrder.key(x) <= FloatOrder.key(y)) assertTrue(q <= Quantize.quantize(y, p, e), "monotone");
    }

    function testFuzz_PatternsOfKeysKeepTheirKey(uint32 x) external pure {
        uint256 pattern = FloatOrder.pattern(FloatOrder.key(x));
        assertEq(FloatOrder.key(pattern), FloatOrder.key(x), "key");
        assertEq(Elements.canonical(Elements.F32, x) == Elements.NAN, pattern == Elements.NAN, "nan");
    }

    function testFuzz_StoringIsIdempotent(uint8 dtype, uint256 word) external pure {
        uint256 stored = Elements.store(dtype, word);
        assertEq(Elements.store(dtype, stored), stored, "stored");
        assertEq(Elements.canonical(dtype, stored), stored, "canonical");
    }

    function testFuzz_PositionsUnravelToThemselves(uint8[4] calldata sizes, uint256 position) external pure {
        uint256[] memory dims = new uint256[](4);
        uint256 numel = 1;
        for (uint256 d = 0; d < 4; ++d) {
            dims[d] = uint256(sizes[d]) + 1;
            numel *= dims[d];
        }
        position = bound(position, 0, numel - 1);
        uint256[] memory index = Views.unravel(dims, position);
        uint256 back = 0;
        for (uint256 d = 0; d < 4; ++d) {
            assertLt(index[d], dims[d], "index");
            back = back * dims[d] + index[d];
        }
        assertEq(back, position, "position");
    }

    function _add(ILeaf leaf, uint8 family) private {
        leaves.push(leaf);
        families.push(family);
    }

    /// @dev A reduction of one f32 dimension over eight terms with all-zero views; empty for other families.
    function _reduction(uint8 family) private pure returns (bytes memory) {
        bytes memory head = abi.encodePacked(family, uint8(0), uint8(1), uint64(3));
        bytes memory red = abi.encodePacked(uint8(1), uint64(8));
        bytes memory inner = abi.encodePacked(uint32(0), uint8(2), new bytes(8 + 48 + 8));
        bytes memory outer = abi.encodePacked(uint32(0), uint8(1), new bytes(8 + 24 + 8));
        if (family == Descriptor.ROWEXP || family == Descriptor.MAX || family == Descriptor.RANK) {
            return bytes.concat(head, red, inner);
        }
        if (family == Descriptor.SUM) return bytes.concat(head, red, inner, outer);
        if (family == Descriptor.SCATTER_SUM) return bytes.concat(head, red, inner, inner, outer);
        if (family == Descriptor.DOT) {
            return bytes.concat(head, hex"0e0e", red, inner, inner, outer, outer);
        }
        return "";
    }
}
