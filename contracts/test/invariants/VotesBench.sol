// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

import {GenerationStatus} from "../../interfaces/IGenerations.sol";
import {RunPhase} from "../../interfaces/IEscrow.sol";
import {RunModules} from "../../interfaces/IRoundTerms.sol";
import {RunTerms} from "../../interfaces/RunTypes.sol";
import {ModelShares} from "../../ModelShares.sol";
import {RunGovernor} from "../../run/RunGovernor.sol";
import {CharterBench} from "./CharterBench.sol";
import {Handler} from "./Handler.sol";

/// @title VotesBench: shares and their governor, of a run whose rounds and phase the test names (this contract, as its generations, escrow and grants),
/// and books of who had which votes when
abstract contract VotesBench is Handler {
    uint256 internal constant START = 1_800_000_000;
    uint256 public constant OWNERS = 4;
    uint256 public constant PEOPLE = 6; // these, a guardian, and somebody who never owns a share
    uint256 public constant DELAY = 1 days;
    uint256 public constant PERIOD = 3 days;
    uint256 public constant LOCK = 2 days;
    uint256 public constant GRACE = 14 days;
    uint256 public constant LONGEST = 5 days; // of a pause by a vote
    uint256 public constant GUARDED = 2 days; // of one by the guardian
    uint32 public constant GUARDS = 3; // pauses of the guardian
    uint256 public constant REST = 20 minutes; // between pauses
    uint256 public constant LEAST_PRICE = 500_000; // ppm
    uint256 public constant LEAST_ROUNDS = 2;
    uint256 public constant LEAST_VESTED = LEAST_ROUNDS * 2 * 3 * 1 ether;
    uint256 internal constant QUORUM_PPM = 450_001; // about what is cast where owners differ; nearly every quorum rounds

    struct VotesMark {
        uint256 time;
        uint256 amount;
    }

    ModelShares public immutable shares;
    RunGovernor public immutable governor;

    uint256 public time = START; // what the chain says, the compiler may keep within a call
    RunPhase public phase = RunPhase.RUNNING; // for the governor
    uint64 internal _final = 0; // newest final generation
    mapping(address owner => uint256) public sharesOf;
    mapping(address owner => address) private _delegateOf;
    mapping(address voter => VotesMark[]) private _votes;
    VotesMark[] private _supply;

    constructor() {
        vm.warp(START);
        CharterBench charter = new CharterBench();
        bytes memory argument = abi.encode(charter);
        RunTerms memory terms;
        (terms.launch.seats, terms.training.minUnits, terms.economics.sharesPerUnit) = (2, 3, 1 ether);
        (terms.chain.reorgDepth, terms.chain.inclusionDelay) = (4 minutes, 6 minutes);
        (terms.governance.votingDelay, terms.governance.votingPeriod) = (uint48(DELAY), uint48(PERIOD));
        (terms.governance.timelock, terms.governance.longestPause) = (uint48(LOCK), uint48(LONGEST));
        (terms.governance.guardian, terms.governance.guardianPause) = (person(OWNERS), uint48(GUARDED));
        (terms.governance.guardianPauses, terms.governance.quorumPpm) = (GUARDS, uint32(QUORUM_PPM));
        (terms.governance.leastRounds, terms.governance.leastPricePpm) = (uint32(LEAST_ROUNDS), uint32(LEAST_PRICE));
        RunModules memory modules;
        (modules.grants, modules.escrow, modules.generations) = (address(this), address(this), address(this));
        modules.shares = _place("ModelShares.sol:ModelShares", argument);
        modules.revenue = _place("Revenue.sol:Revenue", argument);
        charter.write(terms, modules);
        shares = ModelShares(_deploy("ModelShares.sol:ModelShares", argument));
        _deploy("Revenue.sol:Revenue", argument);
        governor = RunGovernor(payable(_deploy("RunGovernor.sol:RunGovernor", argument)));
    }

    /// @dev Owners, then the guardian, then a stranger.
    function person(uint256 seed) public pure returns (address) {
        return address(uint160(0x801 + seed % PEOPLE));
    }

    function owner(uint256 seed) public pure returns (address) {
        return person(seed % OWNERS);
    }

    /// @notice For the governor.
    function statusOf(uint64 generation) external view returns (GenerationStatus) {
        return generation <= _final ? GenerationStatus.FINAL : GenerationStatus.MERGED;
    }

    // --- shares

    function vest(uint256 seed, uint256 amount) public {
        (address who, uint256 size) = (owner(seed), bound(amount, 1, 4 ether));
        bytes memory data = abi.encodeCall(ModelShares.mint, (who, size));
        _call(who, address(shares), data, false);
        _call(address(this), address(shares), data, true);
        sharesOf[who] += size;
        _mark(_supply, _at(_supply, time) + size);
        _moveVotes(address(0), _delegateOf[who], size);
    }

    function transfer(uint256 from, uint256 to, uint256 amount) public {
        (address giver, address taker) = (owner(from), owner(to));
        amount = bound(amount, 0, sharesOf[giver] + 1);
        bool may = amount <= sharesOf[giver];
        _call(giver, address(shares), abi.encodeCall(shares.transfer, (taker, amount)), may);
        if (!may) return;
        sharesOf[giver] -= amount;
        sharesOf[taker] += amount;
        _moveVotes(_delegateOf[giver], _delegateOf[taker], amount);
    }

    /// @dev To nobody too.
    function delegate(uint256 seed, uint256 to) public {
        (address who, address before) = (owner(seed), _delegateOf[owner(seed)]);
        address to_ = to % 8 == 0 ? address(0) : owner(to);
        _call(who, address(shares), abi.encodeCall(shares.delegate, (to_)), true);
        _delegateOf[who] = to_;
        _moveVotes(before, to_, sharesOf[who]);
    }

    function _moveVotes(address from, address to, uint256 amount) private {
        if (from == to) return;
        if (from != address(0)) _mark(_votes[from], _at(_votes[from], time) - amount);
        if (to != address(0)) _mark(_votes[to], _at(_votes[to], time) + amount);
    }

    function _mark(VotesMark[] storage marks, uint256 amount) private {
        marks.push(VotesMark(time, amount));
    }

    /// @dev What the last mark up to a time says.
    function _at(VotesMark[] storage marks, uint256 when) private view returns (uint256) {
        for (uint256 i = marks.length; i > 0; --i) {
            if (marks[i - 1].time <= when) return marks[i - 1].amount;
        }
        return 0;
    }

    function supplyAt(uint256 when) public view returns (uint256) {
        return _at(_supply, when);
    }

    /// @dev The weight of a vote: no more than what was there at both ends of a voting delay.
    function _weight(address who, uint256 when) internal view returns (uint256) {
        (uint256 late, uint256 early) = (_at(_votes[who], when), _at(_votes[who], when - DELAY));
        return late < early ? late : early;
    }

    // --- the run

    function finalize(uint256 seed) public {
        _final += uint64(seed % 2);
    }

    /// @notice The run ends, or has not after all, so that both are seen.
    function end(uint256 seed) external {
        phase = seed % 4 == 0 ? RunPhase.OVER : seed % 4 == 1 ? RunPhase.WOUND_DOWN : RunPhase.RUNNING;
    }

    function _pass(uint256 seconds_) internal {
        time += seconds_;
        vm.warp(time);
    }
}
