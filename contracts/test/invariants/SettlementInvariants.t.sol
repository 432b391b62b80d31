// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

import {Role} from "../../interfaces/IAudit.sol";
import {Economics, Modules, Terms} from "../../interfaces/ICharter.sol";
import {SEAT_COUNT, Status, Times} from "../../interfaces/IRounds.sol";
import {Settlement} from "../../Settlement.sol";
import {TestToken} from "../../TestToken.sol";
import {Vault} from "../../Vault.sol";
import {Vesting} from "../../Vesting.sol";
import {CharterBench} from "./CharterBench.sol";
import {Handler, Invariants} from "./Handler.sol";

/// @notice The sponsor, workers, and the books of rounds and attesters (this contract): statuses and duties come out as drawn.
contract SettlementHandler is Handler {
    uint256 public constant WORKERS = 3;
    address public constant SPONSOR = address(0x300);
    uint64 private constant ROUND = 1000; // seconds from T0 to T7
    uint256 private constant SEATS = SEAT_COUNT;
    uint256 private constant DUTIES = 4; // per commitment
    uint256 private constant PAY = 300; // wei per final commitment
    uint256 private constant WAGE = 7; // wei per duty

    struct Round {
        uint64 t7;
        uint256 seats;
        uint256 works;
        uint256 worksClosed;
        uint256 attesters;
        uint256 attestersClosed;
        bool settled;
    }

    TestToken public immutable token = new TestToken();
    Vault public immutable vault;
    Vesting public immutable vesting;
    Settlement public immutable settlement;

    Round[] private _rounds;
    uint256 private _verifiers = 2;
    bool private _over;
    // What the next close gives: a status and a worker, or duties. Set for one call.
    Status private _status;
    address private _worker;
    uint32 private _duties;

    uint256 public live;
    uint256 public funded;
    uint256 public paid;
    uint256 public refunded;
    mapping(address who => uint256) public earned;
    mapping(address who => uint256) public credited;

    constructor() {
        CharterBench charter = new CharterBench();
        bytes memory argument = abi.encode(charter);
        Terms memory terms;
        Modules memory modules;
        (terms.token, terms.sponsor) = (address(token), SPONSOR);
        terms.training.intervals = uint32(DUTIES - 1);
        Economics memory e = terms.economics;
        (e.unitPrice, e.units, e.pays, e.wage) = (100, 3, true, uint128(WAGE));
        (e.sharesPerUnit, e.sharesPerDuty, e.auditPpm, e.whistlePpm) = (5, 2, 2_000_000, 500_000);
        (modules.rounds, modules.audit) = (address(this), address(this));
        modules.vault = _place("Vault.sol:Vault", argument);
        modules.vesting = _place("Vesting.sol:Vesting", argument);
        modules.settlement = _place("Settlement.sol:Settlement", argument);
        charter.write(terms, modules);
        vault = Vault(_deploy("Vault.sol:Vault", argument));
        vesting = Vesting(_deploy("Vesting.sol:Vesting", argument));
        settlement = Settlement(_deploy("Settlement.sol:Settlement", argument));
        vm.prank(SPONSOR);
        token.approve(address(vault), type(uint256).max);
    }

    function worker(uint256 seed) public pure returns (address) {
        return address(uint160(0x301 + seed % WORKERS));
    }

    function rounds() external view returns (uint256) {
        return _rounds.length;
    }

    function isSettled(uint256 round) external view returns (bool) {
        return _rounds[round].settled;
    }

    // --- what Settlement asks of the books

    function members(Role role) external view returns (uint256) {
        return role == Role.VERIFIER ? _verifiers : 1;
    }

    function isOver() external view returns (bool) {
        return _over;
    }

    function timesOf(uint64 round) external view returns (Times memory times) {
        times.t7 = _rounds[round].t7;
    }

    function commitments(uint64 round) external view returns (uint256) {
        return _rounds[round].works;
    }

    function revealers(uint64 round) external view returns (uint256) {
        return _rounds[round].attesters;
    }

    function close(uint64, uint32) external view returns (Status, address) {
        return (_status, _worker);
    }

    function close(uint64, address) external view returns (uint32) {
        return _duties;
    }

    // --- the run

    function fund(uint256 amount) external {
        amount = bound(amount, 1, 20_000);
        token.mint(SPONSOR, amount);
        vm.prank(SPONSOR);
        vault.deposit(amount);
        _call(worker(amount), address(settlement), abi.encodeCall(Settlement.fund, (amount)), false);
        _call(SPONSOR, address(settlement), abi.encodeCall(Settlement.fund, (amount)), true);
        funded += amount;
    }

    function open(uint256 seats, uint256 verifiers) external {
        if (_over) return;
        (seats, _verifiers) = (bound(seats, 1, SEATS), bound(verifiers, 0, 5));
        // No more wages per duty are set aside than there are attesters, nor than the rates' caps.
        uint256 most = seats * (PAY + DUTIES * (_verifiers + 1) * WAGE);
        uint64 round = uint64(_rounds.length);
        uint256 spare = settlement.escrow() - settlement.reservedTotal();
        bytes memory data = abi.encodeCall(Settlement.onRoundOpened, (round, seats));
        _call(worker(seats), address(settlement), data, false);
        vm.prank(address(this));
        (bool done,) = address(settlement).call(data);
        if (!done) return assertLt(spare, most, "a round that the escrow covers opens");
        assertLe(settlement.reservedOf(round), spare, "a round that it does not cover does not");
        _rounds.push(Round(uint64(block.timestamp) + ROUND, seats, 0, 0, 0, 0, false));
        ++live;
    }

    function commit(uint256 which) external {
        if (_rounds.length == 0) return;
        Round storage round = _rounds[which % _rounds.length];
        if (block.timestamp < round.t7 && round.works < round.seats) ++round.works;
    }

    function reveal(uint256 which) external {
        if (_rounds.length == 0) return;
        Round storage round = _rounds[which % _rounds.length];
        if (block.timestamp < round.t7 && round.attesters < 4) ++round.attesters;
    }

    function settleWork(uint256 which, uint256 seed, uint256 status) external {
        if (_rounds.length == 0) return;
        Round storage round = _rounds[which %= _rounds.length];
        if (round.works == round.worksClosed) return;
        (_status, _worker) = (Status(bound(status, uint256(Status.VOID), uint256(Status.FINAL))), worker(seed));
        uint256 pay = _status == Status.FINAL ? PAY : 0;
        uint32 seat = uint32(round.worksClosed);
        if (!_settle(which, pay, abi.encodeCall(Settlement.settleWork, (uint64(which), seat)))) return;
        ++round.worksClosed;
        if (pay != 0) credited[_worker] += 15;
    }

    function settleDuties(uint256 which, uint256 seed, uint256 duties) external {
        if (_rounds.length == 0) return;
        Round storage round = _rounds[which %= _rounds.length];
        if (round.attesters == round.attestersClosed) return;
        // One grant per attester and round, as the real book gives.
        _worker = address(uint160(0x400 + round.attestersClosed));
        _duties = uint32(bound(duties, 0, 2 * SEATS * DUTIES));
        address who = _worker;
        if (!_settle(which, _duties * WAGE, abi.encodeCall(Settlement.settleDuties, (uint64(which), who)))) return;
        ++round.attestersClosed;
        credited[who] += 2 * _duties;
        seed;
    }

    function settleRound(uint256 which) external {
        if (_rounds.length == 0) return;
        Round storage round = _rounds[which %= _rounds.length];
        bool may = !round.settled && block.timestamp >= round.t7 && round.works == round.worksClosed
            && round.attesters == round.attestersClosed;
        _call(worker(which), address(settlement), abi.encodeCall(Settlement.settleRound, (uint64(which))), may);
        if (!may) return;
        round.settled = true;
        --live;
    }

    function refund(uint256 seed) external {
        uint256 escrow = settlement.escrow();
        bool may = _over && live == 0 && escrow != 0;
        _call(worker(seed), address(settlement), abi.encodeCall(Settlement.refund, ()), may);
        if (may) refunded += escrow;
    }

    function end(uint256 seed) external {
        if (seed % 16 == 0) _over = true;
    }

    function wait(uint256 time) external {
        vm.warp(block.timestamp + bound(time, 1, ROUND));
    }

    /// @dev What is earned is paid in whole, or nothing happens: only an escrow that is too small delays it.
    function _settle(uint256 round, uint256 amount, bytes memory data) private returns (bool) {
        uint256 own = settlement.reservedOf(uint64(round));
        uint256 others = settlement.reservedTotal() - own;
        uint256 left = own > amount ? own - amount : 0;
        bool may = amount == 0 || settlement.escrow() >= others + left + amount;
        _call(worker(round), address(settlement), data, may);
        if (!may) return false;
        earned[_worker] += amount;
        paid += amount;
        return true;
    }
}

/// @title The escrow covers what rounds reserve, everybody is paid exactly what was earned, and the sponsor gets the rest
contract SettlementInvariants is Invariants {
    SettlementHandler private _h;
    Settlement private _settlement;

    function setUp() public {
        _h = new SettlementHandler();
        _settlement = _h.settlement();
        _handler = address(_h);
    }

    function invariant_the_escrow_is_what_was_funded_and_neither_paid_nor_refunded() public view {
        assertEq(_settlement.escrow(), _h.funded() - _h.paid() - _h.refunded(), "escrow");
        assertEq(_h.vault().free(_h.SPONSOR()), _h.refunded(), "sponsor");
    }

    function invariant_nobody_works_for_money_that_is_not_there() public view {
        uint256 reserved;
        for (uint64 round = 0; round < _h.rounds(); ++round) {
            reserved += _settlement.reservedOf(round);
            if (_h.isSettled(round)) assertEq(_settlement.reservedOf(round), 0, "settled");
        }
        assertEq(_settlement.reservedTotal(), reserved, "reserved");
        assertLe(reserved, _settlement.escrow(), "covered");
        assertEq(_settlement.liveRounds(), _h.live(), "live");
    }

    function invariant_everybody_is_paid_what_was_earned_and_nothing_else() public view {
        for (uint256 i = 0; i < _h.WORKERS(); ++i) {
            _check(_h.worker(i));
        }
        for (uint160 i = 0; i < 4; ++i) {
            _check(address(0x400 + i));
        }
    }

    function _check(address who) private view {
        assertEq(_h.vault().free(who), _h.earned(who), "pay");
        assertEq(_h.vesting().pendingOf(who), _h.credited(who), "shares");
    }
}
