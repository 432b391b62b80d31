// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

import {Governor} from "@openzeppelin/contracts/governance/Governor.sol";
import {GovernorCountingSimple} from "@openzeppelin/contracts/governance/extensions/GovernorCountingSimple.sol";
import {GovernorVotes} from "@openzeppelin/contracts/governance/extensions/GovernorVotes.sol";
import {IVotes} from "@openzeppelin/contracts/governance/utils/IVotes.sol";
import {Math} from "@openzeppelin/contracts/utils/math/Math.sol";
import {IEscrow, RunPhase} from "../interfaces/IEscrow.sol";
import {GenerationStatus, IGenerations} from "../interfaces/IGenerations.sol";
import {IGovernance} from "../interfaces/IGovernance.sol";
import {RunModules} from "../interfaces/IRoundTerms.sol";
import {IRunCharter} from "../interfaces/IRunCharter.sol";
import {RunGovernance, RunTerms} from "../interfaces/RunTypes.sol";
import {GovernanceBounds} from "../libraries/GovernanceBounds.sol";

/// @title RunGovernor: what the owners of a run's shares decide together, and how
/// @notice Votes are counted by OpenZeppelin's Governor. It holds nothing and calls nothing but itself: a decision is one of the functions of
/// `IGovernance`, so that the time lock is a clock here and no contract with rights of its own.
contract RunGovernor is IGovernance, GovernorCountingSimple, GovernorVotes {
    uint256 private constant PPM = 1_000_000;
    /// @notice Seconds for which a decision can be queued, and once its time lock is over, executed.
    uint256 public constant GRACE = 14 days;

    IRunCharter public immutable charter;
    IEscrow private immutable _escrow;
    IGenerations private immutable _generations;
    uint256 private immutable _votingDelay;
    uint256 private immutable _votingPeriod;
    /// @notice Seconds from a decision's queue to its first execution.
    uint256 public immutable timelock;
    uint256 private immutable _longestPause;
    uint256 private immutable _guardianPause;
    /// @notice Seconds between pauses, in which a round can open.
    uint256 public immutable rest;
    uint256 private immutable _quorumPpm;
    uint256 private immutable _leastRounds;
    uint256 private immutable _leastPricePpm;
    /// @notice Shares that must have vested before anybody proposes, in wei of shares.
    uint256 public immutable leastVested;

    /// @notice Who may pause without a vote; zero: nobody.
    address public guardian;
    uint32 public guardianPausesLeft;
    /// @inheritdoc IGovernance
    uint32 public pricePpm;
    bool public isMature;
    /// @inheritdoc IGovernance
    bool public isSunset;
    /// @notice First second of chain time after the newest pause; 0: there was none.
    uint48 public pausedUntil;
    /// @notice The same of the newest pause by a vote.
    uint48 public votedUntil;
    /// @inheritdoc IGovernance
    mapping(address gateway => bool) public isDelisted;

    constructor(IRunCharter charter_)
        Governor("Assay run governor")
        GovernorVotes(IVotes(charter_.roundModules().shares))
    {
        RunTerms memory terms = charter_.runTerms();
        RunModules memory modules = charter_.roundModules();
        RunGovernance memory g = terms.governance;
        charter = charter_;
        (_escrow, _generations) = (IEscrow(modules.escrow), IGenerations(modules.generations));
        (_votingDelay, _votingPeriod, timelock) = (g.votingDelay, g.votingPeriod, g.timelock);
        (_longestPause, _guardianPause) = (g.longestPause, g.guardianPause);
        rest = GovernanceBounds.restOf(terms.chain);
        (_quorumPpm, _leastRounds, _leastPricePpm) = (g.quorumPpm, g.leastRounds, g.leastPricePpm);
        leastVested = GovernanceBounds.leastVested(terms);
        (guardian, guardianPausesLeft, pricePpm) = (g.guardian, g.guardianPauses, uint32(PPM));
    }

    /// @dev Nothing is held here.
    receive() external payable override {
        revert GovernorDisabledDeposit();
    }

    // ------------------------------------------------------------------------------------------------ without a vote

    /// @inheritdoc IGovernance
    function mature(uint64 generation) external {
        bool isFinal = _generations.statusOf(generation) == GenerationStatus.FINAL;
        if (generation < _leastRounds || !isFinal) revert NotMature(generation, _leastRounds);
        isMature = true;
        emit Matured(generation);
    }

    /// @inheritdoc IGovernance
    function guardianPause() external {
        if (msg.sender != guardian) revert NotTheGuardian(msg.sender);
        // Attack: a guardian that pauses for ever.
        if (guardianPausesLeft == 0) revert NoPausesLeft();
        // Attack: pauses in a row, until the run stood still for so long that anybody can wind it down.
        _mustHaveRested(pausedUntil, rest + _guardianPause);
        --guardianPausesLeft;
        _pauseFor(_guardianPause, true);
    }

    // ------------------------------------------------------------------------------------------------ by vote

    /// @inheritdoc IGovernance
    function pause(uint48 length) external onlyGovernance {
        if (length == 0 || length > _longestPause) revert PauseOutOfBounds(length, _longestPause);
        // A vote may prolong a guardian's pause, once. Attack: the same as a guardian's.
        _mustHaveRested(votedUntil, rest);
        votedUntil = uint48(block.timestamp + length);
        _pauseFor(length, false);
    }

    /// @inheritdoc IGovernance
    function resume() external onlyGovernance {
        if (!isPaused()) revert NotPaused();
        pausedUntil = uint48(block.timestamp);
        if (votedUntil > pausedUntil) votedUntil = pausedUntil;
        emit RoundsResumed();
    }

    /// @inheritdoc IGovernance
    function sunset() external onlyGovernance {
        if (isSunset) revert AlreadySunset();
        isSunset = true;
        emit SunsetDecided();
    }

    /// @inheritdoc IGovernance
    function setPrice(uint32 ppm) external onlyGovernance {
        // Attack: pay above the price that stakes follow from; or work for nothing under a charter that promised pay.
        if (ppm < _leastPricePpm || ppm > PPM) revert PriceOutOfBounds(ppm, _leastPricePpm, PPM);
        pricePpm = ppm;
        emit PriceChanged(ppm);
    }

    /// @inheritdoc IGovernance
    function list(address gateway, bool isDelisted_) external onlyGovernance {
        isDelisted[gateway] = isDelisted_;
        emit GatewayListed(gateway, isDelisted_);
    }

    /// @inheritdoc IGovernance
    function dismissGuardian() external onlyGovernance {
        guardian = address(0);
        emit GuardianDismissed();
    }

    /// @inheritdoc IGovernance
    function nameSuccessor(address charter_) external onlyGovernance {
        // Attack: owners of few early shares who send a run's people elsewhere while it trains.
        if (_escrow.phase() < RunPhase.WOUND_DOWN) revert RunNotFinished();
        emit SuccessorNamed(charter_);
    }

    // ------------------------------------------------------------------------------------------------ views

    /// @inheritdoc IGovernance
    function isPaused() public view returns (bool) {
        return block.timestamp < pausedUntil;
    }

    /// @notice Shares that must vote for or abstain, in wei of shares: of those vested at a time, at least of the least that governs.
    function quorum(uint256 timepoint) public view override returns (uint256) {
        uint256 vested = Math.max(token().getPastTotalSupply(timepoint), leastVested);
        return Math.ceilDiv(vested * _quorumPpm, PPM);
    }

    /// @inheritdoc Governor
    function proposalThreshold() public view override returns (uint256) {
        return Math.ceilDiv(leastVested, GovernanceBounds.PROPOSERS);
    }

    /// @inheritdoc Governor
    function votingDelay() public view override returns (uint256) {
        return _votingDelay;
    }

    /// @inheritdoc Governor
    function votingPeriod() public view override returns (uint256) {
        return _votingPeriod;
    }

    /// @inheritdoc Governor
    function proposalNeedsQueuing(uint256) public pure override returns (bool) {
        return true;
    }

    /// @inheritdoc Governor
    function state(uint256 proposalId) public view override returns (ProposalState found) {
        found = super.state(proposalId);
        // Attack: a majority of long ago, carried out when nobody looks any more.
        if (found == ProposalState.Succeeded && block.timestamp > proposalDeadline(proposalId) + GRACE) {
            return ProposalState.Expired;
        }
        if (found == ProposalState.Queued && block.timestamp > proposalEta(proposalId) + GRACE) {
            return ProposalState.Expired;
        }
    }

    /// @dev Votes are by chain time, as the shares count them.
    function clock() public view override(Governor, GovernorVotes) returns (uint48) {
        return uint48(block.timestamp);
    }

    // solhint-disable-next-line func-name-mixedcase
    function CLOCK_MODE() public pure override(Governor, GovernorVotes) returns (string memory) {
        return "mode=timestamp";
    }

    // ------------------------------------------------------------------------------------------------ inside

    /// @dev Attack: shares borrowed for a block, or moved from account to account while a vote is on. What an account had at both ends of the voting
    /// delay counts, so that the weights of all accounts together are at most the shares there were at either.
    function _getVotes(address account, uint256 timepoint, bytes memory params)
        internal
        view
        override(Governor, GovernorVotes)
        returns (uint256)
    {
        uint256 earlier = timepoint - _votingDelay;
        return Math.min(super._getVotes(account, timepoint, params), super._getVotes(account, earlier, params));
    }

    function _propose(
        address[] memory targets,
        uint256[] memory values,
        bytes[] memory calldatas,
        string memory description,
        address proposer
    ) internal override returns (uint256) {
        // Attack: the first owner of a few shares decides for everybody who works for the rest.
        uint256 vested = token().getPastTotalSupply(clock() - 1);
        if (!isMature || vested < leastVested) revert TooEarlyToGovern(vested, leastVested, isMature);
        bool isOne = targets.length == 1 && values.length == 1 && calldatas.length == 1;
        // Attack: a proposal that calls whatever it likes in the run's name, or hides one decision behind another.
        if (!isOne || targets[0] != address(this) || values[0] != 0 || !_isDecision(calldatas[0])) {
            revert NotADecision();
        }
        return super._propose(targets, values, calldatas, description, proposer);
    }

    function _queueOperations(uint256, address[] memory, uint256[] memory, bytes[] memory, bytes32)
        internal
        view
        override
        returns (uint48)
    {
        return uint48(block.timestamp + timelock);
    }

    function _executeOperations(
        uint256 proposalId,
        address[] memory targets,
        uint256[] memory values,
        bytes[] memory calldatas,
        bytes32 descriptionHash
    ) internal override {
        // `execute` takes coins to send them on, and no decision sends any: nobody could take them out again.
        if (msg.value != 0) revert GovernorDisabledDeposit();
        uint256 eta = proposalEta(proposalId);
        // Attack: a decision carried out in front of those who leave because of it.
        if (block.timestamp < eta) revert TimelockRuns(block.timestamp, eta);
        super._executeOperations(proposalId, targets, values, calldatas, descriptionHash);
    }

    function _isDecision(bytes memory call) private pure returns (bool) {
        bytes4 verb = bytes4(call);
        if (verb == IGovernance.list.selector) return call.length == 4 + 64;
        bool takesOne = verb == IGovernance.pause.selector || verb == IGovernance.setPrice.selector;
        if (takesOne || verb == IGovernance.nameSuccessor.selector) return call.length == 4 + 32;
        bool takesNone = verb == IGovernance.resume.selector || verb == IGovernance.sunset.selector;
        return (takesNone || verb == IGovernance.dismissGuardian.selector) && call.length == 4;
    }

    function _mustHaveRested(uint256 until, uint256 wait) private view {
        uint256 notBefore = until == 0 ? 0 : until + wait;
        if (block.timestamp < notBefore) revert PauseTooSoon(block.timestamp, notBefore);
    }

    function _pauseFor(uint256 length, bool byGuardian) private {
        uint48 until = uint48(block.timestamp + length);
        if (until > pausedUntil) pausedUntil = until;
        emit RoundsPaused(pausedUntil, byGuardian);
    }
}
