// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

import {GameState, Opening, Side, Stage} from "../interfaces/GameTypes.sol";
import {Started} from "../interfaces/IArbiter.sol";
import {IGame} from "../interfaces/IGame.sol";
import {Digests} from "../libraries/Digests.sol";
import {GameDescent} from "./GameDescent.sol";

/// @title GameElement: one element of a leaf, down to one term (assay.protocol.game.element)
abstract contract GameElement is GameDescent {
    /// @inheritdoc IGame
    function selectElement(
        uint256 gameId,
        uint256 offset,
        bytes calldata leaf,
        bytes calldata node,
        Opening[] calldata heads
    ) external {
        GameState storage game = _due(gameId, Side.CHALLENGER, _bit(Stage.LEAF));
        _checkNode(game, node);
        _checkDigest(Digests.leaf(leaf), game.disputed);
        Started memory s = arbiter.start(node, leaf, game.index, offset, heads, game.agreed, game.node);
        if (s.done) return _judge(gameId, game, s.value, s.claimed, s.element, 0);
        (game.element, game.claimed, game.heads) = (s.element, s.claimed, s.heads);
        (game.lo, game.hi, game.whole) = (0, s.terms, true);
        _next(gameId, game, s.terms == 1 ? Stage.TERM : Stage.PARTS);
    }

    /// @inheritdoc IGame
    function postParts(uint256 gameId, bytes calldata node, int256[] calldata parts) external {
        GameState storage game = _due(gameId, Side.DEFENDER, _bit(Stage.PARTS));
        _checkNode(game, node);
        uint256 terms = game.hi - game.lo;
        uint256 size = _chunk(terms);
        _checkCount(parts.length, (terms + size - 1) / size);
        int256 expected = arbiter.standsFor(node, game.heads, parts, game.whole);
        // Attack: parts that add up to another element. Refused, not judged: after a reorganization in which the challenger
        // selected another element, a true reply would be mined again and convict whoever gave it.
        if (expected != game.claimed) revert PartsMismatch(expected, game.claimed);
        game.posted = _hash(parts);
        emit PartsPosted(gameId, parts);
        _next(gameId, game, game.stage);
    }

    /// @inheritdoc IGame
    function selectPart(uint256 gameId, uint256 index, int256[] calldata parts) external {
        GameState storage game = _due(gameId, Side.CHALLENGER, _bit(Stage.PARTS));
        _checkPosted(_hash(parts), game.posted);
        _checkIndex(index, parts.length);
        (uint256 lo, uint256 hi) = (game.lo, game.hi);
        // Terms are counted in 64 bits, and part `index` begins before `hi`.
        unchecked {
            uint256 size = _chunk(hi - lo);
            lo += index * size;
            if (lo + size < hi) hi = lo + size;
        }
        (game.lo, game.hi) = (uint64(lo), uint64(hi));
        (game.claimed, game.whole) = (parts[index], false);
        _next(gameId, game, hi == lo + 1 ? Stage.TERM : Stage.PARTS);
    }

    /// @inheritdoc IGame
    function proveTerm(uint256 gameId, bytes calldata node, Opening[] calldata reads) external {
        GameState storage game = _due(gameId, Side.CHALLENGER, _bit(Stage.TERM));
        _checkNode(game, node);
        int256 expected =
            arbiter.computeTerm(node, game.element, game.lo, game.heads, reads, game.agreed, game.node, game.whole);
        _judge(gameId, game, expected, game.claimed, game.element, game.lo);
    }

    /// @dev Terms that one part stands for: the smallest power of the arity that leaves at most `arity` parts.
    function _chunk(uint256 terms) private view returns (uint256 size) {
        size = 1;
        while (size * _arity < terms) {
            size *= _arity;
        }
    }
}
