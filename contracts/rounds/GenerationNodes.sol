// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

import {ICommitments} from "../interfaces/ICommitments.sol";
import {GenerationState, GenerationStatus, IGenerations, NodeState, OpenedRoot} from "../interfaces/IGenerations.sol";
import {RunModules, RoundTerms} from "../interfaces/IRoundTerms.sol";
import {IRunCharter} from "../interfaces/IRunCharter.sol";
import {ITenures} from "../interfaces/ITenures.sol";
import {StateRoots} from "../libraries/StateRoots.sol";
import {Segments} from "./Segments.sol";

/// @title GenerationNodes: the roots of each generation, who stands behind them, and what the chain shows of them
abstract contract GenerationNodes is Segments {
    uint32 internal constant ONE_LEVEL = 64; // seats up to which there is one level

    ICommitments internal immutable _commitments;
    ITenures internal immutable _tenures;
    uint48 internal immutable _challenge;
    uint48 internal immutable _grace;
    uint48 private immutable _rescue;
    uint256 internal immutable _seatLock;

    /// @dev A root that somebody opened: its lists, and what stands behind it. A partial sum has no momentum.
    struct Node {
        bytes32 parameters;
        bytes32 momentum;
        NodeState state;
    }

    /// @dev What positions said of a node, and the root that leads: the generation's with its majority, a group's with the
    /// most voices.
    struct Votes {
        bytes32 root;
        uint16 sealed_; // voices that sealed, or said that they cannot compute
        uint16 spoke; // voices of a group that opened, or said that they cannot compute
        uint48 sealUntil;
        uint48 closeAt; // last second to open a group's sum once more than half of its positions spoke
        uint8 weight; // updates that count in a group
        bool isFinal;
    }

    mapping(uint64 node => Votes) internal _votes;
    mapping(uint64 node => mapping(bytes32 root => Node)) internal _nodes;
    mapping(uint64 node => mapping(uint32 position => bytes32)) internal _seals;
    mapping(uint64 node => mapping(bytes32 party => OpenedRoot)) internal _openings;

    constructor(IRunCharter charter) {
        (RoundTerms memory terms, RunModules memory modules) = (charter.roundTerms(), charter.roundModules());
        _commitments = ICommitments(modules.commitments);
        _tenures = ITenures(modules.tenures);
        (_challenge, _rescue, _grace, _seatLock) = (terms.challenge, terms.rescue, terms.grace, terms.seatLock);
        bytes32 genesis = StateRoots.state2(terms.parameters, terms.momentum);
        (_votes[0].root, _votes[0].isFinal) = (genesis, true);
        (_nodes[0][genesis].parameters, _nodes[0][genesis].momentum) = (terms.parameters, terms.momentum);
    }

    // ------------------------------------------------------------------------------------------------ views

    /// @inheritdoc IGenerations
    function partyOf(uint32 position) public pure returns (bytes32) {
        return keccak256(abi.encode("assay.position", position));
    }

    /// @inheritdoc IGenerations
    function backerOf(bytes32 root, address who) public pure returns (bytes32) {
        return keccak256(abi.encode("assay.backer", root, who));
    }

    /// @inheritdoc IGenerations
    function sealOf(uint64 at, uint32 position, bytes32 root, bytes32 over, bytes32 salt, address who)
        public
        pure
        returns (bytes32)
    {
        return keccak256(abi.encode(at, position, root, over, salt, who));
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
        Node storage node = _leading(generation);
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
    function nodeOf(uint64 node, bytes32 root) external view returns (NodeState memory) {
        return _nodes[node][root].state;
    }

    /// @inheritdoc IGenerations
    function openingOf(uint64 node, bytes32 party) external view returns (OpenedRoot memory) {
        return _openings[node][party];
    }

    /// @inheritdoc IGenerations
    function parametersOf(uint64 generation) external view returns (bytes32) {
        return _leading(generation).parameters;
    }

    /// @inheritdoc IGenerations
    function newest() external view returns (uint64 generation) {
        uint64 count = _commitments.opened();
        if (count != 0) (generation,) = _newestOf(count);
    }

    // ------------------------------------------------------------------------------------------------ whose lock

    /// @dev Who holds the lock behind an opening.
    function _holderOf(uint32 opener) internal view virtual returns (address);
    /// @dev The lock and what it was made of.
    function _lockOf(uint32 opener) internal view virtual returns (bytes32 id, uint256 amount);
    function _isConvicted(uint32 opener) internal view virtual returns (bool);

    /// @dev Whether those who open are tenures, else tickets.
    function _openTenures() internal pure virtual returns (bool);
    function _oblige(uint32 opener) internal virtual;
    function _acquit(uint32 opener) internal virtual;
    function _onGameOpened(uint32 opener) internal virtual;
    function _onGameClosed(uint32 opener, bool convicted) internal virtual returns (bool first);

    // ------------------------------------------------------------------------------------------------ inside

    /// @dev The code of one question for all who ask from which generation a round starts.
    function _parentOf(uint64 round) internal view returns (uint64) {
        return _commitments.parentOf(round);
    }

    /// @dev The root that leads at a node.
    function _leading(uint64 node) internal view returns (Node storage) {
        return _nodes[node][_votes[node].root];
    }

    /// @dev The newest generation that has a majority and is not cut, after so many rounds.
    function _newestOf(uint64 count) internal view returns (uint64 generation, bool isEmpty) {
        return _newest(_votes[count].root != 0 ? count : count - 1);
    }

    /// @dev A seal, or what stands for one, with its voices. Nobody opens before sealing is over, and it ends once more than
    /// half of the positions have spoken, so that no third that is fast shuts others out.
    function _putSeal(uint64 node, uint32 position, bytes32 seal_, uint256 voices, uint256 all, uint48 until) internal {
        if (_seals[node][position] != 0) revert AlreadySealed(position);
        _seals[node][position] = seal_;
        Votes storage votes = _votes[node];
        uint256 count = votes.sealed_ + voices;
        votes.sealed_ = uint16(count);
        if (count == all) votes.sealUntil = uint48(block.timestamp);
        else if (votes.sealUntil == 0 && 2 * count > all) votes.sealUntil = _sooner(until);
    }

    /// @dev An opening is a claim; its voices go to its root.
    function _putOpening(uint64 node, uint32 position, uint32 opener, bytes32 root, uint256 voices)
        internal
        returns (Node storage n)
    {
        OpenedRoot storage opening = _openings[node][partyOf(position)];
        if (opening.at != 0) revert AlreadySealed(position);
        (opening.root, opening.opener, opening.at) = (root, opener, uint48(block.timestamp));
        n = _nodes[node][root];
        // Positions are at most 64, each opens once, and a backer locks S.
        unchecked {
            ++n.state.openings;
            ++n.state.standing;
            n.state.votes += uint16(voices);
        }
        _oblige(opener);
    }

    /// @dev Last second to do what a call does.
    function _mustNotBeAfter(uint48 until) internal view {
        if (block.timestamp > until) revert TooLate(block.timestamp, until);
    }

    /// @dev What comes after the last second of something else.
    function _mustBeAfter(uint48 until) internal view {
        if (block.timestamp <= until) revert TooEarly(block.timestamp, uint256(until) + 1);
    }

    /// @dev Positions speak at a node until its time is over, and while its generation is not cut.
    function _mustBeSpeaking(uint64 generation, uint48 until) internal view {
        _mustNotBeAfter(until);
        if (_isCut(generation)) revert GenerationCut(generation);
    }

    function _sooner(uint48 until) internal view returns (uint48) {
        uint48 then = uint48(block.timestamp) + _grace;
        return then < until ? then : until;
    }

    function _lose(uint64 node, bytes32 party, OpenedRoot storage opening) internal {
        opening.fallen = true;
        NodeState storage state = _nodes[node][opening.root].state;
        --state.standing;
        if (state.rescueUntil == 0) state.rescueUntil = uint48(block.timestamp) + _rescue;
        emit ClaimFell(node, party, state.rescueUntil);
    }

    function _isTakenElsewhere(OpenedRoot storage opening) internal view returns (bool) {
        return opening.opener != 0 && _isConvicted(opening.opener);
    }

    function _backLock(uint64 node, bytes32 party) internal pure returns (bytes32) {
        return keccak256(abi.encode("assay.back", node, party));
    }
}
