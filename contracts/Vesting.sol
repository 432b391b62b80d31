// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

import {IAudit} from "./interfaces/IAudit.sol";
import {ICharter, Modules} from "./interfaces/ICharter.sol";
import {Grant, IVesting} from "./interfaces/IShares.sol";
import {ModelShares} from "./ModelShares.sol";

/// @title Vesting: shares that are credited and not yet anybody's tokens
contract Vesting is IVesting {
    ICharter public immutable charter;
    address private immutable _settlement;
    IAudit private immutable _audit;
    ModelShares private immutable _shares;

    mapping(bytes32 id => Grant) private _grants;
    /// @inheritdoc IVesting
    mapping(address owner => uint256) public pendingOf;

    constructor(ICharter charter_) {
        Modules memory modules = charter_.modules();
        charter = charter_;
        _settlement = modules.settlement;
        _audit = IAudit(modules.audit);
        _shares = ModelShares(modules.shares);
    }

    /// @inheritdoc IVesting
    function credit(bytes32 id, address owner, uint128 amount, uint64 vestsAt, bool forDuties) external {
        if (msg.sender != _settlement) revert NotSettlement(msg.sender);
        if (_grants[id].owner != address(0)) revert GrantExists(id);
        _grants[id] = Grant(owner, amount, vestsAt, forDuties, false);
        pendingOf[owner] += amount;
        emit Credited(id, owner, amount, vestsAt);
    }

    /// @inheritdoc IVesting
    function release(bytes32 id) external {
        Grant storage grant = _grants[id];
        if (grant.owner == address(0) || grant.done) revert GrantNotFound(id);
        bool cancelled = _isCancelled(grant);
        if (!cancelled && block.timestamp < grant.vestsAt) revert NotVested(id, grant.vestsAt);
        grant.done = true;
        pendingOf[grant.owner] -= grant.amount;
        if (cancelled) {
            emit Cancelled(id, grant.owner, grant.amount);
        } else {
            emit Vested(id, grant.owner, grant.amount);
            _shares.mint(grant.owner, grant.amount);
        }
    }

    /// @inheritdoc IVesting
    function grantOf(bytes32 id) external view returns (Grant memory) {
        return _grants[id];
    }

    /// @inheritdoc IVesting
    function workId(uint64 round, uint32 seat) external pure returns (bytes32) {
        return keccak256(abi.encode("assay.work", round, seat));
    }

    /// @inheritdoc IVesting
    function dutiesId(uint64 round, address attester) external pure returns (bytes32) {
        return keccak256(abi.encode("assay.duties", round, attester));
    }

    /// @dev Work is credited when nothing can refute it any more. A verifier is judged as a whole: its first conviction takes what was pending, and
    /// nothing that had vested, pulled or not.
    function _isCancelled(Grant storage grant) private view returns (bool) {
        if (!grant.forDuties) return false;
        uint64 convictedAt = _audit.attesterOf(grant.owner).convictedAt;
        return convictedAt != 0 && convictedAt < grant.vestsAt;
    }
}
