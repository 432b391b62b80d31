// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

import {IBounties} from "../interfaces/IBounties.sol";
import {ClaimRef, ClaimView, IClaims} from "../interfaces/IClaims.sol";
import {IRunCharter} from "../interfaces/IRunCharter.sol";
import {IVault} from "../interfaces/IVault.sol";

/// @title VerdictStage: a game without moves, whose verdict and beneficiary the test names; locks and books move as in a real one
contract VerdictStage {
    uint256 private constant BOUNTY_PPM = 970_000;

    IRunCharter private immutable _charter;
    IVault private immutable _vault;

    constructor(IRunCharter charter) {
        (_charter, _vault) = (charter, IVault(charter.roundModules().vault));
    }

    function open(ClaimRef calldata ref) external {
        _charter.bookOf(ref.kind).onOpened(ref, msg.sender);
    }

    function finish(ClaimRef calldata ref, bool convicted, address beneficiary) external {
        IClaims book = _charter.bookOf(ref.kind);
        ClaimView memory claim = book.claimOf(ref);
        if (!book.onClosed(ref, convicted)) return;
        uint256 bounty = claim.lockAmount * BOUNTY_PPM / 1_000_000;
        _vault.burn(claim.lockId, claim.lockAmount - bounty);
        _vault.seize(claim.lockId, beneficiary, bounty);
        address pots = _charter.roundModules().bounties;
        if (beneficiary == pots) IBounties(pots).onBounty(claim.lockId, bounty);
    }
}
