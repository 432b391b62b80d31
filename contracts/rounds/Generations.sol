// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

import {Entry} from "../interfaces/IGenerations.sol";
import {RoundTerms} from "../interfaces/IRoundTerms.sol";
import {IRunCharter} from "../interfaces/IRunCharter.sol";
import {ISeatPositions} from "../interfaces/ISeatPositions.sol";
import {MergeInput} from "../libraries/MergeInput.sol";
import {StateRoots} from "../libraries/StateRoots.sol";
import {GenerationMoves} from "./GenerationMoves.sol";
import {GenerationNodes} from "./GenerationNodes.sol";

/// @title Generations: what the rounds of at most 64 seats are merged into
contract Generations is GenerationMoves, ISeatPositions {
    bytes32 private constant ABSTAINED = bytes32(uint256(1)); // no root, and no seal

    uint32 private immutable _seats;

    constructor(IRunCharter charter) GenerationNodes(charter) GenerationMoves(charter) {
        RoundTerms memory terms = charter.roundTerms();
        if (terms.seats > ONE_LEVEL) revert TooManySeats(terms.seats);
        _seats = terms.seats;
    }

    // ------------------------------------------------------------------------------------------------ merging

    /// @inheritdoc ISeatPositions
    function seal(uint64 round, uint32 seat, bytes32 seal_) external {
        // Attack: a seal of zero, which leaves no mark: its seat spoke for all, and nobody else's seal was taken any more.
        _say(round, seat, seal_ == 0 ? ABSTAINED : seal_);
        emit RootSealed(round + 1, seat, seal_);
    }

    /// @inheritdoc ISeatPositions
    function abstain(uint64 round, uint32 seat) external {
        _say(round, seat, ABSTAINED);
        emit Abstained(round + 1, seat);
    }

    /// @inheritdoc ISeatPositions
    function open(uint64 round, uint32 seat, bytes32 parameters, bytes32 momentum, bytes32 salt) external {
        uint64 generation = round + 1;
        _mustBeSpeaking(generation, _commitments.mergeUntil(round));
        // Attack: roots that are copied from whoever opens first, and so stand for nobody's work.
        _mustBeAfter(_sealUntil(round));
        bytes32 root = StateRoots.state2(parameters, momentum);
        // Attack: a reorganization that changes which updates count, and an honest root that is opened over others.
        bytes32 digest = sealOf(round, seat, root, _commitments.overOf(round, 0), salt, msg.sender);
        if (digest != _seals[generation][seat]) revert SealMismatch(digest, _seals[generation][seat]);
        (uint32 tenure, uint256 voices, uint256 all,) = _commitments.speakerOf(generation, seat, 0, msg.sender);
        Node storage node = _putOpening(generation, seat, tenure, root, voices);
        (node.parameters, node.momentum) = (parameters, momentum);
        emit RootOpened(generation, seat, root, parameters, momentum);
        _merge(generation, root, all);
    }

    /// @inheritdoc ISeatPositions
    function prepare(uint64 round, Entry[] calldata entries) external {
        (uint64 counted, bytes32[] memory updates) = _countedUpdates(round, 0, _seats, entries);
        Node storage base = _leading(_parentOf(round));
        _putInput(round + 1, MergeInput.root(base.parameters, base.momentum, updates, counted));
    }

    // ------------------------------------------------------------------------------------------------ tenures

    function _holderOf(uint32 opener) internal view override returns (address) {
        return _tenures.holderOf(opener);
    }

    function _lockOf(uint32 opener) internal view override returns (bytes32, uint256) {
        return (_tenures.lockOf(opener), _seatLock);
    }

    function _isConvicted(uint32 opener) internal view override returns (bool) {
        return _tenures.isConvicted(opener);
    }

    function _openTenures() internal pure override returns (bool) {
        return true;
    }

    function _oblige(uint32 opener) internal override {
        _tenures.oblige(opener);
    }

    function _acquit(uint32 opener) internal override {
        _tenures.acquit(opener);
    }

    function _onGameOpened(uint32 opener) internal override {
        _tenures.onGameOpened(opener);
    }

    function _onGameClosed(uint32 opener, bool convicted) internal override returns (bool) {
        return _tenures.onGameClosed(opener, convicted);
    }

    // ------------------------------------------------------------------------------------------------ inside

    function _onFinal(uint64) internal override {}

    function _say(uint64 round, uint32 seat, bytes32 seal_) private {
        uint64 generation = round + 1;
        uint48 until = _sealUntil(round);
        _mustBeSpeaking(generation, until);
        (, uint256 voices, uint256 all,) = _commitments.speakerOf(generation, seat, 0, msg.sender);
        _putSeal(generation, seat, seal_, voices, all, until);
    }

    function _sealUntil(uint64 round) private view returns (uint48) {
        uint48 sealUntil = _votes[round + 1].sealUntil;
        return sealUntil != 0 ? sealUntil : _commitments.mergeUntil(round);
    }
}
