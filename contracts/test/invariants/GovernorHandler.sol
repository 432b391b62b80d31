// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

import {IGovernor} from "@openzeppelin/contracts/governance/IGovernor.sol";
import {RunPhase} from "../../interfaces/IEscrow.sol";
import {IGovernance} from "../../interfaces/IGovernance.sol";
import {VotesBench} from "./VotesBench.sol";

/// @notice Owners who propose, vote, queue and execute anything, a guardian and strangers; and what the governor should answer, by books of this contract
/// that change only with a decision that has passed, waited, and is one of the seven.
contract GovernorHandler is VotesBench {
    uint256 public constant GATEWAYS = 2;
    uint256 private constant LABELS = 2; // proposals of each decision
    uint256 private constant DECISIONS = 15; // that may be proposed; those behind them may not
    uint256 private constant CALLS = 25;

    struct ProposedCall {
        uint256 which;
        address proposer;
        uint256 snapshot;
        uint256 eta;
        uint256[3] tally; // against, for, abstain
        bool canceled;
        bool executed;
    }

    mapping(uint256 id => ProposedCall) private _proposed;
    mapping(uint256 id => mapping(address who => bool)) private _voted;
    uint256[] private _ids;
    uint256 public executions;
    bool public struck; // the governor has called another contract

    // What the governor should answer.
    address public guardian = person(OWNERS);
    uint32 public guardsLeft = GUARDS;
    uint32 public price = 1_000_000;
    bool public isMature;
    bool public isSunset;
    uint256 public pausedUntil;
    uint256 public votedUntil;
    mapping(address gateway => bool) public isDelisted;
    uint256 public pausedFrom; // of the newest pauses that touch each other
    uint256 public stoodFrom; // of those between which no round could surely open

    constructor() {
        for (uint256 i = 0; i < OWNERS; ++i) {
            delegate(i, i == 0 ? OWNERS : i);
            vest(i, 2.5 ether - 1);
        }
    }

    function gateway(uint256 seed) public pure returns (address) {
        return address(uint160(0x901 + seed % GATEWAYS));
    }

    /// @notice A contract that is not the governor; nothing ever comes from there.
    function strike() external {
        if (msg.sender == address(governor)) struck = true;
    }

    // --- what is proposed

    /// @dev A decision by its number: those up to `DECISIONS` are among the seven, some of them beyond the charter's bounds.
    function _calldata(uint256 which) private view returns (bytes memory) {
        uint48[4] memory pauses = [uint48(2 days), uint48(LONGEST), uint48(LONGEST) + 1, 0];
        uint32[4] memory prices = [700_000, uint32(LEAST_PRICE), uint32(LEAST_PRICE) - 1, 1_000_001];
        if (which < 4) return abi.encodeCall(IGovernance.pause, (pauses[which]));
        if (which < 8) return abi.encodeCall(IGovernance.setPrice, (prices[which - 4]));
        if (which < 11) return abi.encodeCall(IGovernance.list, (gateway(which / 10), which != 9));
        if (which == 11) return abi.encodeCall(IGovernance.resume, ());
        if (which == 12) return abi.encodeCall(IGovernance.sunset, ());
        if (which == 13) return abi.encodeCall(IGovernance.dismissGuardian, ());
        if (which == 14) return abi.encodeCall(IGovernance.nameSuccessor, (gateway(0)));
        if (which == 15) return abi.encodePacked(_calldata(0), bytes1(0));
        if (which == 16) return abi.encodePacked(_calldata(12), bytes32(0));
        if (which == 17) return abi.encodeCall(governor.relay, (address(this), 0, abi.encodeCall(this.strike, ())));
        if (which == 18) return abi.encodeCall(IGovernance.guardianPause, ());
        if (which == 19) return "";
        if (which == 20) return abi.encodeCall(this.strike, ());
        if (which == 21) return abi.encodeCall(shares.transfer, (person(0), 0));
        return _calldata(which - 22);
    }

    /// @dev 20: another contract. 21: the shares. 22: twice in one. 23: with a coin. 24: of nothing.
    function _parts(uint256 which) private view returns (address[] memory, uint256[] memory, bytes[] memory) {
        uint256 count = which == 22 ? 2 : which == 24 ? 0 : 1;
        (address[] memory targets, uint256[] memory values, bytes[] memory calls) =
            (new address[](count), new uint256[](count), new bytes[](count));
        for (uint256 i = 0; i < count; ++i) {
            targets[i] = which == 20 ? address(this) : which == 21 ? address(shares) : address(governor);
            (values[i], calls[i]) = (which == 23 ? 1 : 0, _calldata(which));
        }
        return (targets, values, calls);
    }

    function _label(uint256 label) private pure returns (string memory) {
        return label % LABELS == 0 ? "" : "again";
    }

    function _id(uint256 which, uint256 label) private view returns (uint256) {
        (address[] memory targets, uint256[] memory values, bytes[] memory calls) = _parts(which);
        return uint256(keccak256(abi.encode(targets, values, calls, keccak256(bytes(_label(label))))));
    }

    // --- votes

    function propose(uint256 seed, uint256 which, uint256 label) public {
        (address who, uint256 id) = (person(seed), _id(which %= CALLS, label));
        (address[] memory targets, uint256[] memory values, bytes[] memory calls) = _parts(which);
        bool speaks = isMature && supplyAt(time - 1) >= LEAST_VESTED && _weight(who, time - 1) * 100 >= LEAST_VESTED;
        bool may = speaks && which < DECISIONS && _proposed[id].snapshot == 0;
        bytes memory data = abi.encodeCall(IGovernor.propose, (targets, values, calls, _label(label)));
        _call(who, address(governor), data, may);
        if (!may) return;
        ProposedCall storage p = _proposed[id];
        (p.which, p.proposer, p.snapshot) = (which, who, time + DELAY);
        _ids.push(id);
    }

    function vote(uint256 seed, uint256 number, uint256 support) public {
        if (_ids.length == 0) return;
        (address who, uint256 id) = (person(seed), _ids[number % _ids.length]);
        support %= 4;
        bool may = stateOf(id) == IGovernor.ProposalState.Active && !_voted[id][who] && support < 3;
        bytes memory data = abi.encodeCall(IGovernor.castVote, (id, uint8(support)));
        bytes memory answer = _call(who, address(governor), data, may);
        if (!may) return;
        uint256 weight = _weight(who, _proposed[id].snapshot);
        assertEq(abi.decode(answer, (uint256)), weight, "a vote weighs what was held at both times");
        _voted[id][who] = true;
        _proposed[id].tally[support] += weight;
    }

    function cancel(uint256 seed, uint256 number) external {
        if (_ids.length == 0) return;
        (address who, uint256 id) = (person(seed), _ids[number % _ids.length]);
        ProposedCall storage p = _proposed[id];
        // Half of all tries are the proposer's own.
        if (seed % 2 == 0) who = p.proposer;
        bool may = stateOf(id) == IGovernor.ProposalState.Pending && p.proposer == who;
        _act(who, IGovernor.cancel.selector, id, may);
        if (may) p.canceled = true;
    }

    function queue(uint256 seed, uint256 number) public {
        if (_ids.length == 0) return;
        uint256 id = _ids[number % _ids.length];
        bool may = stateOf(id) == IGovernor.ProposalState.Succeeded;
        _act(person(seed), IGovernor.queue.selector, id, may);
        if (may) _proposed[id].eta = time + LOCK;
    }

    function execute(uint256 seed, uint256 number) public {
        if (_ids.length == 0) return;
        uint256 id = _ids[number % _ids.length];
        ProposedCall storage p = _proposed[id];
        bool may = stateOf(id) == IGovernor.ProposalState.Queued && time >= p.eta && _admits(p.which);
        _act(person(seed), IGovernor.execute.selector, id, may);
        if (!may) return;
        _act(person(seed), IGovernor.execute.selector, id, false);
        p.executed = true;
        ++executions;
        _decide(p.which);
    }

    /// @dev A verb of the governor that names a proposal by all of its parts.
    function _act(address who, bytes4 verb, uint256 id, bool may) private {
        (address[] memory targets, uint256[] memory values, bytes[] memory calls) = _parts(_proposed[id].which);
        uint256 label = id == _id(_proposed[id].which, 0) ? 0 : 1;
        bytes32 words = keccak256(bytes(_label(label)));
        _call(who, address(governor), abi.encodeWithSelector(verb, targets, values, calls, words), may);
    }

    /// @notice A vote in its order, which chance alone would hardly ever take that far: of one mind or of several, with shares that change hands on the
    /// way, a guardian that pauses, and people who come too early or too late.
    function carry(uint256 seed, uint256 which, uint256 label) external {
        uint256 chance = uint256(keccak256(abi.encode(seed, which, label)));
        // Two thirds are what changes something, so that some follow others.
        uint8[8] memory likely = [0, 1, 4, 5, 8, 9, 12, 12];
        which = (chance >> 16) % 3 == 0 ? (chance >> 8) % DECISIONS : likely[(chance >> 8) % 8];
        finalize(1);
        mature(seed, LEAST_ROUNDS);
        if (supplyAt(time) < LEAST_VESTED + 1 ether) vest(seed, 3 ether - 1);
        _pass(chance % 7 == 0 ? 1 : DELAY + 1);
        uint256 before = _ids.length;
        propose(seed % OWNERS, which, label);
        if (_ids.length == before) return;
        if (chance % 3 == 0) transfer(seed, seed >> 8, seed >> 16);
        _pass(DELAY);
        if (chance % 5 == 0) vote(seed, before, 1);
        _pass(1);
        for (uint256 i = 0; i < OWNERS; ++i) {
            vote(i, before, chance % 4 == 0 ? seed >> (8 * i) : 1);
        }
        // More shares than there were at the snapshot change no quorum.
        if (chance % 3 == 1) vest(seed, 4 ether - 1);
        _pass(chance % 11 == 0 ? PERIOD + GRACE : PERIOD - 1);
        queue(seed, before);
        _pass(1);
        queue(seed, before);
        // A vote begins as a guardian's pause ends, or a moment later.
        if (which < 2 && seed % 2 == 0) guardianPause(0);
        _pass(LOCK - 1);
        execute(seed, before);
        _pass(chance % 13 == 0 ? GRACE + 1 : chance % 5 == 0 ? REST : 1);
        execute(seed, before);
    }

    // --- decisions

    /// @dev Whether a decision that has passed can be carried out now.
    function _admits(uint256 which) private view returns (bool) {
        if (which < 2) return votedUntil == 0 || time >= votedUntil + REST;
        if (which == 2 || which == 3 || which == 6 || which == 7) return false;
        if (which == 11) return time < pausedUntil;
        if (which == 12) return !isSunset;
        return which != 14 || phase >= RunPhase.WOUND_DOWN;
    }

    function _decide(uint256 which) private {
        if (which < 2) {
            votedUntil = time + (which == 0 ? 2 days : LONGEST);
            _pause(votedUntil);
        } else if (which == 4 || which == 5) {
            price = which == 4 ? 700_000 : uint32(LEAST_PRICE);
        } else if (which < 11) {
            isDelisted[gateway(which / 10)] = which != 9;
        } else if (which == 11) {
            pausedUntil = time;
            if (votedUntil > time) votedUntil = time;
        } else if (which == 12) {
            isSunset = true;
        } else if (which == 13) {
            guardian = address(0);
        }
    }

    function _pause(uint256 until) private {
        if (time > pausedUntil) pausedFrom = time;
        if (pausedUntil == 0 || time >= pausedUntil + REST) stoodFrom = time;
        if (until > pausedUntil) pausedUntil = until;
    }

    function guardianPause(uint256 seed) public {
        address who = seed % 2 == 0 ? person(OWNERS) : person(seed);
        bool rested = pausedUntil == 0 || time >= pausedUntil + REST + GUARDED;
        bool may = who == guardian && guardsLeft != 0 && rested;
        _call(who, address(governor), abi.encodeCall(IGovernance.guardianPause, ()), may);
        if (!may) return;
        --guardsLeft;
        _pause(time + GUARDED);
    }

    function mature(uint256 seed, uint256 which) public {
        uint64 generation = uint64(which % 4);
        bool may = generation >= LEAST_ROUNDS && generation <= _final;
        _call(person(seed), address(governor), abi.encodeCall(IGovernance.mature, (generation)), may);
        if (may) isMature = true;
    }

    /// @notice Nobody decides alone: owners, the guardian, the run's own contracts and whoever they name.
    function command(uint256 seed, uint256 which) external {
        address who = seed % 4 == 0 ? address(this) : person(seed);
        which %= 18;
        _call(who, address(governor), _calldata(which), false);
        vm.deal(who, 1);
        vm.prank(who);
        (bool done,) = address(governor).call{value: 1}("");
        assertFalse(done, "a coin was taken");
    }

    function wait(uint256 seed) external {
        uint256[8] memory steps = [uint256(1), REST, REST - 1, DELAY, PERIOD, LOCK, LONGEST, GRACE];
        _pass(steps[seed % 8]);
    }

    // --- the books

    function proposals() external view returns (uint256) {
        return _ids.length;
    }

    function proposal(uint256 index) external view returns (uint256 id, ProposedCall memory) {
        id = _ids[index];
        return (id, _proposed[id]);
    }

    /// @notice Where a proposal stands, by these books.
    function stateOf(uint256 id) public view returns (IGovernor.ProposalState) {
        ProposedCall storage p = _proposed[id];
        if (p.executed) return IGovernor.ProposalState.Executed;
        if (p.canceled) return IGovernor.ProposalState.Canceled;
        if (time <= p.snapshot) return IGovernor.ProposalState.Pending;
        if (time <= p.snapshot + PERIOD) return IGovernor.ProposalState.Active;
        uint256 vested = supplyAt(p.snapshot);
        uint256 quorum = (vested < LEAST_VESTED ? LEAST_VESTED : vested) * QUORUM_PPM;
        if ((p.tally[1] + p.tally[2]) * 1_000_000 < quorum || p.tally[1] <= p.tally[0]) {
            return IGovernor.ProposalState.Defeated;
        }
        if (time > (p.eta == 0 ? p.snapshot + PERIOD : p.eta) + GRACE) return IGovernor.ProposalState.Expired;
        return p.eta == 0 ? IGovernor.ProposalState.Succeeded : IGovernor.ProposalState.Queued;
    }
}
