// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

import {Math} from "@openzeppelin/contracts/utils/math/Math.sol";
import {IRunCharter} from "../interfaces/IRunCharter.sol";
import {RunEconomics} from "../interfaces/RunTypes.sol";

/// @title RunPrices: the least stakes at which no lie about whole commitments pays (equal to assay/protocol/economics/stake_bounds.py)
/// @notice Symbols and reasons: docs/economics.md, docs/adr/0033-second-round.md. Every bound rounds up, so that terms at a bound are never below it.
/// Chances are fixed point of 18 digits, rounded up where they are of a lie that is missed.
library RunPrices {
    uint256 internal constant PPM = 1e6;
    uint256 internal constant SQUARE = 1e12; // products of two rates
    uint256 internal constant ONE = 1e18;
    uint256 internal constant INVERSE_E_PPM = 367_880; // 1 / e, rounded up
    /// @dev S over the least lock at which laziness does not pay: an arbitrary update then costs about W beyond its own pay.
    uint256 internal constant LOCK_MULTIPLE = 2;
    uint256 internal constant MAX_CAPACITY = 16;
    uint256 internal constant MAX_UNSETTLED = 64;
    /// @dev In wei. The largest product below, m G mu 10^12, stays below 2^256 with it: 48 * 177 * 10^6 * 2^112 * 10^18 * 10^12.
    uint256 internal constant MAX_AMOUNT = type(uint112).max;
    /// @dev Epochs whose attestations can be disputed at once: a ticket has c duties open in each.
    uint256 internal constant OPEN_EPOCHS = 3;

    /// @dev Somebody who is bribed to say nothing: the chance that it goes unseen, of 10^18, what of its B it risks, of 10^30, and what it saves beside
    /// unsettled pay, in wei times 10^6.
    struct Silence {
        uint256 missed;
        uint256 risk;
        uint256 saved;
    }

    /// @notice Reverts by name where the terms would let somebody gain by cheating.
    /// @param w W, full pay of a commitment, in wei
    /// @param unsettled U, rounds of a seat's pay that are unsettled at once
    function check(RunEconomics memory e, uint256 w, uint256 unsettled) internal pure {
        if (w == 0) revert IRunCharter.ReferencePriceZero();
        _checkRate("audit", e.auditPpm, PPM);
        _checkRate("re-audit", e.reauditPpm, PPM - 1);
        _checkRate("cartel", e.cartelPpm, PPM - 1);
        _checkRate("drawn bounty", e.drawnBountyPpm, PPM);
        _checkRate("third-party bounty", e.thirdBountyPpm, PPM / 2);
        if (e.capacity > MAX_CAPACITY) revert IRunCharter.ScheduleTooLong("capacity", e.capacity, MAX_CAPACITY);
        if (unsettled > MAX_UNSETTLED) {
            revert IRunCharter.ScheduleTooLong("unsettled rounds", unsettled, MAX_UNSETTLED);
        }
        if (e.wage == 0) revert IRunCharter.ValueZero("wage");
        if (e.auditPpm == 0) revert IRunCharter.ValueZero("audit rate");
        if (e.reauditPpm == 0) revert IRunCharter.ValueZero("re-audit rate");
        if (e.capacity == 0) revert IRunCharter.ValueZero("capacity");
        if (e.shifts == 0) revert IRunCharter.ValueZero("shifts");
        if (e.challengeBond == 0) revert IRunCharter.ValueZero("challenge bond");
        if (e.challengeDeposit == 0) revert IRunCharter.ValueZero("challenge deposit");
        // Attack: terms whose sums overflow what settles and draws.
        checkAmount("price", w, MAX_AMOUNT);
        checkAmount("wage", e.wage, MAX_AMOUNT);
        checkAmount("merge pay", e.mergePay, w);
        checkAmount("claim lock", e.seatLock, MAX_AMOUNT);
        checkAmount("ticket stake", e.ticketBond, MAX_AMOUNT);
        checkAmount("shares per duty", e.sharesPerDuty, MAX_AMOUNT);
        // Attack: a charter whose challenges nobody honest can afford. Who can stake a ticket can challenge.
        checkAmount("challenge bond", e.challengeBond, e.ticketBond);
        checkAmount("challenge deposit", e.challengeDeposit, e.ticketBond);
        if (e.seatFee > w) revert IRunCharter.SeatFeeTooHigh(e.seatFee, w);
        uint256 minimum = minLock(e, w);
        // Attack: many false commitments, to be slashed once.
        if (e.seatLock < minimum) revert IRunCharter.ClaimLockTooSmall(e.seatLock, minimum);
        minimum = minStake(e, w, unsettled);
        // Attack: attest without replaying, or for a bribe; or insure one's own lock by a puppet's false accusation.
        if (e.ticketBond < minimum) revert IRunCharter.BondTooSmall(e.ticketBond, minimum);
    }

    /// @notice S >= 2 W / (p_h r).
    function minLock(RunEconomics memory e, uint256 w) internal pure returns (uint256) {
        return Math.ceilDiv(LOCK_MULTIPLE * w * SQUARE * SQUARE, honest(e, e.auditPpm) * lostOf(e));
    }

    /// @notice B against invented results, insured locks, bribed auditors and bribed re-auditors, whichever is most; m = 3 c open duties.
    function minStake(RunEconomics memory e, uint256 w, uint256 unsettled) internal pure returns (uint256 least) {
        (uint256 p, uint256 q) = (honest(e, e.auditPpm), honest(e, e.reauditPpm));
        uint256 lost = lostOf(e);
        least = Math.ceilDiv(uint256(e.wage) * SQUARE * SQUARE, q * lost);
        // Attack: a puppet's false accusation, kept in its game as long as one can last, that owns the pot of all lies meanwhile.
        least = Math.max(
            least, Math.ceilDiv(w * INVERSE_E_PPM * (2 * SQUARE + p) * SQUARE * SQUARE, 2 * PPM * p * q * lost)
        );
        uint256 unpaid = unsettled * (w + e.mergePay) * PPM;
        Silence[2] memory silences = _silences(e);
        for (uint256 i = 0; i < silences.length; ++i) {
            uint256 prize = OPEN_EPOCHS * e.capacity * (silences[i].saved + unpaid);
            least = Math.max(least, Math.ceilDiv(prize * silences[i].missed * PPM, silences[i].risk));
        }
    }

    /// @notice The largest U at which B outweighs a bribe for silence: `minStake` is at most B there, and more one round later, unless U
    /// is not what asks for most.
    function mostUnsettled(RunEconomics memory e, uint256 w) internal pure returns (uint256) {
        uint256 unpaid = type(uint256).max;
        Silence[2] memory silences = _silences(e);
        for (uint256 i = 0; i < silences.length; ++i) {
            uint256 prize = uint256(e.ticketBond) * silences[i].risk / (silences[i].missed * PPM);
            unpaid = Math.min(unpaid, Math.saturatingSub(prize / (OPEN_EPOCHS * e.capacity), silences[i].saved));
        }
        return unpaid / ((w + e.mergePay) * PPM);
    }

    /// @dev A bribed auditor, who saves what an accused liar loses, and a bribed re-auditor, who saves the wages of a first liar's open duties too; m
    /// duties are open. Who audits the same work accuses its maker alone: an attestation falls by who is drawn for it.
    function _silences(RunEconomics memory e) private pure returns (Silence[2] memory silences) {
        (uint256 p, uint256 q) = (honest(e, e.auditPpm), honest(e, e.reauditPpm));
        (uint256 lost, uint256 m) = (lostOf(e), OPEN_EPOCHS * e.capacity);
        uint256 saved = uint256(e.seatLock) * (PPM - e.drawnBountyPpm) + e.wage * PPM;
        uint256 missed = Math.ceilDiv(ONE * SQUARE, SQUARE + q);
        silences[0].missed = Math.ceilDiv(ONE * SQUARE * SQUARE, (SQUARE + p) * (SQUARE + q));
        (silences[0].risk, silences[0].saved) = ((ONE - power(missed, m)) * lost, saved);
        uint256 risk = (ONE - power(missed, 2 * m)) * lost;
        uint256 forgone = m * missed * (PPM - e.drawnBountyPpm) * PPM;
        // Attack: stakes so many times covered that the prize of silence grows with them as fast as its risk.
        if (risk <= forgone) revert IRunCharter.NoStakeSuffices(m);
        silences[1] = Silence(missed, risk - forgone, saved + (m - 1) * e.wage * PPM);
    }

    /// @notice p_h or q_h: what tickets outside the cartel replay, times 10^12.
    function honest(RunEconomics memory e, uint256 ppm) internal pure returns (uint256) {
        return ppm * (PPM - e.cartelPpm);
    }

    /// @notice r = 1 - beta_f - (beta_d - beta_f) v: what of a slash a cartel loses, times 10^12.
    /// @dev Attack: puppets of the accused take beta_f, as third parties, or as advances and gas; its drawn tickets share in the rest.
    function lostOf(RunEconomics memory e) internal pure returns (uint256) {
        return SQUARE - e.thirdBountyPpm * (PPM - e.cartelPpm) - uint256(e.drawnBountyPpm) * e.cartelPpm;
    }

    /// @notice x^n, each product rounded up.
    function power(uint256 x, uint256 n) internal pure returns (uint256 result) {
        result = ONE;
        for (uint256 i = 0; i < n; ++i) {
            result = Math.ceilDiv(result * x, ONE);
        }
    }

    function checkAmount(bytes32 what, uint256 amount, uint256 maximum) internal pure {
        if (amount > maximum) revert IRunCharter.AmountTooLarge(what, amount, maximum);
    }

    function _checkRate(bytes32 what, uint256 ppm, uint256 maximum) private pure {
        if (ppm > maximum) revert IRunCharter.RateTooHigh(what, ppm, maximum);
    }
}
