// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

import {GameState, Side, Stage} from "../interfaces/GameTypes.sol";
import {IArbiter, NodeOpened, NodePlace} from "../interfaces/IArbiter.sol";
import {IGame} from "../interfaces/IGame.sol";
import {Descriptor} from "../libraries/Descriptor.sol";
import {Digests} from "../libraries/Digests.sol";
import {Elements} from "../libraries/Elements.sol";
import {Merkle} from "../libraries/Merkle.sol";
import {Programs} from "../libraries/Programs.sol";
import {GameMoney} from "./GameMoney.sol";
import {GameTurns} from "./GameTurns.sol";

/// @title GameDescent: bisection, openings of nodes, trees and states, equalities of roots (assay.protocol.game.descent)
abstract contract GameDescent is GameTurns {
    using Programs for Programs.Info;

    IArbiter public immutable arbiter;

    constructor(IArbiter arbiter_) {
        arbiter = arbiter_;
    }

    // --- bisection: STEPS, NODES

    /// @inheritdoc IGame
    function postDigests(uint256 gameId, bytes32[] calldata digests) external {
        GameState storage game = _due(gameId, Side.DEFENDER, _bit(Stage.STEPS) | _bit(Stage.NODES));
        bytes32 position = _position(game);
        bytes32 known = positionCache[position];
        if (known != 0 && digests.length == 0) {
            _reuse(gameId, game, known);
        } else {
            uint256 width = game.hi - game.lo;
            // Attack: a list of another count, or that does not end in the disputed digest.
            _checkCount(digests.length, width < _arity ? width : _arity);
            _checkDigest(digests[digests.length - 1], game.disputed);
            bytes32 list = _show(gameId, game, digests);
            // Attack: a claimant that answers two challengers differently.
            if (known != 0) _checkPosted(list, known);
            positionCache[position] = list;
        }
        _next(gameId, game, game.stage);
    }

    /// @inheritdoc IGame
    function bisectDigests(uint256 gameId, uint256 index, bytes32[] calldata digests) external {
        GameState storage game = _due(gameId, Side.CHALLENGER, _bit(Stage.STEPS) | _bit(Stage.NODES));
        _checkPosted(_hash(digests), game.posted);
        _checkIndex(index, digests.length);
        if (index > 0) game.agreed = digests[index - 1];
        game.disputed = digests[index];
        (uint256 lo, uint256 hi) = (game.lo, game.hi);
        // lo < hi < 2^33 and index < 64.
        unchecked {
            uint256 width = hi - lo;
            hi = lo + width * (index + 1) / digests.length;
            lo += width * index / digests.length;
        }
        (game.lo, game.hi) = (uint64(lo), uint64(hi));
        Stage stage = game.stage;
        if (hi == lo + 1) {
            Programs.Info storage program = _programOf(game);
            if (stage == Stage.STEPS) {
                _beginNodes(game, program, uint32(hi), game.agreed, game.disputed);
                stage = Stage.NODES;
            } else {
                game.node = uint32(lo);
                stage = lo < program.nodes ? Stage.NODE : Stage.STATE;
            }
        }
        _next(gameId, game, stage);
    }

    /// @inheritdoc GameMoney
    function _beginNodes(
        GameState storage game,
        Programs.Info storage program,
        uint32 step,
        bytes32 before,
        bytes32 after_
    ) internal override {
        (game.step, game.before, game.after_) = (step, before, after_);
        (game.lo, game.hi) = (0, uint64(program.nodes) + 1);
        (game.agreed, game.disputed) = (Merkle.EMPTY_PREFIX, after_);
    }

    /// @dev Keeps the hash of a list and shows the list in an event.
    function _show(uint256 gameId, GameState storage game, bytes32[] calldata digests) private returns (bytes32 list) {
        list = _hash(digests);
        game.posted = list;
        emit DigestsPosted(gameId, list, digests);
    }

    // --- one node: NODE, ROOT

    /// @inheritdoc IGame
    function openNode(
        uint256 gameId,
        bytes calldata node,
        bytes32[] calldata programPath,
        bytes32[] calldata appendPath,
        bytes32[] calldata digests
    ) external {
        GameState storage game = _due(gameId, Side.DEFENDER, _bit(Stage.NODE));
        Programs.Info storage program = _programOf(game);
        NodeOpened memory opened = arbiter.openNode(
            NodePlace(program.tree, program.nodes, game.node, game.agreed, game.disputed, uint8(_levels)),
            node,
            programPath,
            appendPath,
            digests
        );
        (game.family, game.nodeHash, game.value) = (opened.family, keccak256(node), opened.value);
        (game.level, game.index, game.count, game.last) = (opened.level, 0, opened.count, opened.last);
        _show(gameId, game, digests);
        _next(gameId, game, _isRoot(opened.family) ? Stage.ROOT : Stage.TENSOR);
    }

    /// @inheritdoc IGame
    function proveRoot(uint256 gameId, bytes calldata node, bytes32[] calldata path, bytes calldata opening) external {
        GameState storage game = _due(gameId, Side.CHALLENGER, _bit(Stage.ROOT) | _bit(Stage.SLOT));
        bytes32 wanted;
        bytes32 claimed = game.value;
        (uint64 element, uint64 term) = (0, 0);
        if (game.stage == Stage.SLOT) {
            _checkCount(node.length, 0);
            uint32 source = uint32(_programOf(game).outputNode(game.listIndex, game.index));
            // Attack: an end state that is not what the trace ends in.
            wanted = arbiter.sourceRoot(source, path, opening, game.agreed);
            (claimed, element, term) = (game.disputed, game.index, game.listIndex);
            (game.node, game.family) = (source, Descriptor.OUTPUT);
        } else {
            _checkNode(game, node);
            wanted = arbiter.rootOf(node, path, opening, _programOf(game).inputs, game.before, game.agreed);
        }
        _judge(gameId, game, int256(uint256(wanted)), int256(uint256(claimed)), element, term);
    }

    function _isRoot(uint8 family) private pure returns (bool) {
        return family == Descriptor.INPUT || family == Descriptor.CONST || family == Descriptor.OUTPUT;
    }

    /// @dev A descriptor given again is the one that was opened.
    function _checkNode(GameState storage game, bytes calldata node) internal view {
        _checkDigest(keccak256(node), game.nodeHash);
    }

    // --- trees: TENSOR, LIST, LEAF

    /// @inheritdoc IGame
    function openSubtree(uint256 gameId, bytes32[] calldata digests) external {
        GameState storage game = _due(gameId, Side.DEFENDER, _bit(Stage.TENSOR) | _bit(Stage.LIST));
        (uint256 below, uint256 first, uint256 number) = Merkle.opening(game.count, game.level, game.index, _levels);
        _checkCount(digests.length, number);
        // Attack: garbage openings.
        bytes32 root = Merkle.root(digests);
        _checkDigest(game.whole ? Digests.list(uint32(game.count), root) : root, game.disputed);
        (game.level, game.index, game.whole) = (uint8(below), uint64(first), false);
        _show(gameId, game, digests);
        _next(gameId, game, game.stage);
    }

    /// @inheritdoc IGame
    function selectSubtree(uint256 gameId, uint256 index, bytes32[] calldata digests) external {
        GameState storage game = _due(gameId, Side.CHALLENGER, _bit(Stage.TENSOR) | _bit(Stage.LIST));
        _checkPosted(_hash(digests), game.posted);
        _checkIndex(index, digests.length);
        game.index += uint64(index);
        game.disputed = digests[index];
        Stage stage = game.stage;
        if (game.level == 0) stage = stage == Stage.TENSOR ? Stage.LEAF : Stage.SLOT;
        _next(gameId, game, stage);
    }

    /// @inheritdoc IGame
    function openLeaf(uint256 gameId, bytes calldata leaf) external {
        GameState storage game = _due(gameId, Side.DEFENDER, _bit(Stage.LEAF));
        // Attack: padding, a leaf of another length. It would belong to no element and could not be selected.
        _checkCount(leaf.length, game.index + 1 == game.count ? game.last : Elements.LEAF_BYTES);
        _checkDigest(Digests.leaf(leaf), game.disputed);
        emit LeafPosted(gameId, leaf);
        _next(gameId, game, game.stage);
    }

    // --- the end of a step: STATE

    /// @inheritdoc IGame
    function openState(uint256 gameId, bytes32[] calldata listRoots) external {
        GameState storage game = _due(gameId, Side.DEFENDER, _bit(Stage.STATE));
        _checkCount(listRoots.length, _programOf(game).outputs.length);
        _checkDigest(Digests.state(listRoots), game.disputed);
        _show(gameId, game, listRoots);
        _next(gameId, game, game.stage);
    }

    /// @inheritdoc IGame
    function selectList(uint256 gameId, uint256 index, bytes32[] calldata listRoots) external {
        GameState storage game = _due(gameId, Side.CHALLENGER, _bit(Stage.STATE));
        _checkPosted(_hash(listRoots), game.posted);
        _checkIndex(index, listRoots.length);
        uint32 count = _programOf(game).outputs[index];
        (game.listIndex, game.disputed) = (uint32(index), listRoots[index]);
        (game.count, game.level, game.index, game.whole) = (count, uint8(Merkle.height(count)), 0, true);
        _next(gameId, game, Stage.LIST);
    }
}
