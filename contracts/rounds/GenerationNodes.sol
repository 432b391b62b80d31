// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

import {ICommitments} from "../interfaces/ICommitments.sol";
import {GenerationState, GenerationStatus, IGenerations, NodeState, OpenedRoot} from "../interfaces/IGenerations.sol";
import {RoundModules, RoundTerms} from "../interfaces/IRoundTerms.sol";
import {IRunCharter} from "../interfaces/IRunCharter.sol";
import {ITenures} from "../interfaces/ITenures.sol";
import {StateRoots} from "../libraries/StateRoots.sol";
import {Segments} from "./Segments.sol";

/// @title GenerationNodes: the roots of each generation, who stands behind them, and what the chain shows of them
abstract contract GenerationNodes is Segments {
    uint32 private constant MOST_SEATS = 64;

    ICommitments internal immutable _commitments;
    ITenures internal immutable _tenures;
    uint32 internal immutable _seats;
    uint48 internal immutable _challenge;
    uint48 private immutable _rescue;
    uint256 internal immutable _seatLock;

    /// @dev A root that somebody opened: its lists, and what stands behind it.
    struct Node {
        bytes32 parameters;
        bytes32 momentum;
        NodeState state;
    }

    /// @dev Seals of a generation, and the root that has the majority.
    struct Votes {
        bytes32 root;
        uint16 sealed_;
        uint48 sealUntil;
        bool isFinal;
    }

    mapping(uint64 generation => Votes) internal _votes;
    mapping(uint64 generation => mapping(bytes32 root => Node)) internal _nodes;
    mapping(uint64 generation => mapping(uint32 seat => bytes32)) internal _seals;
    mapping(uint64 generation => mapping(bytes32 party => OpenedRoot)) internal _openings;

    constructor(IRunCharter charter) {
        (RoundTerms memory terms, RoundModules memory modules) = (charter.roundTerms(), charter.roundModules());
        if (terms.seats > MOST_SEATS) revert TooManySeats(terms.seats);
        _commitments = ICommitments(modules.commitments);
        _tenures = ITenures(modules.tenures);
        (_seats, _challenge, _rescue, _seatLock) = (terms.seats, terms.challenge, terms.rescue, terms.seatLock);
        bytes32 genesis = StateRoots.state2(terms.parameters, terms.momentum);
        (_votes[0].root, _votes[0].isFinal) = (genesis, true);
        (_nodes[0][genesis].parameters, _nodes[0][genesis].momentum) = (terms.parameters, terms.momentum);
    }

    // ------------------------------------------------------------------------------------------------ views

    /// @inheritdoc IGenerations
    function partyOf(uint32 seat) public pure returns (bytes32) {
        return keccak256(abi.encode("assay.position", seat));
    }

    /// @inheritdoc IGenerations
    function backerOf(bytes32 root, address who) public pure returns (bytes32) {
        return keccak256(abi.encode("assay.backer", root, who));
    }

    /// @inheritdoc IGenerations
    function sealOf(uint64 round, uint32 seat, bytes32 root, bytes32 salt, address who) public pure returns (bytes32) {
        return keccak256(abi.encode(round, seat, root, salt, who));
    }

    /// @inheritdoc IGenerations
    function statusOf(uint64 generation) public view returns (GenerationStatus) {
        Votes storage votes = _votes[generation];
        if (votes.isFinal) return GenerationStatus.FINAL;
        if (_segmentOf[generation] == 0) return GenerationStatus.OPEN;
        if (_isCut(generation)) return GenerationStatus.CUT;
        return votes.root != 0 ? GenerationStatus.MERGED : GenerationStatus.OPEN;
    }

    /// @inheritdoc IGenerations
    function generationOf(uint64 generation) external view returns (GenerationState memory) {
        Votes storage votes = _votes[generation];
        Node storage node = _nodes[generation][votes.root];
        return GenerationState({
            status: statusOf(generation),
            root: votes.root,
            parameters: node.parameters,
            momentum: node.momentum,
            segment: _segmentOf[generation],
            sealed_: votes.sealed_,
            sealUntil: votes.sealUntil
        });
    }

    /// @inheritdoc IGenerations
    function nodeOf(uint64 generation, bytes32 root) external view returns (NodeState memory) {
        return _nodes[generation][root].state;
    }

    /// @inheritdoc IGenerations
    function openingOf(uint64 generation, bytes32 party) external view returns (OpenedRoot memory) {
        return _openings[generation][party];
    }

    /// @inheritdoc IGenerations
    function parametersOf(uint64 generation) external view returns (bytes32) {
        return _nodes[generation][_votes[generation].root].parameters;
    }

    /// @inheritdoc IGenerations
    function newest() external view returns (uint64 generation) {
        uint64 count = _commitments.opened();
        if (count == 0) return 0;
        (generation,) = _newest(_votes[count].root != 0 ? count : count - 1);
    }

    // ------------------------------------------------------------------------------------------------ inside

    function _lose(uint64 generation, bytes32 party, OpenedRoot storage opening) internal {
        opening.fallen = true;
        NodeState storage state = _nodes[generation][opening.root].state;
        --state.standing;
        if (state.rescueUntil == 0) state.rescueUntil = uint48(block.timestamp) + _rescue;
        emit ClaimFell(generation, party, state.rescueUntil);
    }

    function _isTakenElsewhere(OpenedRoot storage opening) internal view returns (bool) {
        return opening.tenure != 0 && _tenures.isConvicted(opening.tenure);
    }

    function _backLock(uint64 generation, bytes32 party) internal pure returns (bytes32) {
        return keccak256(abi.encode("assay.back", generation, party));
    }
}
