// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

import {ClaimKind, ClaimRef, ClaimView, IClaims} from "../interfaces/IClaims.sol";
import {Entry, IGenerations, OpenedRoot} from "../interfaces/IGenerations.sol";
import {RoundModules, RoundTerms} from "../interfaces/IRoundTerms.sol";
import {IRunCharter} from "../interfaces/IRunCharter.sol";
import {ClaimIds} from "../libraries/ClaimIds.sol";
import {MergeInput} from "../libraries/MergeInput.sol";
import {GenerationNodes} from "./GenerationNodes.sol";

/// @title MergeClaims: each opened root is a claim about a merge, and the game's verdict on it
abstract contract MergeClaims is GenerationNodes {
    address private immutable _game;
    address private immutable _charter;
    bytes32 private immutable _run;
    bytes32 private immutable _program;
    bytes32 private immutable _zeroUpdate;

    mapping(uint64 generation => bytes32 x) private _inputs;

    constructor(IRunCharter charter) {
        (RoundTerms memory terms, RoundModules memory modules) = (charter.roundTerms(), charter.roundModules());
        (_game, _charter) = (modules.game, modules.charter);
        (_run, _program, _zeroUpdate) = (terms.run, terms.outerProgram, terms.zeroUpdate);
    }

    /// @inheritdoc IGenerations
    function prepare(uint64 round, Entry[] calldata entries) external {
        (uint64 counted, bool closed) = _commitments.countedOf(round, 0);
        if (!closed) revert MaskOpen(round);
        bytes32[] memory updates = new bytes32[](_seats);
        for (uint256 i = 0; i < _seats; ++i) {
            updates[i] = _zeroUpdate;
        }
        bytes32 acc;
        for (uint256 i = 0; i < entries.length; ++i) {
            Entry calldata e = entries[i];
            acc = keccak256(abi.encode(acc, e.seat, e.update, e.units));
            if (e.seat < _seats && counted >> e.seat & 1 == 1) updates[e.seat] = e.update;
        }
        // Attack: X of the challenger's own choice.
        bytes32 wanted = _commitments.groupOf(round, 0).acc;
        if (acc != wanted) revert EntriesMismatch(acc, wanted);
        uint64 parent = _commitments.roundOf(round).parent;
        Node storage base = _nodes[parent][_votes[parent].root];
        bytes32 x = MergeInput.root(base.parameters, base.momentum, updates, counted);
        _inputs[round + 1] = x;
        emit MergePrepared(round + 1, x);
    }

    /// @inheritdoc IClaims
    function claimOf(ClaimRef calldata ref) external view returns (ClaimView memory view_) {
        (uint64 generation, bytes32 party, OpenedRoot storage opening) = _claimed(ref);
        bytes32 x = _inputs[generation];
        if (x == 0 || !_isClaim(ref, opening)) return view_;
        (view_.x, view_.y, view_.program, view_.steps) = (x, opening.root, _program, 1);
        view_.claimant = opening.tenure != 0 ? _tenures.holderOf(opening.tenure) : opening.backer;
        view_.id = ClaimIds.claim(_charter, _run, ClaimKind.OUTER, view_.claimant, x, opening.root);
        view_.challengeableFrom = opening.at;
        view_.challengeableUntil = opening.closed ? 0 : opening.at + _challenge;
        view_.lockId = opening.tenure != 0 ? _tenures.lockOf(opening.tenure) : _backLock(generation, party);
        view_.lockAmount = _seatLock;
        view_.fallen = opening.fallen || _isTakenElsewhere(opening);
    }

    /// @inheritdoc IClaims
    /// @dev A merge needs no draw: everybody who trains computes it.
    function mayChallengeDirectly(ClaimRef calldata ref, address who) external view returns (bool) {
        (uint64 generation,, OpenedRoot storage opening) = _claimed(ref);
        return _inputs[generation] != 0 && _isClaim(ref, opening) && _tenures.tenuresOf(who) != 0;
    }

    /// @inheritdoc IClaims
    function onOpened(ClaimRef calldata ref, address) external {
        if (msg.sender != _game) revert NotTheGame(msg.sender);
        (uint64 generation,, OpenedRoot storage opening) = _claimed(ref);
        if (_inputs[generation] == 0 || !_isClaim(ref, opening)) {
            revert ClaimNotFound(ref.kind, ref.round, ref.seat, ref.duty);
        }
        if (opening.closed) revert ClaimSettled(ref.kind, ref.round, ref.seat, ref.duty);
        ++opening.games;
        ++_nodes[generation][opening.root].state.games;
        if (opening.tenure != 0) _tenures.onGameOpened(opening.tenure);
    }

    /// @inheritdoc IClaims
    function onClosed(ClaimRef calldata ref, bool convicted) external returns (bool first) {
        if (msg.sender != _game) revert NotTheGame(msg.sender);
        (uint64 generation, bytes32 party, OpenedRoot storage opening) = _claimed(ref);
        --opening.games;
        --_nodes[generation][opening.root].state.games;
        first = convicted && !opening.fallen;
        if (opening.tenure != 0) first = _tenures.onGameClosed(opening.tenure, convicted);
        if (convicted && !opening.fallen) _lose(generation, party, opening);
    }

    // ------------------------------------------------------------------------------------------------ inside

    function _claimed(ClaimRef calldata ref)
        private
        view
        returns (uint64 generation, bytes32 party, OpenedRoot storage opening)
    {
        generation = ref.round + 1;
        party = ref.party == address(0) ? partyOf(ref.seat) : backerOf(ref.outerRoot, ref.party);
        opening = _openings[generation][party];
    }

    function _isClaim(ClaimRef calldata ref, OpenedRoot storage opening) private view returns (bool) {
        return ref.kind == ClaimKind.OUTER && opening.at != 0 && opening.root == ref.outerRoot;
    }
}
