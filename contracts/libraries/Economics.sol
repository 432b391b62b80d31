// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

import {Math} from "@openzeppelin/contracts/utils/math/Math.sol";
import {Economics, ICharter, Training, Windows} from "../interfaces/ICharter.sol";

/// @title EconomicsBounds: what a run must promise so that cheating does not pay (docs/economics.md; equal to assay/protocol/economics/formulas.py)
/// @notice Every bound rounds up, so that a charter at the bound is never below it.
library EconomicsBounds {
    uint256 internal constant PPM = 1_000_000;
    uint256 internal constant MIN_WINDOW = 600; // seconds: a loaded machine is never late
    uint256 internal constant MAX_WINDOW = 180 days; // beyond any use; a payee waits for sums of these
    uint256 internal constant MAX_DELAY = 30 days; // of the chain or of a clock: the least windows, sums of them, stay below MAX_WINDOW
    /// @dev In wei. The largest products stay below their types with it: 328 duties of 8 seats' shares in 128 bits, all shares of 2^24 rounds in the
    /// 208 bits of votes, and an escrow for rounds of 8 seats in what a vault holds (2^127).
    uint256 internal constant MAX_AMOUNT = type(uint112).max;
    uint256 internal constant MAX_RATE = 100 * PPM; // replays of a duty; wages for two hundred are set aside

    /// @notice W: full pay of one commitment, in wei.
    function price(Economics memory e) internal pure returns (uint256) {
        return uint256(e.unitPrice) * e.units;
    }

    /// @notice p_h: expected replays per interval by verifiers outside the cartel, in ppm.
    function honestPpm(Economics memory e) internal pure returns (uint256) {
        return uint256(e.auditPpm) * (PPM - e.cartelPpm) / PPM;
    }

    /// @notice S >= W / (n p_h (1 - beta)).
    function minClaimLock(Economics memory e, uint256 intervals) internal pure returns (uint256) {
        return Math.ceilDiv(price(e) * PPM * PPM, intervals * honestPpm(e) * (PPM - e.bountyPpm));
    }

    /// @notice B >= max(w / tau, (S (1 - beta) + W) / (q2 + p_h), 2 W), tau = phi + q2 + p.
    function minBond(Economics memory e) internal pure returns (uint256 bond) {
        uint256 tau = uint256(e.trapPpm) + e.whistlePpm + e.auditPpm;
        uint256 w = price(e);
        bond = Math.ceilDiv(uint256(e.wage) * PPM, tau);
        uint256 kept = uint256(e.claimLock) * (PPM - e.bountyPpm) + w * PPM;
        bond = Math.max(bond, Math.ceilDiv(kept, e.whistlePpm + honestPpm(e)));
        bond = Math.max(bond, 2 * w);
    }

    /// @notice Wages per duty that a round sets aside for a role drawn at this rate; draws beyond it are rare and paid from the free escrow.
    function wageCap(uint32 ppm) internal pure returns (uint256) {
        return 2 * Math.ceilDiv(ppm, PPM) + 2;
    }

    /// @notice From T7 until nothing behind a round can fall any more: an outer root is posted within F; its poster's window and dispute; then a rescue, the
    /// rescuer's window and dispute. The end of a dispute may wait F to be mined.
    function lastVerdict(Windows memory w, uint64 inclusionDelay) internal pure returns (uint64) {
        uint64 trial = w.challenge + w.longestDispute + inclusionDelay;
        return inclusionDelay + trial + w.rescue + trial;
    }

    /// @notice From T7 until shares vest: max(20 scheduled rounds, last verdict).
    function vestingDelay(Windows memory w, uint64 inclusionDelay, uint256 rounds) internal pure returns (uint64) {
        return uint64(Math.max(rounds * roundLength(w), lastVerdict(w, inclusionDelay)));
    }

    /// @notice T7 - T0, in seconds.
    function roundLength(Windows memory w) internal pure returns (uint64) {
        return w.commit + w.receipt + w.seedDelay + w.attest + w.draw + w.whistle + 2 * w.reveal + 1;
    }

    /// @notice Everything that a stake can still be needed for: (T7 - T0) + last verdict + one more window.
    function minExit(Windows memory w, uint64 inclusionDelay) internal pure returns (uint64) {
        return roundLength(w) + lastVerdict(w, inclusionDelay) + uint64(MIN_WINDOW);
    }

    /// @notice Reverts by name where the terms would let somebody gain by cheating.
    function check(Economics memory e, Training memory t, Windows memory w, uint64 inclusionDelay) internal pure {
        if (e.unitPrice == 0 || e.units == 0) revert ICharter.ReferencePriceZero();
        // Attack: terms whose sums overflow what settles and draws. B is at least 2 W, and no amount is above the maximum.
        if (price(e) > MAX_AMOUNT / 2) revert ICharter.AmountTooLarge("price", price(e), MAX_AMOUNT / 2);
        _checkAmount("shares per commitment", uint256(e.sharesPerUnit) * e.units);
        _checkAmount("shares per duty", e.sharesPerDuty);
        _checkAmount("claim lock", e.claimLock);
        _checkAmount("verifier bond", e.verifierBond);
        _checkAmount("wage", e.wage);
        // Attack: a charter whose challenges nobody honest can afford. Who can stake as a verifier can challenge.
        _checkMost("challenge bond", e.challengeBond, e.verifierBond);
        _checkMost("challenge deposit", e.challengeDeposit, e.verifierBond);
        _checkRate("audit", e.auditPpm, MAX_RATE);
        _checkRate("whistle", e.whistlePpm, MAX_RATE);
        _checkRate("cartel", e.cartelPpm, PPM - 1);
        _checkRate("bounty", e.bountyPpm, PPM / 2);
        _checkRate("trap", e.trapPpm, 0);
        if (honestPpm(e) == 0) revert ICharter.ValueZero("audit rate");
        if (e.whistlePpm == 0) revert ICharter.ValueZero("whistle rate");
        if (e.wage == 0) revert ICharter.ValueZero("wage");
        if (e.challengeBond == 0) revert ICharter.ValueZero("challenge bond");
        if (e.challengeDeposit == 0) revert ICharter.ValueZero("challenge deposit");
        if (e.seatFee > price(e)) revert ICharter.SeatFeeTooHigh(e.seatFee, price(e));
        uint256 minimum = minClaimLock(e, t.intervals);
        // Attack: many false intervals, to be slashed once; the lock is sized for all of them.
        if (e.claimLock < minimum) revert ICharter.ClaimLockTooSmall(e.claimLock, minimum);
        minimum = minBond(e);
        if (e.verifierBond < minimum) revert ICharter.BondTooSmall(e.verifierBond, minimum);
        _checkWindow("commit", w.commit);
        _checkWindow("receipt", w.receipt);
        _checkWindow("seed delay", w.seedDelay);
        _checkWindow("attest", w.attest);
        _checkWindow("draw", w.draw);
        _checkWindow("whistle", w.whistle);
        _checkWindow("reveal", w.reveal);
        _checkWindow("challenge", w.challenge);
        _checkWindow("rescue", w.rescue);
        _checkWindow("longest dispute", w.longestDispute);
        if (inclusionDelay > MAX_DELAY) revert ICharter.ScheduleTooLong("inclusion delay", inclusionDelay, MAX_DELAY);
        uint256 exit = minExit(w, inclusionDelay);
        // Attack: exit in the middle of a dispute.
        if (w.exit <= exit) revert ICharter.ExitDelayTooShort(w.exit, exit + 1);
        // Attack: an exit without end, at which honest money is stuck.
        if (w.exit > exit + MAX_WINDOW) revert ICharter.ExitDelayTooLong(w.exit, exit + MAX_WINDOW);
    }

    function _checkAmount(bytes32 what, uint256 amount) private pure {
        _checkMost(what, amount, MAX_AMOUNT);
    }

    function _checkMost(bytes32 what, uint256 amount, uint256 maximum) private pure {
        if (amount > maximum) revert ICharter.AmountTooLarge(what, amount, maximum);
    }

    function _checkWindow(bytes32 what, uint64 length) private pure {
        if (length < MIN_WINDOW) revert ICharter.WindowTooShort(what, length, MIN_WINDOW);
        if (length > MAX_WINDOW) revert ICharter.ScheduleTooLong(what, length, MAX_WINDOW);
    }

    function _checkRate(bytes32 what, uint256 ppm, uint256 maximum) private pure {
        if (ppm > maximum) revert ICharter.RateTooHigh(what, ppm, maximum);
    }
}
