// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

import {Side, Stage} from "../interfaces/GameTypes.sol";
import {Merkle} from "./Merkle.sol";

/// @title GameBounds: extensions of turns, and how many moves and seconds a game can take (assay.protocol.game.clock)
library GameBounds {
    /// @notice How often each side may defer in a game, and by how many seconds at a time.
    uint256 internal constant DEFERRALS = 3;
    uint64 internal constant DEFERRAL = 1 hours;

    /// @notice Seconds: the budget of each side for a whole game, and the extension of a turn with and without a re-execution.
    struct Clock {
        uint64 budget;
        uint64 replay;
        uint64 move;
    }

    /// @notice How large a claim is, in steps, nodes, leaves of the largest tensor, terms of the longest reduction, slots of the longest list of Y.
    struct Shape {
        uint256 steps;
        uint256 nodes;
        uint256 leaves;
        uint256 terms;
        uint256 slots;
    }

    /// @notice Most moves of each side, by whether they need a re-execution: the challenger's do at STEPS and NODES alone.
    struct Moves {
        uint256 defender;
        uint256 bisection;
        uint256 challenger;
    }

    /// @notice No claim is larger: what the widths of the fields admit.
    function largest() internal pure returns (Shape memory) {
        return Shape(type(uint32).max, 1 << 20, 1 << 57, type(uint64).max, type(uint32).max);
    }

    /// @notice Whether a turn's mover must execute a step again: both sides at STEPS and NODES, then the defender.
    function needsReplay(Stage stage, Side side) internal pure returns (bool) {
        return stage == Stage.STEPS || stage == Stage.NODES || side == Side.DEFENDER;
    }

    /// @notice Rounds of posting and bisection until `width` positions have become one.
    function bisections(uint256 width, uint256 arity) internal pure returns (uint256 rounds) {
        while (width > 1) {
            uint256 m = width < arity ? width : arity;
            width = (width + m - 1) / m;
            ++rounds;
        }
    }

    /// @notice Openings until a tree over `count` digests is open at level 0; at least 1.
    function openings(uint256 count, uint256 levels) internal pure returns (uint256) {
        uint256 needed = (Merkle.height(count) + levels - 1) / levels;
        return needed == 0 ? 1 : needed;
    }

    /// @notice The most moves of a game down to an element, or to a slot of Y if that is longer.
    function most(Shape memory shape, uint256 arity, uint256 levels)
        internal
        pure
        returns (Moves memory element, Moves memory slot)
    {
        uint256 begin = bisections(shape.steps, arity) + bisections(shape.nodes + 1, arity);
        uint256 tensor = openings(shape.leaves, levels);
        uint256 parts = bisections(shape.terms, arity);
        uint256 slots = openings(shape.slots, levels);
        element = Moves(begin + 1 + tensor + parts, begin, tensor + 2 + parts);
        slot = Moves(begin + 1 + slots, begin, slots + 2);
    }

    /// @notice Seconds from the opening of a game until it can be ended, whatever both sides do.
    function longestGame(Shape memory shape, uint256 arity, uint256 levels, Clock memory clock)
        internal
        pure
        returns (uint256)
    {
        (Moves memory element, Moves memory slot) = most(shape, arity, levels);
        uint256 a = _time(element, clock);
        uint256 b = _time(slot, clock);
        return 2 * (uint256(clock.budget) + DEFERRALS * DEFERRAL) + (a > b ? a : b) + 1;
    }

    /// @notice The most replies that a defender can make in any game.
    function mostReplies(uint256 arity, uint256 levels) internal pure returns (uint256) {
        (Moves memory element, Moves memory slot) = most(largest(), arity, levels);
        return element.defender > slot.defender ? element.defender : slot.defender;
    }

    function _time(Moves memory moves, Clock memory clock) private pure returns (uint256) {
        return (moves.defender + moves.bisection) * clock.replay + moves.challenger * clock.move;
    }
}
