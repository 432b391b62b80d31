// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

import {ClaimKind, ClaimRef, ClaimView, IClaims} from "../interfaces/IClaims.sol";
import {Entry, OpenedRoot} from "../interfaces/IGenerations.sol";
import {IAccusers, RunModules, RoundTerms} from "../interfaces/IRoundTerms.sol";
import {IRunCharter} from "../interfaces/IRunCharter.sol";
import {ClaimIds} from "../libraries/ClaimIds.sol";
import {GenerationNodes} from "./GenerationNodes.sol";

/// @title MergeClaims: each opened root is a claim about a merge, and the game's verdict on it
abstract contract MergeClaims is GenerationNodes {
    address private immutable _game;
    address private immutable _charter;
    bytes32 private immutable _run;
    bytes32 private immutable _mergeProgram;
    bytes32 private immutable _partialProgram;
    bytes32 private immutable _zeroUpdate;
    IAccusers private immutable _accusers;

    mapping(uint64 node => bytes32 x) private _inputs;

    constructor(IRunCharter charter) {
        (RoundTerms memory terms, RunModules memory modules) = (charter.roundTerms(), charter.roundModules());
        (_game, _charter, _accusers) = (modules.game, modules.charter, IAccusers(modules.attestations));
        (_run, _mergeProgram, _partialProgram) = (terms.run, terms.outerProgram, terms.partialProgram);
        _zeroUpdate = terms.zeroUpdate;
    }

    /// @inheritdoc IClaims
    function claimOf(ClaimRef calldata ref) external view returns (ClaimView memory view_) {
        (uint64 node, bytes32 party, OpenedRoot storage opening, bytes32 x) = _claimed(ref);
        // Of what is closed nothing can be said any more: its ticket may be gone.
        if (x == 0 || opening.closed) return view_;
        (view_.x, view_.y, view_.steps) = (x, opening.root, 1);
        view_.program = ref.duty == 0 ? _mergeProgram : _partialProgram;
        view_.challengeableFrom = opening.at;
        view_.challengeableUntil = opening.at + _challenge;
        if (opening.opener != 0) {
            view_.claimant = _holderOf(opening.opener);
            (view_.lockId, view_.lockAmount) = _lockOf(opening.opener);
        } else {
            (view_.claimant, view_.lockId, view_.lockAmount) = (opening.backer, _backLock(node, party), _seatLock);
        }
        view_.id = ClaimIds.claim(_charter, _run, ClaimKind.OUTER, view_.claimant, x, opening.root);
        view_.fallen = opening.fallen || _isTakenElsewhere(opening);
        (view_.bountyPpm, view_.beneficiary) = _accusers.bountyOf(_openTenures(), opening.opener);
    }

    /// @inheritdoc IClaims
    /// @dev A merge needs no draw: everybody who trains computes it.
    function mayChallengeDirectly(ClaimRef calldata ref, address who) external view returns (bool) {
        (,,, bytes32 x) = _claimed(ref);
        return x != 0 && _tenures.tenuresOf(who) != 0;
    }

    /// @inheritdoc IClaims
    function onOpened(ClaimRef calldata ref, address) external {
        if (msg.sender != _game) revert NotTheGame(msg.sender);
        (uint64 node,, OpenedRoot storage opening, bytes32 x) = _claimed(ref);
        if (x == 0) revert ClaimNotFound(ref.kind, ref.round, ref.seat, ref.duty);
        if (opening.closed) revert ClaimSettled(ref.kind, ref.round, ref.seat, ref.duty);
        ++opening.games;
        ++_nodes[node][opening.root].state.games;
        if (opening.opener != 0) _onGameOpened(opening.opener);
    }

    /// @inheritdoc IClaims
    function onClosed(ClaimRef calldata ref, bool convicted) external returns (bool first) {
        if (msg.sender != _game) revert NotTheGame(msg.sender);
        (uint64 node, bytes32 party, OpenedRoot storage opening,) = _claimed(ref);
        --opening.games;
        --_nodes[node][opening.root].state.games;
        first = convicted && !opening.fallen;
        if (opening.opener != 0) first = _onGameClosed(opening.opener, convicted);
        if (convicted && !opening.fallen) _lose(node, party, opening);
    }

    // ------------------------------------------------------------------------------------------------ inside

    /// @dev The updates of a group that count, by their place in it; other slots have the zero update.
    function _countedUpdates(uint64 round, uint32 group, uint32 size, Entry[] calldata entries)
        internal
        view
        returns (uint64 counted, bytes32[] memory updates)
    {
        bytes32 wanted;
        (counted, wanted) = _commitments.mergedOf(round, group);
        updates = new bytes32[](size);
        for (uint256 i = 0; i < size; ++i) {
            updates[i] = _zeroUpdate;
        }
        bytes32 acc;
        for (uint256 i = 0; i < entries.length; ++i) {
            Entry calldata e = entries[i];
            acc = keccak256(abi.encode(acc, e.seat, e.update, e.units));
            uint256 place = e.seat % size;
            if (counted >> place & 1 == 1) updates[place] = e.update;
        }
        // Attack: X of the challenger's own choice.
        if (acc != wanted) revert EntriesMismatch(acc, wanted);
    }

    function _putInput(uint64 node, bytes32 x) internal {
        _inputs[node] = x;
        emit MergePrepared(node, x);
    }

    /// @dev What a claim is about, whose it is, and its X; zero: there is no such claim, or nobody prepared it.
    function _claimed(ClaimRef calldata ref)
        private
        view
        returns (uint64 node, bytes32 party, OpenedRoot storage opening, bytes32 x)
    {
        // Its duty is the group of a partial sum plus one, zero the generation itself.
        node = uint64(ref.duty) << 32 | (ref.round + 1);
        party = ref.party == address(0) ? partyOf(ref.seat) : backerOf(ref.outerRoot, ref.party);
        opening = _openings[node][party];
        // Attack: a round so large that it names a group's sum as a generation, to be judged by another program.
        if (ref.round >= type(uint32).max) return (node, party, opening, 0);
        if (ref.kind == ClaimKind.OUTER && opening.at != 0 && opening.root == ref.outerRoot) x = _inputs[node];
    }
}
