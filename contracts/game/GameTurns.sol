// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

import {GameState, Outcome, Side, Stage} from "../interfaces/GameTypes.sol";
import {IGame} from "../interfaces/IGame.sol";
import {GameBounds} from "../libraries/GameBounds.sol";
import {GameView} from "../libraries/GameView.sol";
import {Programs} from "../libraries/Programs.sol";
import {GameMoney} from "./GameMoney.sol";

/// @title GameTurns: whose turn it is, what a move is checked against, and how a game ends (assay.protocol.game.machine)
abstract contract GameTurns is GameMoney {
    /// @dev The stages of a game that is being played, a bit per stage.
    uint256 private constant RUNNING = (1 << uint256(Stage.OVER)) - (1 << uint256(Stage.STEPS));

    /// @dev The game if a move of `side` in one of `stages` (a bit per stage) is due from the caller, in time.
    function _due(uint256 gameId, Side side, uint256 stages) internal view returns (GameState storage game) {
        game = _games[gameId];
        if ((stages >> uint256(game.stage)) & 1 == 0) revert WrongStage(gameId, game.stage);
        address party = side == Side.DEFENDER ? game.defender : game.challenger;
        // Attack: a sock puppet that moves for somebody else.
        if (game.turn != side || msg.sender != party) revert NotYourTurn(gameId, msg.sender);
        if (block.timestamp > game.deadline) revert TooLate(gameId, game.deadline);
    }

    /// @dev Ends the mover's turn and begins the next; a reply of the defender is refunded. The sides take turns, except that
    /// the challenger, having selected one term or slot, goes on to prove it.
    function _next(uint256 gameId, GameState storage game, Stage stage) internal {
        _stopTurn(game);
        bool reply = game.turn == Side.DEFENDER;
        if (reply) game.turn = Side.CHALLENGER;
        else if (stage != Stage.TERM && stage != Stage.SLOT) game.turn = Side.DEFENDER;
        game.stage = stage;
        _startTurn(gameId, game, msg.sender);
        if (reply) _refund(gameId, game);
    }

    /// @dev The verdict of the contract's own value: the defender lost if its claim differs, else the challenger did.
    function _judge(
        uint256 gameId,
        GameState storage game,
        int256 expected,
        int256 claimed,
        uint64 element,
        uint64 term
    ) internal {
        Side side = expected != claimed ? Side.DEFENDER : Side.CHALLENGER;
        _close(gameId, game, side, Outcome.LEAF, element, term, expected, claimed);
    }

    /// @inheritdoc IGame
    function defer(uint256 gameId) external {
        Side side = _games[gameId].turn;
        GameState storage game = _due(gameId, side, RUNNING);
        // Attack: deferring to drag a game on.
        if (block.basefee <= _feeCap) revert FeeNotAboveCap(block.basefee, _feeCap);
        uint256 taken = side == Side.DEFENDER ? game.defenderDeferrals++ : game.challengerDeferrals++;
        if (taken == GameBounds.DEFERRALS) revert NoDeferralLeft(gameId, msg.sender);
        game.turnStarted += GameBounds.DEFERRAL;
        game.deadline += GameBounds.DEFERRAL;
        emit Deferred(gameId, msg.sender, GameBounds.DEFERRALS - 1 - taken);
        emit Moved(gameId, msg.sender, game.stage, side, game.deadline);
    }

    /// @inheritdoc IGame
    function timeout(uint256 gameId) external {
        GameState storage game = _games[gameId];
        if (game.stage == Stage.NONE || game.stage == Stage.OVER) revert WrongStage(gameId, game.stage);
        // Attack: silence, at any move. Anyone ends the game once the clock ran out.
        if (block.timestamp <= game.deadline) revert TooEarly(gameId, game.deadline);
        _close(gameId, game, game.turn, Outcome.DEFAULT, game.element, 0, 0, 0);
    }

    /// @inheritdoc IGame
    function gameOf(uint256 gameId) external view returns (GameState memory) {
        GameView.answer(_games[gameId]);
    }

    /// @dev The game is over; `side` lost.
    function _close(
        uint256 gameId,
        GameState storage game,
        Side side,
        Outcome outcome,
        uint64 element,
        uint64 term,
        int256 expected,
        int256 claimed
    ) private {
        (game.stage, game.turn) = (Stage.OVER, Side.NONE);
        emit Moved(gameId, msg.sender, Stage.OVER, Side.NONE, game.deadline);
        emit Verdict(
            gameId,
            game.claimId,
            side == Side.DEFENDER ? game.defender : game.challenger,
            outcome,
            game.family,
            game.node,
            element,
            term,
            expected,
            claimed
        );
        _settle(gameId, game, side);
    }

    /// @dev The program of a game.
    function _programOf(GameState storage game) internal view returns (Programs.Info storage) {
        return _programs[game.program];
    }

    // --- checks shared by the moves

    function _bit(Stage stage) internal pure returns (uint256) {
        return 1 << uint256(stage);
    }

    function _checkCount(uint256 got, uint256 wanted) internal pure {
        if (got != wanted) revert WrongCount(got, wanted);
    }

    function _checkDigest(bytes32 got, bytes32 wanted) internal pure {
        if (got != wanted) revert WrongDigest(got, wanted);
    }

    function _checkPosted(bytes32 got, bytes32 wanted) internal pure {
        if (got != wanted) revert ListMismatch(got, wanted);
    }

    function _checkIndex(uint256 index, uint256 count) internal pure {
        if (index >= count) revert IndexOutOfRange(index, count);
    }

    /// @dev K(list): keccak-256 over the words.
    function _hash(bytes32[] calldata list) internal pure returns (bytes32) {
        return keccak256(abi.encodePacked(list));
    }

    function _hash(int256[] calldata list) internal pure returns (bytes32) {
        return keccak256(abi.encodePacked(list));
    }
}
