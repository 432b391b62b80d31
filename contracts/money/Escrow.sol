// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

import {Math} from "@openzeppelin/contracts/utils/math/Math.sol";
import {IAttestations} from "../interfaces/IAttestations.sol";
import {ICommitments} from "../interfaces/ICommitments.sol";
import {IDuties} from "../interfaces/IDuties.sol";
import {IEscrow, RunPhase} from "../interfaces/IEscrow.sol";
import {GenerationStatus, IGenerations} from "../interfaces/IGenerations.sol";
import {IGovernance} from "../interfaces/IGovernance.sol";
import {IPayments} from "../interfaces/IPayments.sol";
import {IRoundGate, RunModules} from "../interfaces/IRoundTerms.sol";
import {IRunCharter} from "../interfaces/IRunCharter.sol";
import {RunEconomics, RunTerms, RunTraining} from "../interfaces/RunTypes.sol";
import {ITenures} from "../interfaces/ITenures.sol";
import {ITickets} from "../interfaces/ITickets.sol";
import {IVault} from "../interfaces/IVault.sol";
import {RunPrices} from "../libraries/RunPrices.sol";
import {RunTimes} from "../libraries/RunTimes.sol";

/// @title Escrow: what a run pays from, when it opens, and what becomes of the rest
contract Escrow is IEscrow {
    uint256 private constant PPM = 1_000_000;
    uint256 private constant ONE_LEVEL = 64;
    bytes32 private constant LOCK = "assay.escrow";

    IRunCharter public immutable charter;
    address public immutable sponsor;
    IVault private immutable _vault;
    ITickets private immutable _tickets;
    ITenures private immutable _tenures;
    ICommitments private immutable _commitments;
    IGenerations private immutable _generations;
    IDuties private immutable _duties;
    IAttestations private immutable _attestations;
    IPayments private immutable _payments;
    IGovernance private immutable _governor; // zero: none
    uint256 private immutable _workPay; // W, zero where shares alone are credited
    uint256 private immutable _seatMergePay; // of a seat's own opening, at one level
    uint256 private immutable _committeePay; // of a round's drawn openings, above one level
    uint256 private immutable _wage;
    uint256 private immutable _auditPpm;
    uint256 private immutable _firstAuditPpm; // 1 - q
    uint256 private immutable _capacity;
    uint256 private immutable _shifts;
    uint256 private immutable _ticketBond;
    uint256 private immutable _seatLock;
    uint256 private immutable _leastTickets;
    uint256 private immutable _leastSeats;
    uint48 private immutable _auditsFrom;
    uint48 private immutable _openFrom;
    uint48 private immutable _stall;
    uint48 private immutable _longestDispute;
    uint48 private immutable _untilFinal;
    /// @inheritdoc IEscrow
    uint256 public immutable mostUnsettled;

    /// @dev Money that came at one point of the order; in wei.
    struct Pool {
        uint256 total;
        uint256 open; // of it what has not been called back
        uint256 back; // paid back
    }

    /// @dev What is set aside for a round; in wei, together no more than the vault holds.
    struct Reserve {
        uint128 pay; // of work and openings
        uint128 wages;
    }

    /// @dev A funder's payment: what came before it, and what it was; in wei.
    struct Part {
        uint256 before;
        uint256 amount;
    }

    /// @inheritdoc IEscrow
    RunPhase public phase;
    uint48 private _launchedAt;
    uint24 private _epoch; // the newest when the last round opened
    uint64 private _load; // seats of rounds opened while it was
    uint64 public liveRounds;
    /// @inheritdoc IRoundGate
    uint48 public stoppedAt;
    /// @inheritdoc IEscrow
    uint256 public reservedTotal;
    uint256 private _paidIn;
    uint256 private _paidBack;
    mapping(uint256 before => Pool) private _pools;
    mapping(address funder => Part[]) private _parts;
    mapping(uint64 round => Reserve) private _reserves;
    /// @inheritdoc IEscrow
    mapping(address funder => uint256) public fundedOf;
    mapping(uint64 round => uint256) private _pricePpm;

    modifier during(RunPhase wanted) {
        if (phase != wanted) revert WrongPhase(phase);
        _;
    }

    modifier onlyPayments() {
        if (msg.sender != address(_payments)) revert NotPayments(msg.sender);
        _;
    }

    constructor(IRunCharter charter_) {
        RunTerms memory terms = charter_.runTerms();
        RunModules memory modules = charter_.roundModules();
        RunEconomics memory e = terms.economics;
        RunTraining memory t = terms.training;
        (charter, sponsor) = (charter_, terms.sponsor);
        (_vault, _tickets, _tenures) = (IVault(modules.vault), ITickets(modules.tickets), ITenures(modules.tenures));
        (_commitments, _generations) = (ICommitments(modules.commitments), IGenerations(modules.generations));
        (_duties, _payments) = (IDuties(modules.duties), IPayments(modules.payments));
        _attestations = IAttestations(modules.attestations);
        _governor = IGovernance(modules.governor);
        bool bySeats = t.seats <= ONE_LEVEL;
        uint256 openings = bySeats ? 0 : Math.ceilDiv(t.seats, t.groupSize) * t.positions + t.topPositions;
        _committeePay = openings * e.mergePay;
        _workPay = e.pays ? uint256(e.unitPrice) * t.maxUnits : 0;
        _seatMergePay = bySeats ? e.mergePay : 0;
        (_wage, _auditPpm, _firstAuditPpm) = (e.wage, e.auditPpm, PPM - e.reauditPpm);
        (_capacity, _shifts) = (e.capacity, e.shifts);
        (_ticketBond, _seatLock) = (e.ticketBond, e.seatLock);
        (_leastTickets, _leastSeats) = (terms.launch.tickets, terms.launch.seats);
        (_auditsFrom, _openFrom) = (terms.timing.auditsFrom, terms.launch.openFrom);
        (_stall, _longestDispute) = (terms.timing.stall, terms.timing.longestDispute);
        _untilFinal = uint48(RunTimes.untilFinal(terms.timing));
        mostUnsettled = RunPrices.mostUnsettled(e, uint256(e.unitPrice) * t.maxUnits);
    }

    // ------------------------------------------------------------------------------------------------ funders and sponsor

    /// @inheritdoc IEscrow
    function fund(uint256 amount) external {
        if (phase > RunPhase.RUNNING) revert WrongPhase(phase);
        bytes32 id = keccak256(abi.encode("assay.fund", msg.sender));
        _vault.lock(id, msg.sender, amount);
        _vault.seize(id, address(this), amount);
        _vault.lock(LOCK, address(this), amount);
        fundedOf[msg.sender] += amount;
        // Attack: fund one's own seats' pay, and share what a later funder saves the run with.
        uint256 before = phase == RunPhase.FUNDING ? 0 : _paidIn;
        _paidIn += amount;
        Pool storage pool = _pools[before];
        pool.total += amount;
        pool.open += amount;
        Part[] storage parts = _parts[msg.sender];
        uint256 count = parts.length;
        if (count != 0 && parts[count - 1].before == before) parts[count - 1].amount += amount;
        else parts.push(Part(before, amount));
        emit Funded(msg.sender, amount);
    }

    /// @inheritdoc IEscrow
    function launch() external during(RunPhase.FUNDING) {
        // Attack: a sponsor whose run trains before anybody audits it, stands still, and is wound down unpaid.
        if (block.timestamp < _auditsFrom) revert LaunchTooEarly(block.timestamp, _auditsFrom);
        if (msg.sender != sponsor) _mustBeWorthIt();
        _launchedAt = uint48(block.timestamp);
        _enter(RunPhase.RUNNING);
        _generations.begin();
    }

    /// @inheritdoc IEscrow
    function cancel() external during(RunPhase.FUNDING) {
        // Attack: a sponsor who is silent until the run expires, with everybody's money in its escrow.
        if (msg.sender != sponsor && !_commitments.isOver()) revert NotTheSponsor(msg.sender);
        _stop(RunPhase.CANCELLED);
    }

    /// @inheritdoc IEscrow
    function windDown() external {
        if (phase != RunPhase.RUNNING && phase != RunPhase.OVER) revert WrongPhase(phase);
        // Attack: a run that has just begun and had no time to move.
        uint256 notBefore = Math.max(_movedAt(), _launchedAt) + _stall + 1;
        if (block.timestamp < notBefore) revert RunMoves(block.timestamp, notBefore);
        _stop(RunPhase.WOUND_DOWN);
    }

    /// @inheritdoc IEscrow
    function finish() external during(RunPhase.RUNNING) {
        uint256 unpaid = _attestations.findings() - _payments.findingsSettled();
        // Attack: end a run with wages unpaid, or with duties to come, and have the wages back as its funder.
        if (!_areDutiesOver() || liveRounds != 0 || unpaid != 0) revert RunNotOver(liveRounds, unpaid);
        _enter(RunPhase.OVER);
    }

    /// @inheritdoc IEscrow
    function refund(address funder) external {
        if (phase < RunPhase.CANCELLED) revert WrongPhase(phase);
        Part[] storage parts = _parts[funder];
        uint256 count = parts.length;
        if (count == 0) revert NothingToRefund(funder);
        Part memory part = parts[count - 1];
        // Attack: be paid back twice.
        parts.pop();
        fundedOf[funder] -= part.amount;
        Pool storage pool = _pools[part.before];
        // What was spent was spent in the order in which it came.
        uint256 left = Math.saturatingSub(part.before + pool.total, _paidIn - _paidBack - balance());
        left = Math.min(left, pool.total) - pool.back;
        // Rounded down each time, over what is left: the last one of a pool gets the rest to the wei.
        uint256 amount = Math.mulDiv(left, part.amount, pool.open);
        pool.open -= part.amount;
        pool.back += amount;
        _paidBack += amount;
        if (amount != 0) _vault.seize(LOCK, funder, amount);
        emit Refunded(funder, part.amount, amount);
    }

    // ------------------------------------------------------------------------------------------------ peers

    /// @inheritdoc IRoundGate
    function reserve(uint64 round, uint256 seated) external returns (bool) {
        if (msg.sender != address(_generations)) revert NotGenerations(msg.sender);
        if (phase != RunPhase.RUNNING) return false;
        bool isGoverned = address(_governor) != address(0);
        // What is under way goes on: a pause keeps the next round from opening, as an empty escrow does.
        if (isGoverned && _governor.isPaused()) return false;
        uint256 count = _tickets.countAt(uint48(block.timestamp));
        // Attack: after two bribes of few nobody is left who looks.
        if (count < _leastTickets) return false;
        (uint24 epoch,) = _duties.newest();
        uint256 load = (epoch == _epoch ? _load : 0) + seated;
        // Attack: more duties than tickets can answer; what is beyond their capacity lowers the rate that S was priced with.
        if (!_canAudit(count, load)) return false;
        // Attack: seats that end round after round within seconds, until more pay is unsettled than B makes silence dearer than.
        if (round >= mostUnsettled && !_isDue(round - uint64(mostUnsettled))) return false;
        (uint256 forWork, uint256 wages) = _costs(seated);
        uint256 amount = forWork + wages;
        // Attack: work that nothing is there to pay for.
        if (balance() < reservedTotal + amount) return false;
        (_epoch, _load) = (epoch, uint64(load));
        // Attack: a price that changes for work which is done.
        if (isGoverned) _pricePpm[round] = _governor.pricePpm();
        _reserves[round] = Reserve(uint128(forWork), uint128(wages));
        reservedTotal += amount;
        ++liveRounds;
        emit Reserved(round, amount, wages);
        return true;
    }

    /// @inheritdoc IEscrow
    function pay(uint64 round, address to, uint256 amount, bool isWage)
        external
        onlyPayments
        during(RunPhase.RUNNING)
        returns (uint256 paid)
    {
        Reserve storage held = _reserves[round];
        // Attack: more findings than a round has set wages aside for, paid from its work's pay, so that nobody settles the work until the run
        // is wound down, and the rest goes back to its funders.
        uint256 fromReserve = Math.min(amount, isWage ? held.wages : held.pay);
        if (isWage) held.wages -= uint128(fromReserve);
        else held.pay -= uint128(fromReserve);
        reservedTotal -= fromReserve;
        uint256 there = balance();
        uint256 needed = reservedTotal + amount;
        paid = amount;
        if (there < needed) {
            // Attack: one round's surplus of draws that is paid from what others have reserved. Where nothing is reserved any more
            // what is there is all that there will be, and one wage more would keep the run from its end.
            if (liveRounds != 0 || !_areDutiesOver()) revert EscrowShort(there, needed);
            paid = there;
        }
        if (paid != 0) _vault.seize(LOCK, to, paid);
    }

    /// @inheritdoc IEscrow
    function free(uint64 round) external onlyPayments during(RunPhase.RUNNING) {
        uint256 unearned = reservedOf(round);
        delete _reserves[round];
        reservedTotal -= unearned;
        --liveRounds;
        emit Freed(round, unearned);
    }

    // ------------------------------------------------------------------------------------------------ views

    /// @inheritdoc IRoundGate
    function carries(uint256 seated) external view returns (bool) {
        if (phase != RunPhase.RUNNING) return phase == RunPhase.FUNDING;
        if (!_canAudit(_tickets.countAt(uint48(block.timestamp)), seated)) return false;
        (uint256 forWork, uint256 wages) = _costs(seated);
        return balance() >= reservedTotal + forWork + wages;
    }

    /// @inheritdoc IRoundGate
    function isStopped() external view returns (bool) {
        return stoppedAt != 0;
    }

    /// @inheritdoc IEscrow
    function balance() public view returns (uint256 amount) {
        (, amount) = _vault.lockOf(LOCK);
    }

    /// @inheritdoc IEscrow
    function reservedOf(uint64 round) public view returns (uint256) {
        Reserve storage held = _reserves[round];
        return uint256(held.pay) + held.wages;
    }

    /// @inheritdoc IEscrow
    function workPayOf(uint64 round, uint256 amount) external view returns (uint256) {
        return address(_governor) == address(0) ? amount : amount * _pricePpm[round] / PPM;
    }

    /// @inheritdoc IEscrow
    function costOf(uint256 seated) external view returns (uint256) {
        (uint256 forWork, uint256 wages) = _costs(seated);
        return forWork + wages;
    }

    // ------------------------------------------------------------------------------------------------ inside

    /// @dev What a round of so many seats sets aside for work and openings, and twice the wages that p / (1 - q) findings a commitment lead to;
    /// findings beyond it are paid from what is not reserved.
    function _costs(uint256 seated) private view returns (uint256 forWork, uint256 wages) {
        uint256 ppm = address(_governor) == address(0) ? PPM : _governor.pricePpm();
        forWork = seated * (Math.ceilDiv(_workPay * ppm, PPM) + _seatMergePay) + _committeePay;
        wages = Math.ceilDiv(2 * seated * _auditPpm * _wage, _firstAuditPpm);
    }

    /// @dev Do the tickets of a shift answer for twice the duties expected of so many commitments?
    function _canAudit(uint256 count, uint256 load) private view returns (bool) {
        return _capacity * (count / _shifts) * _firstAuditPpm >= 2 * load * _auditPpm;
    }

    /// @dev When the run moved last. While rounds may open both generations and epochs have to, and a round that opened after both has
    /// once more as long.
    function _movedAt() private view returns (uint256) {
        (, uint48 closedAt) = _duties.newest();
        if (phase == RunPhase.RUNNING && !_areRoundsOver()) {
            uint256 moved = Math.max(Math.min(_generations.finalAt(), closedAt), _launchedAt);
            // Attack: pay for a round in the last hour before a run may be wound down, and have its work for nothing.
            uint256 opened = _commitments.roundOf(_commitments.opened() - 1).t0;
            return Math.max(moved, Math.min(opened, moved + _stall));
        }
        // Attack: void the last rounds' pay since no generation is left to become final, while their disputes go on.
        uint24 last = _duties.lastEpoch();
        uint256 undrawnSince = last == 0 ? 0 : _duties.overSince(last + 1);
        // Attack: close epochs for ever, so that what cannot be settled is held for ever.
        return undrawnSince == 0 ? closedAt : Math.min(closedAt, undrawnSince + _longestDispute);
    }

    /// @dev Are a round's audits over, and its generation final, if that is in no dispute?
    function _isDue(uint64 round) private view returns (bool) {
        uint48 last = _commitments.commitUntil(round);
        return block.timestamp > last + _untilFinal && _duties.overAfter(last) != 0;
    }

    /// @dev Does no round open any more, and is the last generation final?
    function _areRoundsOver() private view returns (bool) {
        if (!_commitments.isOver() || _generations.statusOf(_commitments.opened()) == GenerationStatus.OPEN) {
            return false;
        }
        return _generations.statusOf(_generations.newest()) == GenerationStatus.FINAL;
    }

    /// @dev Is the last epoch closed in which duties are drawn?
    function _areDutiesOver() private view returns (bool) {
        (uint24 epoch,) = _duties.newest();
        uint24 last = _duties.lastEpoch();
        return last != 0 && epoch > last;
    }

    /// @dev Attack: buy the least numbers with stakes that come back, agree with oneself, and be paid the escrow.
    function _mustBeWorthIt() private view {
        if (block.timestamp < _openFrom) revert LaunchTooEarly(block.timestamp, _openFrom);
        uint256 tickets = _tickets.countAt(uint48(block.timestamp));
        uint256 seats = _tenures.seatedAt(0);
        if (tickets < _leastTickets || seats < _leastSeats) {
            revert TooFewToLaunch(tickets, _leastTickets, seats, _leastSeats);
        }
        uint256 staked = tickets * _ticketBond + seats * _seatLock;
        if (staked < balance()) revert StakesBelowEscrow(staked, balance());
    }

    function _stop(RunPhase next) private {
        stoppedAt = uint48(block.timestamp);
        _enter(next);
    }

    function _enter(RunPhase next) private {
        phase = next;
        emit PhaseChanged(next, msg.sender);
    }
}
