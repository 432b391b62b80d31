// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

import {ILeaf, Read} from "../interfaces/ILeaf.sol";
import {Elements} from "../libraries/Elements.sol";

/// @title LeafBatch: many elements of one node in one call, for `assay conformance --fuzz`
/// @notice Reads what a game would have opened: as Openings.loadOne, without the proofs.
contract LeafBatch {
    /// @notice Elements of a node by its family's leaf.
    /// @param numbers the nodes that it reads
    /// @param dtypes their element types
    /// @param datas their bytes
    function compute(
        ILeaf leaf,
        bytes calldata node,
        uint64[] calldata elements,
        uint32[] calldata numbers,
        uint8[] calldata dtypes,
        bytes[] calldata datas
    ) external view returns (uint256[] memory values) {
        values = new uint256[](elements.length);
        for (uint256 i = 0; i < elements.length; ++i) {
            uint256[] memory heads = _load(leaf.headReads(node, elements[i]), numbers, dtypes, datas);
            bool done;
            uint64 terms;
            (done, values[i], terms) = leaf.start(node, elements[i], heads);
            if (done) continue;
            int256[] memory parts = new int256[](terms);
            for (uint64 k = 0; k < terms; ++k) {
                Read[] memory reads = leaf.termReads(node, elements[i], k, heads);
                parts[k] = leaf.term(node, elements[i], k, heads, _load(reads, numbers, dtypes, datas));
            }
            values[i] = leaf.fold(node, heads, parts);
        }
    }

    function _load(Read[] memory reads, uint32[] calldata numbers, uint8[] calldata dtypes, bytes[] calldata datas)
        private
        pure
        returns (uint256[] memory words)
    {
        words = new uint256[](reads.length);
        for (uint256 i = 0; i < reads.length; ++i) {
            if (reads[i].isFill) {
                words[i] = reads[i].fill;
                continue;
            }
            for (uint256 j = 0; j < numbers.length; ++j) {
                if (numbers[j] != reads[i].node) continue;
                words[i] = Elements.canonical(dtypes[j], Elements.raw(datas[j], dtypes[j], reads[i].address_));
            }
        }
    }
}
