// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

import {Checkpoints} from "@openzeppelin/contracts/utils/structs/Checkpoints.sol";
import {Attester, IAudit, Role} from "./interfaces/IAudit.sol";
import {Modules, Terms} from "./interfaces/ICharter.sol";
import {IRounds} from "./interfaces/IRounds.sol";
import {IVault} from "./interfaces/IVault.sol";
import {ClaimIds} from "./libraries/ClaimIds.sol";
import {Draws} from "./libraries/Draws.sol";

/// @title Registry: verifiers and whistleblowers, their keys and their stakes by round
/// @notice Stakes are checkpointed by round, so that T0 freezes them without a loop. Every change counts from the second T0 after it: a key that was
/// chosen after a seed could be known draws nothing under that seed.
abstract contract Registry is IAudit {
    using Checkpoints for Checkpoints.Trace208;

    IVault internal immutable _vault;
    IRounds internal immutable _rounds;
    uint128 internal immutable _bond; // B

    mapping(address who => Attester) internal _attesters;
    mapping(address who => bytes) private _keys;
    mapping(bytes32 keyHash => bool) private _keyTaken;
    mapping(address who => Checkpoints.Trace208) private _stakes;
    mapping(Role role => Checkpoints.Trace208) private _totals;
    /// @inheritdoc IAudit
    mapping(Role role => uint256) public members;

    constructor(Terms memory terms, Modules memory modules) {
        _vault = IVault(modules.vault);
        _rounds = IRounds(modules.rounds);
        _bond = terms.economics.verifierBond;
    }

    /// @inheritdoc IAudit
    function register(Role role, bytes calldata publicKey, bytes calldata proof, uint128 stake) external {
        if (role == Role.NONE) revert WrongRole(msg.sender, role);
        if (_attesters[msg.sender].role != Role.NONE) revert AlreadyRegistered(msg.sender);
        if (stake < _bond) revert StakeBelowBond(stake, _bond);
        bytes32 keyHash = keccak256(publicKey);
        if (_keyTaken[keyHash]) revert KeyTaken(keyHash);
        if (!Draws.verifyPossession(publicKey, proof, msg.sender)) revert BadPossession(msg.sender);
        _keyTaken[keyHash] = true;
        _keys[msg.sender] = publicKey;
        _attesters[msg.sender] = Attester(role, stake, 0, type(uint64).max, 0);
        ++members[role];
        uint64 from = _countsFrom();
        _changeStake(msg.sender, role, from, int256(uint256(stake)));
        _vault.lock(ClaimIds.attesterLock(msg.sender), msg.sender, stake);
        emit Registered(msg.sender, role, stake, from, publicKey);
    }

    /// @inheritdoc IAudit
    function retire() external {
        Attester storage attester = _attesters[msg.sender];
        if (attester.role == Role.NONE) revert NotRegistered(msg.sender);
        if (attester.retiresWith != type(uint64).max) revert AlreadyRetired(attester.retiresWith);
        _retire(msg.sender, attester);
    }

    /// @inheritdoc IAudit
    function reclaim() external {
        Attester storage attester = _attesters[msg.sender];
        if (attester.role == Role.NONE || attester.stake == 0) revert NotRegistered(msg.sender);
        if (attester.openGames != 0) revert GamesOpen(attester.openGames);
        uint64 count = _rounds.opened();
        if (attester.retiresWith > count && !_rounds.isOver()) revert NotRetired(attester.retiresWith);
        // The last round that it could be drawn in, of those that opened.
        uint64 end = attester.retiresWith < count ? attester.retiresWith : count;
        if (end != 0) {
            uint64 until = _rounds.timesOf(end - 1).challengeUntil;
            if (block.timestamp <= until) revert TooEarly(block.timestamp, until + 1);
        }
        if (attester.retiresWith == type(uint64).max) _retire(msg.sender, attester);
        attester.stake = 0;
        --members[attester.role];
        bytes32 id = ClaimIds.attesterLock(msg.sender);
        (, uint256 left) = _vault.lockOf(id);
        if (left != 0) _vault.release(id);
        emit Reclaimed(msg.sender, left);
    }

    /// @inheritdoc IAudit
    function stakeAt(address who, uint64 round) public view returns (uint256) {
        return _stakes[who].upperLookupRecent(uint48(round));
    }

    /// @inheritdoc IAudit
    function totalAt(Role role, uint64 round) public view returns (uint256) {
        return _totals[role].upperLookupRecent(uint48(round));
    }

    /// @inheritdoc IAudit
    function attesterOf(address who) external view returns (Attester memory) {
        return _attesters[who];
    }

    /// @inheritdoc IAudit
    function keyOf(address who) public view returns (bytes memory) {
        return _keys[who];
    }

    /// @dev Takes the first conviction's consequences: never drawn again, stake beyond B stays its owner's.
    function _convict(address who, uint64 round) internal {
        Attester storage attester = _attesters[who];
        attester.convictedAt = uint64(block.timestamp);
        if (attester.retiresWith == type(uint64).max) _retire(who, attester);
        emit AttesterConvictedAt(who, round);
    }

    function _retire(address who, Attester storage attester) private {
        uint64 from = _countsFrom();
        attester.retiresWith = from;
        _changeStake(who, attester.role, from, -int256(uint256(attester.stake)));
        emit Retired(who, from);
    }

    /// @dev Before the first round opens no seed can be known, so founders count at once.
    function _countsFrom() private view returns (uint64) {
        uint64 count = _rounds.opened();
        return count == 0 ? 0 : count + 1;
    }

    function _changeStake(address who, Role role, uint64 from, int256 change) private {
        _push(_stakes[who], from, change);
        _push(_totals[role], from, change);
    }

    function _push(Checkpoints.Trace208 storage trace, uint64 from, int256 change) private {
        trace.push(uint48(from), uint208(uint256(int256(uint256(trace.latest())) + change)));
    }
}
