// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

import {Math} from "@openzeppelin/contracts/utils/math/Math.sol";
import {GameState} from "../interfaces/GameTypes.sol";
import {IArbiter} from "../interfaces/IArbiter.sol";
import {IRunCharter} from "../interfaces/IRunCharter.sol";
import {ClaimRef, ClaimView, IBeneficiary} from "../interfaces/IClaims.sol";
import {IGame} from "../interfaces/IGame.sol";
import {IRoundGate, RunModules} from "../interfaces/IRoundTerms.sol";
import {RunTerms} from "../interfaces/RunTypes.sol";
import {RunTimes} from "../libraries/RunTimes.sol";
import {GameDescent} from "./GameDescent.sol";
import {GameElement} from "./GameElement.sol";
import {GameMoney} from "./GameMoney.sol";

/// @title Game: the dispute game of one run, down to one element that this contract computes (assay.protocol.game.machine)
/// @notice The arbiter, fixed at construction, checks proofs and computes the element. The books say what share of a lock is the bounty, and whose.
/// Third parties come through Challenges.
contract Game is GameElement {
    address private immutable _challenges;
    IRoundGate private immutable _gate;
    uint256 private immutable _kept; // what pays for a winner's gas at the cap, in wei

    constructor(IRunCharter charter_, IArbiter arbiter_) GameMoney(charter_) GameDescent(arbiter_) {
        RunTerms memory terms = charter_.runTerms();
        RunModules memory modules = charter_.roundModules();
        (_challenges, _gate) = (modules.challenges, IRoundGate(modules.escrow));
        _kept = RunTimes.minKept(terms.chain, terms.clocks.arity);
    }

    /// @inheritdoc IGame
    function openFor(ClaimRef calldata ref, address challenger, bytes32 ownRoot) external returns (uint256 gameId) {
        // Attack: a game in somebody else's name, with its bond.
        if (msg.sender != _challenges) revert NotChallenges(msg.sender);
        return _challenge(challenger, ref, ownRoot);
    }

    /// @dev Attack: after a wind-down, convict claims whose locks were released, and suspend or freeze what has left.
    function _challenge(address challenger, ClaimRef calldata ref, bytes32 ownRoot)
        internal
        override
        returns (uint256 gameId)
    {
        if (!_gate.isStopped()) return super._challenge(challenger, ref, ownRoot);
        // A challenge that was committed to before it ends like one of a claim that is closed: its deposit goes back.
        if (msg.sender != _challenges) revert RunStopped();
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
