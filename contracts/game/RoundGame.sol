// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

import {Math} from "@openzeppelin/contracts/utils/math/Math.sol";
import {GameState} from "../interfaces/GameTypes.sol";
import {IArbiter} from "../interfaces/IArbiter.sol";
import {IRunCharter, RunTerms} from "../interfaces/IRunCharter.sol";
import {ClaimRef, ClaimView, IBeneficiary} from "../interfaces/IClaims.sol";
import {IRoundGame} from "../interfaces/IRoundGame.sol";
import {RunTimes} from "../libraries/RunTimes.sol";
import {GameDescent} from "./GameDescent.sol";
import {GameElement} from "./GameElement.sol";
import {GameMoney} from "./GameMoney.sol";

/// @title RoundGame: the dispute game of a run of the second round
/// @notice Its books say what share of a lock is the bounty, and whose. Third parties come through Challenges.
contract RoundGame is GameElement, IRoundGame {
    address private immutable _challenges;
    uint256 private immutable _kept; // what pays for a winner's gas at the cap, in wei

    constructor(IRunCharter charter_, IArbiter arbiter_) GameMoney(charter_) GameDescent(arbiter_) {
        RunTerms memory terms = charter_.runTerms();
        (_challenges, _kept) = (charter_.roundModules().challenges, RunTimes.minKept(terms.chain, terms.clocks.arity));
    }

    /// @inheritdoc IRoundGame
    function openFor(ClaimRef calldata ref, address challenger, bytes32 ownRoot) external returns (uint256 gameId) {
        // Attack: a game in somebody else's name, with its bond.
        if (msg.sender != _challenges) revert NotChallenges(msg.sender);
        return _challenge(challenger, ref, ownRoot);
    }

    /// @dev Whoever the bounty belongs to, who played the game is paid first what it advanced, and its gas.
    /// Attack: a puppet's accusation of oneself, so that false roots are challenged for nothing inside a short window.
    function _pay(GameState storage game, bytes32 lockId, uint256 amount, address beneficiary) internal override {
        uint256 own = beneficiary == address(0) ? amount : Math.min(amount, game.advanced + _kept);
        _seize(lockId, game.challenger, own);
        if (amount == own) return;
        _seize(lockId, beneficiary, amount - own);
        IBeneficiary(beneficiary).onBounty(lockId, amount - own);
    }
}
