// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

import {ReentrancyGuardTransient} from "@openzeppelin/contracts/utils/ReentrancyGuardTransient.sol";
import {ICharter} from "../interfaces/ICharter.sol";
import {ClaimRef} from "../interfaces/IClaims.sol";
import {IRoundGame} from "../interfaces/IRoundGame.sol";
import {IVault} from "../interfaces/IVault.sol";
import {CommittedChallenges} from "./CommittedChallenges.sol";

/// @title Challenges: the challenges of third parties, apart from the game that they open
/// @notice Only deposits lie here; the game locks its own bond, from the same account.
contract Challenges is CommittedChallenges, ReentrancyGuardTransient {
    IRoundGame private immutable _game;
    IVault private immutable _vault;

    constructor(ICharter charter) CommittedChallenges(charter) {
        (_game, _vault) = (IRoundGame(charter.modules().game), IVault(charter.modules().vault));
    }

    function _lockDeposit(bytes32 id, address owner, uint256 amount) internal override nonReentrant {
        // The vault refuses amounts of zero.
        if (amount != 0) _vault.lock(id, owner, amount);
    }

    function _endDeposit(bytes32 id, uint256 amount, bool burned) internal override nonReentrant {
        if (amount == 0) return;
        if (burned) _vault.burn(id, amount);
        else _vault.release(id);
    }

    function _openRevealed(ClaimRef calldata ref, bytes32 ownRoot) internal override returns (uint256 gameId) {
        return _game.openFor(ref, msg.sender, ownRoot);
    }
}
