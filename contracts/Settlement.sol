// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

import {IAudit, Role} from "./interfaces/IAudit.sol";
import {Economics, ICharter, Modules, Terms, Windows} from "./interfaces/ICharter.sol";
import {IRounds, Status} from "./interfaces/IRounds.sol";
import {ISettlement} from "./interfaces/ISettlement.sol";
import {IVesting} from "./interfaces/IShares.sol";
import {IVault} from "./interfaces/IVault.sol";
import {ClaimIds} from "./libraries/ClaimIds.sol";
import {EconomicsBounds} from "./libraries/Economics.sol";

/// @title Settlement: escrow, pay, wages, shares
/// @notice Settlement trails training: a claim is settled when its own window and games are over, whatever the run does by then.
contract Settlement is ISettlement {
    uint256 internal constant VESTING_ROUNDS = 20;

    ICharter public immutable charter;
    address public immutable sponsor;
    IVault private immutable _vault;
    IRounds private immutable _rounds;
    IAudit private immutable _audit;
    IVesting private immutable _vesting;
    uint256 private immutable _pay; // per final commitment; 0 where shares alone are credited
    uint256 private immutable _wage;
    uint128 private immutable _workShares;
    uint128 private immutable _dutyShares;
    uint256 private immutable _duties; // per commitment
    uint256 private immutable _auditCap; // wages per duty that a round sets aside
    uint256 private immutable _whistleCap;
    uint64 private immutable _vestingDelay; // from T7

    /// @inheritdoc ISettlement
    uint256 public reservedTotal;
    /// @inheritdoc ISettlement
    mapping(uint64 round => uint256) public reservedOf;
    mapping(uint64 round => bool) public isSettled;
    mapping(uint64 round => uint256) public settledWork;
    mapping(uint64 round => uint256) public settledAttesters;
    uint256 public liveRounds;

    constructor(ICharter charter_) {
        Terms memory terms = charter_.terms();
        Modules memory modules = charter_.modules();
        Economics memory e = terms.economics;
        Windows memory w = terms.windows;
        charter = charter_;
        sponsor = terms.sponsor;
        _vault = IVault(modules.vault);
        _rounds = IRounds(modules.rounds);
        _audit = IAudit(modules.audit);
        _vesting = IVesting(modules.vesting);
        _pay = e.pays ? EconomicsBounds.price(e) : 0;
        _wage = e.wage;
        _workShares = e.sharesPerUnit * e.units;
        _dutyShares = e.sharesPerDuty;
        _duties = uint256(terms.training.intervals) + 1;
        _auditCap = EconomicsBounds.wageCap(e.auditPpm);
        _whistleCap = EconomicsBounds.wageCap(e.whistlePpm);
        _vestingDelay = EconomicsBounds.vestingDelay(w, terms.chain.inclusionDelay, VESTING_ROUNDS);
    }

    /// @inheritdoc ISettlement
    function fund(uint256 amount) external {
        if (msg.sender != sponsor) revert NotTheSponsor(msg.sender);
        _vault.lock(ClaimIds.escrowLock(), sponsor, amount);
        emit Funded(amount);
    }

    /// @inheritdoc ISettlement
    function onRoundOpened(uint64 round, uint256 seats) external {
        if (msg.sender != address(_rounds)) revert NotRounds(msg.sender);
        uint256 wages =
            _min(_audit.members(Role.VERIFIER), _auditCap) + _min(_audit.members(Role.WHISTLEBLOWER), _whistleCap);
        uint256 amount = seats * (_pay + _duties * wages * _wage);
        reservedOf[round] = amount;
        reservedTotal += amount;
        ++liveRounds;
        // A round without money in the escrow would be work without pay.
        if (escrow() < reservedTotal) revert EscrowShort(escrow(), reservedTotal);
        emit Reserved(round, amount);
    }

    /// @inheritdoc ISettlement
    function settleWork(uint64 round, uint32 seat) external {
        (Status status, address solver) = _rounds.close(round, seat);
        ++settledWork[round];
        bool earned = status == Status.FINAL;
        // Excluded but true work is paid like any other; what is void or convicted is paid to no other party.
        uint256 pay = earned ? _pay : 0;
        uint128 shares = earned ? _workShares : 0;
        _payOut(round, solver, pay);
        if (shares != 0) _vesting.credit(_vesting.workId(round, seat), solver, shares, vestsAt(round), false);
        emit WorkSettled(round, seat, solver, status, pay, shares);
    }

    /// @inheritdoc ISettlement
    function settleDuties(uint64 round, address attester) external {
        uint32 duties = _audit.close(round, attester);
        ++settledAttesters[round];
        uint256 wages = duties * _wage;
        uint128 shares = duties * _dutyShares;
        _payOut(round, attester, wages);
        if (shares != 0) _vesting.credit(_vesting.dutiesId(round, attester), attester, shares, vestsAt(round), true);
        emit DutiesSettled(round, attester, duties, wages, shares);
    }

    /// @inheritdoc ISettlement
    function settleRound(uint64 round) external {
        if (isSettled[round]) revert AlreadySettled(round);
        uint64 t7 = _rounds.timesOf(round).t7;
        if (block.timestamp < t7) revert RoundNotSettleable(round, t7);
        uint256 work = _rounds.commitments(round) - settledWork[round];
        uint256 attesters = _audit.revealers(round) - settledAttesters[round];
        if (work != 0 || attesters != 0) revert RoundUnsettled(round, work, attesters);
        isSettled[round] = true;
        uint256 unearned = reservedOf[round];
        reservedOf[round] = 0;
        reservedTotal -= unearned;
        --liveRounds;
        emit RoundSettled(round, unearned);
    }

    /// @inheritdoc ISettlement
    function refund() external {
        if (!_rounds.isOver() || liveRounds != 0) revert RunNotOver(liveRounds);
        uint256 amount = escrow();
        _vault.release(ClaimIds.escrowLock());
        emit Refunded(amount);
    }

    /// @inheritdoc ISettlement
    function escrow() public view returns (uint256 amount) {
        (, amount) = _vault.lockOf(ClaimIds.escrowLock());
    }

    /// @inheritdoc ISettlement
    function vestsAt(uint64 round) public view returns (uint64) {
        return _rounds.timesOf(round).t7 + _vestingDelay;
    }

    /// @dev From the round's reserve; beyond it from what no other round has reserved. A shortage delays, it never cuts.
    function _payOut(uint64 round, address to, uint256 amount) private {
        if (amount == 0) return;
        uint256 fromReserve = _min(amount, reservedOf[round]);
        reservedOf[round] -= fromReserve;
        reservedTotal -= fromReserve;
        if (escrow() < reservedTotal + amount) revert EscrowShort(escrow(), reservedTotal + amount);
        _vault.seize(ClaimIds.escrowLock(), to, amount);
    }

    function _min(uint256 a, uint256 b) private pure returns (uint256) {
        return a < b ? a : b;
    }
}
