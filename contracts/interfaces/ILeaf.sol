// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

/// @notice One element of an earlier node that the computation of an element reads.
/// @dev `isFill`: the view is outside its bounds, or (with a `fill` of 0) the address in no u64; nothing is opened (EL-1, EL-2).
/// An address outside the source is no fill: it reads 0, and its opening proves the source's size (EL-4, OPEN-6).
struct Read {
    uint32 node;
    uint64 address_;
    bool isFill;
    uint256 fill;
}

/// @title One family of nodes: how the contract computes one element of its output.
/// @notice Stateless and total: a malformed descriptor gives a defined value, never a revert. Values are raw element words: f32 as its 32 bits,
/// i32/i8 as uint256(int256(sign-extended)), u8/u16 zero-extended, i64 as uint256(int256), bool 0 or 1 (docs/protocol.md, sections 1 and 3).
interface ILeaf {
    /// @notice The reads that must be opened together with the selected element.
    /// @param node descriptor of the node
    /// @param element row-major index of the output element
    function headReads(bytes calldata node, uint64 element) external view returns (Read[] memory);

    /// @notice Starts the computation of an element from its heads.
    /// @return done the element is already determined
    /// @return value the element's canonical raw word if `done`
    /// @return terms number of terms otherwise (1 or more)
    function start(bytes calldata node, uint64 element, uint256[] calldata heads)
        external
        view
        returns (bool done, uint256 value, uint64 terms);

    /// @notice The element that partial results over all terms stand for.
    function fold(bytes calldata node, uint256[] calldata heads, int256[] calldata parts)
        external
        view
        returns (uint256 value);

    /// @notice The partial result that finer partial results stand for.
    function combine(bytes calldata node, int256[] calldata parts) external view returns (int256 part);

    /// @notice The reads of one term.
    function termReads(bytes calldata node, uint64 element, uint64 k, uint256[] calldata heads)
        external
        view
        returns (Read[] memory);

    /// @notice One term from its reads.
    function term(bytes calldata node, uint64 element, uint64 k, uint256[] calldata heads, uint256[] calldata values)
        external
        view
        returns (int256 part);
}
