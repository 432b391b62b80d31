// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

import {IGenerations} from "../interfaces/IGenerations.sol";

/// @title Segments: which generations are cut, without a walk
/// @notice A segment is a run of rounds of which each starts from the generation of the one before; a restart begins one.
/// The segments that are not cut whole form a stack, each beginning from a generation of the one below. A cut keeps its
/// segment's part below it and takes all segments above off, whatever their number.
abstract contract Segments is IGenerations {
    struct Segment {
        uint64 first; // its first round; its generations begin at first + 1
        uint64 parent; // generation that it begins from
        uint64 lowestCut; // zero: none
        uint32 level; // place in the stack
    }

    uint32 private _count; // segments, numbered from 1
    uint32 private _height;
    mapping(uint32 segment => Segment) private _segments;
    mapping(uint32 level => uint32 segment) private _stack;
    mapping(uint64 generation => uint32 segment) internal _segmentOf;

    /// @dev Is the generation cut, or built on one that is?
    function _isCut(uint64 generation) internal view returns (bool) {
        if (generation == 0) return false;
        uint32 id = _segmentOf[generation];
        Segment storage s = _segments[id];
        if (s.level >= _height || _stack[s.level] != id) return true;
        return s.lowestCut != 0 && generation >= s.lowestCut;
    }

    /// @dev Cuts a generation that is not cut yet, and everything that builds on it.
    function _cut(uint64 generation) internal {
        Segment storage s = _segments[_segmentOf[generation]];
        s.lowestCut = generation;
        // Attack: a fall far below, so that who restarts has to walk through all that was built on it.
        _height = s.level + 1;
        emit Cut(generation);
    }

    /// @dev The newest generation that is not cut, if `last` is the newest of the top segment when nothing of it is.
    /// @return generation its number
    /// @return isEmpty nothing of the top segment is left
    function _newest(uint64 last) internal view returns (uint64 generation, bool isEmpty) {
        Segment storage top = _segments[_stack[_height - 1]];
        generation = top.lowestCut != 0 ? top.lowestCut - 1 : last;
        isEmpty = generation <= top.first;
        if (isEmpty) generation = top.parent;
    }

    /// @dev A round opens: the top segment goes on with it, or a new one begins.
    function _continue(uint64 round, uint64 parent, bool isEmpty) internal {
        // The last segment goes on only if its newest generation is that of the round before.
        if (_height == 0 || isEmpty || parent != round) {
            if (isEmpty && _height != 0) --_height;
            _segments[++_count] = Segment(round, parent, 0, _height);
            _stack[_height++] = _count;
        }
        _segmentOf[round + 1] = _stack[_height - 1];
    }
}
