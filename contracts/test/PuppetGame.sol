// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

import {ClaimRef, ClaimView} from "../interfaces/IClaims.sol";
import {IRunCharter} from "../interfaces/IRunCharter.sol";
import {IVault} from "../interfaces/IVault.sol";

/// @title PuppetGame: a game whose verdict the test names; money and books move as the real game moves them
contract PuppetGame {
    struct Played {
        ClaimRef ref;
        address challenger;
        address defender;
        bool over;
    }

    error NotChallengeable();
    error Over();

    event Opened(uint256 gameId);

    IRunCharter public immutable charter;
    IVault private immutable _vault;
    uint256 private immutable _bond;
    uint256 private immutable _bountyPpm;
    Played[] private _games;

    constructor(IRunCharter charter_) {
        charter = charter_;
        _vault = IVault(charter_.roundModules().vault);
        _bond = charter_.runTerms().economics.challengeBond;
        _bountyPpm = charter_.runTerms().economics.thirdBountyPpm;
    }

    function open(ClaimRef calldata ref) external returns (uint256 gameId) {
        ClaimView memory claim = charter.bookOf(ref.kind).claimOf(ref);
        bool inTime = block.timestamp >= claim.challengeableFrom && block.timestamp <= claim.challengeableUntil;
        if (!inTime || claim.fallen) revert NotChallengeable();
        gameId = _games.length;
        _games.push(Played(ref, msg.sender, claim.claimant, false));
        charter.bookOf(ref.kind).onOpened(ref, msg.sender);
        _vault.lock(_id(gameId), msg.sender, _bond);
        emit Opened(gameId);
    }

    function finish(uint256 gameId, bool convicted) external {
        Played storage game = _games[gameId];
        if (game.over) revert Over();
        game.over = true;
        ClaimView memory claim = charter.bookOf(game.ref.kind).claimOf(game.ref);
        bool first = charter.bookOf(game.ref.kind).onClosed(game.ref, convicted);
        if (!convicted) {
            _vault.seize(_id(gameId), game.defender, _bond / 2);
            _vault.burn(_id(gameId), _bond - _bond / 2);
            return;
        }
        _vault.release(_id(gameId));
        if (!first) return;
        uint256 bounty = claim.lockAmount * _bountyPpm / 1_000_000;
        _vault.seize(claim.lockId, game.challenger, bounty);
        _vault.burn(claim.lockId, claim.lockAmount - bounty);
    }

    function _id(uint256 gameId) private pure returns (bytes32) {
        return keccak256(abi.encode("puppet", gameId));
    }
}
