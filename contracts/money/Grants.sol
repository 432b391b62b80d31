// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

import {ModelShares} from "../ModelShares.sol";
import {Grant, IGrants} from "../interfaces/IGrants.sol";
import {RunModules} from "../interfaces/IRoundTerms.sol";
import {IRunCharter} from "../interfaces/IRunCharter.sol";
import {ITenures} from "../interfaces/ITenures.sol";
import {ITickets} from "../interfaces/ITickets.sol";
import {IVault} from "../interfaces/IVault.sol";

/// @title Grants: shares that are credited and not yet anybody's tokens
contract Grants is IGrants {
    IRunCharter public immutable charter;
    address private immutable _payments;
    ITenures private immutable _tenures;
    ITickets private immutable _tickets;
    ModelShares private immutable _shares;
    IVault private immutable _vault;
    uint48 private immutable _vesting;

    mapping(bytes32 id => Grant) private _grants;
    /// @inheritdoc IGrants
    mapping(address owner => uint256) public pendingOf;

    constructor(IRunCharter charter_) {
        RunModules memory modules = charter_.roundModules();
        (charter, _payments) = (charter_, modules.payments);
        (_tenures, _tickets) = (ITenures(modules.tenures), ITickets(modules.tickets));
        (_shares, _vault) = (ModelShares(modules.shares), IVault(modules.vault));
        _vesting = charter_.runTerms().timing.vesting;
    }

    /// @inheritdoc IGrants
    function credit(bytes32 id, address owner, uint128 amount, uint32 tenure, uint32 ticket) external {
        if (msg.sender != _payments) revert NotPayments(msg.sender);
        uint48 vestsAt = uint48(block.timestamp) + _vesting;
        _grants[id] = Grant(owner, vestsAt, tenure, ticket, amount, false);
        pendingOf[owner] += amount;
        emit Credited(id, owner, amount, vestsAt);
    }

    /// @inheritdoc IGrants
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
            // Attack: a thief of the key that earned the shares waits until they vest, and takes them.
            address to = _vault.payeeOf(grant.owner);
            emit Vested(id, grant.owner, to, grant.amount);
            _shares.mint(to, grant.amount);
        }
    }

    /// @inheritdoc IGrants
    function grantOf(bytes32 id) external view returns (Grant memory) {
        return _grants[id];
    }

    /// @dev Attack: lie in one round and keep the shares of the others. A conviction takes all that was pending, and nothing that had vested.
    function _isCancelled(Grant storage grant) private view returns (bool) {
        uint48 convictedAt = grant.tenure != 0
            ? _tenures.tenureOf(grant.tenure).convictedAt
            : _tickets.ticketOf(grant.ticket).convictedAt;
        return convictedAt != 0 && convictedAt < grant.vestsAt;
    }
}
