// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

/// @title Descriptor: two total readers of node descriptors (docs/protocol.md, section 3)
/// @notice Nothing reverts and every loop is bounded. Cursors are byte offsets.
/// `parse` reads what every descriptor begins with and gives every byte string a type and a shape: bytes after the end are
/// zero, a rank above 8 is 8. `decode` accepts exactly the encodings that satisfy the bounds which need no other node, as
/// protocol.encoding does: known codes, rank <= 8, at most 2^40 elements and terms, views of the rank that they are read
/// over, precisions in 2..31, at most 8 operands and 64 instructions, no byte left over.
library Descriptor {
    uint8 internal constant INPUT = 0;
    uint8 internal constant CONST = 1;
    uint8 internal constant MAP = 2;
    uint8 internal constant ROWEXP = 3;
    uint8 internal constant MAX = 4;
    uint8 internal constant DOT = 5;
    uint8 internal constant SUM = 6;
    uint8 internal constant GATHER = 7;
    uint8 internal constant SCATTER_SUM = 8;
    uint8 internal constant RANK = 9;
    uint8 internal constant RANDOM = 10;
    uint8 internal constant OUTPUT = 11;

    uint256 internal constant MAX_RANK = 8;
    uint256 internal constant MAX_NUMEL = 1 << 40;
    uint256 internal constant MAX_LENGTH = 1 << 13;
    uint256 internal constant MAX_OPERANDS = 8;
    uint256 internal constant MAX_INSTRUCTIONS = 64;

    uint256 private constant LAST_DTYPE = 6;
    uint256 private constant MIN_PRECISION = 2;
    uint256 private constant MAX_PRECISION = 31;

    /// @dev The cursor of a decoder that has failed.
    uint256 private constant BAD = type(uint256).max;

    /// @notice What every descriptor begins with.
    /// @param body cursor of the family's own part
    struct Head {
        uint8 family;
        uint8 dtype;
        uint256[] dims;
        uint256 body;
    }

    /// @notice What a descriptor says. Without `valid` the other fields mean nothing.
    /// @param numel number of elements
    /// @param red reduced dims, empty for families without
    /// @param terms product of red
    /// @param fields small integers in their order: input list, index; dot pA, pB; gather N; random stream, key node, step
    /// node; output list, index, node
    /// @param operands cursors in their order
    /// @param tail cursor of a map's instructions or a const's root
    struct Node {
        bool valid;
        uint8 family;
        uint8 dtype;
        uint256[] dims;
        uint64 numel;
        uint256[] red;
        uint64 terms;
        uint256[3] fields;
        uint256[] operands;
        uint256 tail;
    }

    /// @notice The head of a descriptor.
    function parse(bytes calldata data) internal pure returns (Head memory head) {
        head.family = uint8(take(data, 0, 1));
        head.dtype = uint8(take(data, 1, 1));
        uint256 rank = take(data, 2, 1);
        if (rank > MAX_RANK) rank = MAX_RANK;
        head.dims = new uint256[](rank);
        head.body = 3 + 8 * rank;
        for (uint256 d = 0; d < rank; ++d) {
            head.dims[d] = take(data, 3 + 8 * d, 8);
        }
    }

    /// @notice Decodes a descriptor.
    function decode(bytes calldata data) internal pure returns (Node memory node) {
        if (data.length < 2 || data.length > MAX_LENGTH) return node;
        node.family = uint8(data[0]);
        node.dtype = uint8(data[1]);
        if (node.family > OUTPUT || node.dtype > LAST_DTYPE) return node;
        uint256 at;
        (node.dims, node.numel, at) = _dims(data, 2);
        if (at == BAD) return node;
        if (node.family == MAP) at = _map(data, at, node);
        else if (_reduces(node.family)) at = _reduction(data, at, node);
        else if (node.family == GATHER) at = _gather(data, at, node);
        else if (node.family == CONST) (node.tail, at) = (at, _after(data, at, 32));
        else at = _plain(data, at, node);
        node.valid = at == data.length;
    }

    /// @notice A big-endian unsigned integer of 1 to 32 bytes; bytes after the end are zero.
    function take(bytes calldata data, uint256 at, uint256 size) internal pure returns (uint256) {
        unchecked {
            return at < data.length ? uint256(bytes32(data[at:])) >> (256 - 8 * size) : 0;
        }
    }

    /// @notice Product of sizes; 2^64-1 where it would be larger.
    function volume(uint256[] memory dims) internal pure returns (uint64) {
        uint256 product = 1;
        for (uint256 d = 0; d < dims.length; ++d) {
            if (dims[d] == 0) return 0;
            // Both factors are below 2^64.
            product *= dims[d];
            if (product > type(uint64).max) product = type(uint64).max;
        }
        return uint64(product);
    }

    function _reduces(uint256 family) private pure returns (bool) {
        return family >= ROWEXP && family <= RANK && family != GATHER;
    }

    /// @dev Body: m u8, m operands over out, c u8, c instructions of 8 bytes.
    function _map(bytes calldata data, uint256 at, Node memory node) private pure returns (uint256) {
        uint256 m = take(data, at, 1);
        if (m > MAX_OPERANDS) return BAD;
        at = _operands(data, _after(data, at, 1), node, m, 0);
        uint256 c = take(data, at, 1);
        node.tail = _after(data, at, 1);
        return c > MAX_INSTRUCTIONS ? BAD : _after(data, node.tail, 8 * c);
    }

    /// @dev Body: for a dot pA u8, pB u8; then red, operands over out+red, exponents over out.
    function _reduction(bytes calldata data, uint256 at, Node memory node) private pure returns (uint256) {
        uint256 family = node.family;
        if (family == DOT) {
            for (uint256 i = 0; i < 2; ++i) {
                uint256 p = take(data, at, 1);
                if (p < MIN_PRECISION || p > MAX_PRECISION) return BAD;
                node.fields[i] = p;
                at = _after(data, at, 1);
            }
        }
        (node.red, node.terms, at) = _dims(data, at);
        if (at == BAD) return BAD;
        if ((family == RANK || family == SCATTER_SUM) && node.dims.length == 0) return BAD;
        if (family == RANK && node.red.length != 1) return BAD;
        uint256 inner = family == DOT || family == SCATTER_SUM ? 2 : 1;
        uint256 outer = family == DOT ? 2 : family == SUM || family == SCATTER_SUM ? 1 : 0;
        return _operands(data, at, node, inner + outer, inner);
    }

    /// @dev Body: N u64, table over [N]+out, index over out.
    function _gather(bytes calldata data, uint256 at, Node memory node) private pure returns (uint256) {
        node.fields[0] = take(data, at, 8);
        node.operands = new uint256[](2);
        node.operands[0] = _after(data, at, 8);
        node.operands[1] = _operand(data, node.operands[0], node.dims.length + 1);
        return _operand(data, node.operands[1], node.dims.length);
    }

    /// @dev Bodies of integers alone: input list u8, index u32; random stream, key, step u32; output list u8, index, node u32.
    function _plain(bytes calldata data, uint256 at, Node memory node) private pure returns (uint256) {
        uint256 count = node.family == INPUT ? 2 : 3;
        for (uint256 i = 0; i < count; ++i) {
            uint256 size = i == 0 && node.family != RANDOM ? 1 : 4;
            node.fields[i] = take(data, at, size);
            at = _after(data, at, size);
        }
        return at;
    }

    /// @dev `count` operands, the first `inner` of them over out+red, the others over out.
    function _operands(bytes calldata data, uint256 at, Node memory node, uint256 count, uint256 inner)
        private
        pure
        returns (uint256)
    {
        node.operands = new uint256[](count);
        for (uint256 i = 0; i < count; ++i) {
            node.operands[i] = at;
            at = _operand(data, at, node.dims.length + (i < inner ? node.red.length : 0));
        }
        return at;
    }

    /// @dev The cursor after an operand: node u32, rank u8, offset i64, (stride i64, lo i64, hi i64)[rank], fill u64.
    function _operand(bytes calldata data, uint256 at, uint256 rank) private pure returns (uint256) {
        uint256 next = _after(data, at, 21 + 24 * rank);
        return next == BAD || take(data, at + 4, 1) != rank ? BAD : next;
    }

    /// @dev rank u8, dims u64[rank].
    function _dims(bytes calldata data, uint256 at)
        private
        pure
        returns (uint256[] memory dims, uint64 product, uint256 next)
    {
        uint256 rank = take(data, at, 1);
        next = _after(data, at, 1 + 8 * rank);
        if (rank > MAX_RANK || next == BAD) return (dims, 0, BAD);
        dims = new uint256[](rank);
        for (uint256 d = 0; d < rank; ++d) {
            dims[d] = take(data, at + 1 + 8 * d, 8);
            if (dims[d] > MAX_NUMEL) return (dims, 0, BAD);
        }
        product = volume(dims);
        if (product > MAX_NUMEL) next = BAD;
    }

    /// @dev The cursor `size` bytes further; BAD beyond the end.
    function _after(bytes calldata data, uint256 at, uint256 size) private pure returns (uint256) {
        return at > data.length || size > data.length - at ? BAD : at + size;
    }
}
