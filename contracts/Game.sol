// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

import {GameState} from "./interfaces/GameTypes.sol";
import {IArbiter} from "./interfaces/IArbiter.sol";
import {ICharter} from "./interfaces/ICharter.sol";
import {ClaimRef, ClaimView} from "./interfaces/IClaims.sol";
import {CommittedChallenges} from "./game/CommittedChallenges.sol";
import {GameDescent} from "./game/GameDescent.sol";
import {GameElement} from "./game/GameElement.sol";
import {GameMoney} from "./game/GameMoney.sol";

/// @title Game: the dispute game of one run, down to one element that this contract computes (assay.protocol.game.machine)
/// @notice The arbiter, fixed at construction, checks proofs and computes the element; turns, clocks and money are in contracts/game.
contract Game is GameElement, CommittedChallenges {
    constructor(ICharter charter_, IArbiter arbiter_)
        GameMoney(charter_)
        GameDescent(arbiter_)
        CommittedChallenges(charter_)
    {}

    function _lockDeposit(bytes32 id, address owner, uint256 amount) internal override nonReentrant {
        _lock(id, owner, amount);
    }

    function _endDeposit(bytes32 id, uint256 amount, bool burned) internal override nonReentrant {
        if (burned) _burn(id, amount);
        else _release(id, amount);
    }

    function _openRevealed(ClaimRef calldata ref, bytes32 ownRoot) internal override returns (uint256 gameId) {
        return _challenge(msg.sender, ref, ownRoot);
    }

    function _pay(GameState storage game, bytes32 lockId, uint256 amount, address) internal override {
        _seize(lockId, game.challenger, amount);
    }
}
