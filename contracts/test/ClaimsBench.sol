// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

import {ClaimRef, ClaimView, IClaims} from "../interfaces/IClaims.sol";
import {RunModules} from "../interfaces/IRoundTerms.sol";
import {IRunCharter} from "../interfaces/IRunCharter.sol";
import {IVault} from "../interfaces/IVault.sol";

/// @title ClaimsBench: a book in which tests write claims; a conviction takes a lock once, as in every book
contract ClaimsBench is IClaims {
    address private immutable _game;
    IVault private immutable _vault;

    mapping(bytes32 ref => ClaimView) private _views;
    mapping(bytes32 lockId => bool) private _fallen;
    mapping(bytes32 ref => mapping(address who => bool)) private _direct;
    mapping(bytes32 ref => int256) private _open;

    /// @notice Whether the run was wound down, of which its gate would know.
    bool public isStopped;

    constructor(IRunCharter charter) {
        RunModules memory modules = charter.roundModules();
        (_game, _vault) = (modules.game, IVault(modules.vault));
    }

    modifier onlyGame() {
        if (msg.sender != _game) revert NotTheGame(msg.sender);
        _;
    }

    /// @notice Writes a claim; `fresh` is locked from the claimant's free balance.
    function put(ClaimRef calldata ref, ClaimView calldata claim, uint256 fresh) external {
        _views[_key(ref)] = claim;
        if (fresh != 0) _vault.lock(claim.lockId, claim.claimant, fresh);
    }

    function stop(bool stopped) external {
        isStopped = stopped;
    }

    function allow(ClaimRef calldata ref, address who) external {
        _direct[_key(ref)][who] = true;
    }

    /// @notice A lock of the same name is put up anew: convictions under it count again.
    function renew(bytes32 lockId, address owner, uint256 amount) external {
        _fallen[lockId] = false;
        _vault.lock(lockId, owner, amount);
    }

    function openGames(ClaimRef calldata ref) external view returns (int256) {
        return _open[_key(ref)];
    }

    function claimOf(ClaimRef calldata ref) external view returns (ClaimView memory claim) {
        claim = _views[_key(ref)];
        claim.fallen = _fallen[claim.lockId];
    }

    function mayChallengeDirectly(ClaimRef calldata ref, address who) external view returns (bool) {
        return _direct[_key(ref)][who];
    }

    function onOpened(ClaimRef calldata ref, address) external onlyGame {
        ++_open[_key(ref)];
    }

    function onClosed(ClaimRef calldata ref, bool convicted) external onlyGame returns (bool first) {
        --_open[_key(ref)];
        bytes32 lockId = _views[_key(ref)].lockId;
        first = convicted && !_fallen[lockId];
        if (first) _fallen[lockId] = true;
    }

    function _key(ClaimRef calldata ref) private pure returns (bytes32) {
        return keccak256(abi.encode(ref));
    }
}
