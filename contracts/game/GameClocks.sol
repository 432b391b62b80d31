// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

import {GameState, Side, Stage} from "../interfaces/GameTypes.sol";
import {IGame} from "../interfaces/IGame.sol";
import {IRunCharter} from "../interfaces/IRunCharter.sol";
import {Admitted, Program, RunTerms} from "../interfaces/RunTypes.sol";
import {GameBounds} from "../libraries/GameBounds.sol";
import {Programs} from "../libraries/Programs.sol";

/// @title GameClocks: the programs of a run's games and their clocks (assay.protocol.game.clock)
/// @notice Each side has a budget for the whole game, and each turn an extension, longer where its mover must execute a
/// step again. At a position where the claimant has posted its list in any game, the challenger's clock runs at once.
abstract contract GameClocks is IGame {
    /// @dev Bounds of a well-formed program: 2^40 elements of 8 bytes, 2^40 terms.
    uint256 private constant MAX_LEAVES = 1 << 33;
    uint256 private constant MAX_TERMS = 1 << 40;

    IRunCharter public immutable charter;
    uint256 internal immutable _arity;
    uint256 internal immutable _levels; // log2(arity)
    uint64 internal immutable _budget;
    uint64 internal immutable _replay;
    uint64 internal immutable _move;
    uint256 internal immutable _feeCap;

    mapping(uint256 gameId => GameState) internal _games;
    mapping(bytes32 root => Programs.Info) internal _programs;
    mapping(bytes32 position => bytes32) public positionCache;

    constructor(IRunCharter charter_) {
        RunTerms memory terms = charter_.runTerms();
        charter = charter_;
        uint256 arity_ = terms.clocks.arity;
        if (arity_ < 2 || arity_ > 64 || arity_ & (arity_ - 1) != 0) revert WrongArity(arity_);
        _arity = arity_;
        uint256 levels_ = 1;
        while (arity_ > (uint256(1) << levels_)) ++levels_;
        _levels = levels_;
        // Attack: a chain that carries nothing of a side for a while. The budget is all that it may lose so in a game, at
        // whichever moves; counted at every one, the chain's delay would make games of weeks.
        (_budget, _replay, _move) = (terms.clocks.budget, terms.clocks.replay, terms.clocks.move);
        _feeCap = terms.chain.feeCap;
        uint256 allowed = terms.timing.longestDispute;
        Admitted[] memory admitted = charter_.programs();
        for (uint256 i = 0; i < admitted.length; ++i) {
            _admit(admitted[i].program, admitted[i].steps, levels_, allowed);
        }
    }

    /// @dev Registers one of the run's programs; no game on it may outlast what windows and exits are computed with.
    function _admit(Program memory program, uint256 steps, uint256 levels_, uint256 allowed) private {
        Programs.Info memory info = Programs.parse(program.header, program.tree);
        // Attack: a malformed header in the charter.
        if (info.nodes == 0) revert MalformedProgram(program.root);
        _programs[program.root] = info;
        uint256 slots;
        for (uint256 i = 0; i < info.outputs.length; ++i) {
            if (info.outputs[i] > slots) slots = info.outputs[i];
        }
        uint256 longest = GameBounds.longestGame(
            GameBounds.Shape(steps, info.nodes, MAX_LEAVES, MAX_TERMS, slots),
            uint256(1) << levels_,
            levels_,
            GameBounds.Clock(_budget, _replay, _move)
        );
        // Attack: clocks too long for the run's windows.
        if (longest > allowed) revert DisputeTooLong(longest, allowed);
    }

    /// @dev The position that a list is posted at; the claim's id does not bind the program of an attestation.
    function _position(GameState storage game) internal view returns (bytes32) {
        return keccak256(
            // Attack: a list of another claim with the same X and Y, another program, step or height.
            abi.encode(game.claimId, game.program, game.stage, game.step, game.lo, game.hi, game.agreed, game.disputed)
        );
    }

    /// @dev A list posted at the same position of another game counts as posted in this one.
    function _reuse(uint256 gameId, GameState storage game, bytes32 list) internal {
        game.posted = list;
        emit DigestsReused(gameId, list);
    }

    /// @dev The clock of the side to move starts: the challenger's where the list that the defender would post is known.
    function _startTurn(uint256 gameId, GameState storage game, address mover) internal {
        (Stage stage, Side turn) = (game.stage, game.turn);
        if (turn == Side.DEFENDER && (stage == Stage.STEPS || stage == Stage.NODES)) {
            bytes32 list = positionCache[_position(game)];
            // Attack: the flood's cost to a defender's computer. What it answered once it need not answer again.
            if (list != 0) {
                _reuse(gameId, game, list);
                game.turn = turn = Side.CHALLENGER;
            }
        }
        uint64 left = turn == Side.DEFENDER ? game.defenderBudget : game.challengerBudget;
        uint64 deadline = uint64(block.timestamp) + left + _extension(stage, turn);
        (game.turnStarted, game.deadline) = (uint64(block.timestamp), deadline);
        emit Moved(gameId, mover, stage, turn, deadline);
    }

    /// @dev Takes the time used above the extension from the mover's budget; the move was in time.
    function _stopTurn(GameState storage game) internal {
        uint64 started = game.turnStarted;
        // A side that deferred may move within the hour, before its clock runs on.
        uint64 free = started + _extension(game.stage, game.turn);
        if (block.timestamp <= free) return;
        uint64 used = uint64(block.timestamp) - free;
        if (game.turn == Side.DEFENDER) game.defenderBudget -= used;
        else game.challengerBudget -= used;
    }

    function _extension(Stage stage, Side side) private view returns (uint64) {
        return GameBounds.needsReplay(stage, side) ? _replay : _move;
    }
}
