// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

import {ICommitments} from "../interfaces/ICommitments.sol";
import {Entry} from "../interfaces/IGenerations.sol";
import {RoundTerms} from "../interfaces/IRoundTerms.sol";
import {IRunCharter} from "../interfaces/IRunCharter.sol";
import {GroupsState, ITicketPositions} from "../interfaces/ITicketPositions.sol";
import {ITickets} from "../interfaces/ITickets.sol";
import {Lanes} from "../libraries/Lanes.sol";
import {MergeInput} from "../libraries/MergeInput.sol";
import {SealOver} from "../libraries/SealOver.sol";
import {StateRoots} from "../libraries/StateRoots.sol";
import {GenerationMoves} from "./GenerationMoves.sol";
import {GenerationNodes} from "./GenerationNodes.sol";

/// @title GroupedGenerations: what the rounds of more than 64 seats are merged into, by groups and then as a whole
contract GroupedGenerations is GenerationMoves, ITicketPositions {
    ITickets private immutable _tickets;
    uint32 private immutable _positions;
    uint32 private immutable _topPositions;
    uint32 private immutable _groupSize;
    uint32 private immutable _groupCount;
    bytes32 private immutable _zeroPartial;

    mapping(uint64 generation => GroupsState) private _groups;

    constructor(IRunCharter charter) GenerationNodes(charter) GenerationMoves(charter) {
        RoundTerms memory terms = charter.roundTerms();
        if (terms.seats <= ONE_LEVEL) revert TooFewSeats(terms.seats);
        _tickets = ITickets(charter.roundModules().tickets);
        (_positions, _topPositions, _groupSize) = (terms.positions, terms.topPositions, terms.groupSize);
        _groupCount = (terms.seats + terms.groupSize - 1) / terms.groupSize;
        _zeroPartial = terms.zeroPartial;
    }

    // ------------------------------------------------------------------------------------------------ merging

    /// @inheritdoc ITicketPositions
    function seal(uint64 node, uint32 ticket, uint64 positions, bytes32 seal_) external {
        uint64 round = _roundOf(node);
        uint48 until = _sealUntil(node);
        _mustBeSpeaking(uint32(node), until);
        bool isGroup = _isGroup(node);
        // Attack: a sum that is served to half of the committee; no root over a majority's choice need exist. The groups that
        // count are known before any root over them is sealed.
        if (!isGroup && block.timestamp <= groupsUntil(round)) revert GroupsOpen(round);
        (, uint256 voices, uint256 all, uint256 weight) = _commitments.speakerOf(node, ticket, positions, msg.sender);
        _putSeal(node, ticket, _withVoices(seal_, voices), voices, all, until);
        if (isGroup) {
            _votes[node].weight = uint8(weight);
            // Attack: a partial over an update that nobody else holds. Who cannot compute it speaks against it.
            if (seal_ == 0) _speak(node, voices);
        }
        emit NodeSealed(node, ticket, positions, seal_);
    }

    /// @inheritdoc ITicketPositions
    function open(uint64 node, uint32 ticket, bytes32 first, bytes32 second, bytes32 salt) external {
        _mustBeSpeaking(uint32(node), openUntil(node));
        // Attack: roots that are copied from whoever opens first, and so stand for nobody's work.
        _mustBeAfter(_sealUntil(node));
        bool isGroup = _isGroup(node);
        if (isGroup) second = 0;
        bytes32 root = isGroup ? StateRoots.state1(first) : StateRoots.state2(first, second);
        bytes32 kept = _seals[node][ticket];
        uint256 voices = uint8(uint256(kept));
        // Attack: a reorganization that changes what counts, and an honest root that is opened over something else.
        bytes32 digest = _withVoices(sealOf(node, ticket, root, _overOf(node, isGroup), salt, msg.sender), voices);
        if (voices == 0 || digest != kept) revert SealMismatch(digest, kept);
        // Attack: drain the stake after the seal, half of it into one's own pocket, and lie for what is left.
        if (!_ask(_tickets.canAnswer, ticket)) revert ICommitments.NotThePosition(ticket, msg.sender);
        Node storage n = _putOpening(node, ticket, ticket, root, voices);
        n.parameters = first;
        if (!isGroup) n.momentum = second;
        emit NodeOpened(node, ticket, root, first, second);
        if (!isGroup) return _merge(node, root, _topPositions);
        Votes storage votes = _votes[node];
        if (n.state.votes > _leading(node).state.votes) votes.root = root;
        _speak(node, voices);
    }

    /// @inheritdoc ITicketPositions
    function preparePartial(uint64 round, uint32 group, Entry[] calldata entries) external {
        (, bytes32[] memory updates) = _countedUpdates(round, group, _groupSize, entries);
        _putInput(uint64(group + 1) << 32 | (round + 1), StateRoots.state(updates));
    }

    /// @inheritdoc ITicketPositions
    function prepareMerge(uint64 round) external {
        if (block.timestamp <= groupsUntil(round)) revert GroupsOpen(round);
        uint64 counted = _groups[round + 1].counted;
        bytes32[] memory sums = new bytes32[](_groupCount);
        uint256[] memory weights = new uint256[](_groupCount);
        // At most 64 groups, whatever the seats.
        for (uint64 group = 0; group < _groupCount; ++group) {
            sums[group] = _zeroPartial;
            if (counted >> group & 1 == 0) continue;
            uint64 node = (group + 1) << 32 | (round + 1);
            (sums[group], weights[group]) = (_leading(node).parameters, _votes[node].weight);
        }
        Node storage base = _leading(_parentOf(round));
        _putInput(round + 1, MergeInput.weighed(base.parameters, base.momentum, sums, weights));
    }

    // ------------------------------------------------------------------------------------------------ views

    /// @inheritdoc ITicketPositions
    function groupsOf(uint64 round) external view returns (GroupsState memory) {
        return _groups[round + 1];
    }

    /// @inheritdoc ITicketPositions
    function groupsUntil(uint64 round) public view returns (uint48) {
        uint48 until = _commitments.partialUntil(round);
        GroupsState storage groups = _groups[round + 1];
        bool allClose = groups.closing != 0 && groups.closing == _commitments.groupsIn(round);
        return allClose ? groups.latest : until;
    }

    /// @inheritdoc ITicketPositions
    function openUntil(uint64 node) public view returns (uint48) {
        uint48 closeAt = _votes[node].closeAt;
        return closeAt != 0 ? closeAt : _until(node);
    }

    // ------------------------------------------------------------------------------------------------ tickets

    function _holderOf(uint32 opener) internal view override returns (address) {
        return _tickets.ownerOf(opener);
    }

    function _lockOf(uint32 opener) internal view override returns (bytes32 id, uint256 amount) {
        id = _tickets.lockOf(opener);
        // Attack: a stake that fines have drained, and two games on its true root: what is advanced on a bond that is not there
        // can never be paid back, so that one of them never ends, and nothing above that root becomes final.
        (, amount) = _vault.lockOf(id);
    }

    function _isConvicted(uint32 opener) internal view override returns (bool) {
        return _ask(_tickets.isConvicted, opener);
    }

    function _openTenures() internal pure override returns (bool) {
        return false;
    }

    function _oblige(uint32 opener) internal override {
        _tell(_tickets.oblige, opener);
    }

    function _acquit(uint32 opener) internal override {
        _tell(_tickets.acquit, opener);
    }

    function _onGameOpened(uint32 opener) internal override {
        _tell(_tickets.dispute, opener);
    }

    function _onGameClosed(uint32 opener, bool convicted) internal override returns (bool) {
        return _tickets.undispute(opener, convicted);
    }

    /// @dev The code of one question for two.
    function _ask(function(uint32) external view returns (bool) what, uint32 ticket) private view returns (bool) {
        return what(ticket);
    }

    /// @dev The code of one call for three.
    function _tell(function(uint32) external what, uint32 opener) private {
        what(opener);
    }

    // ------------------------------------------------------------------------------------------------ levels

    function _isOpen(uint64 node) internal view override returns (bool) {
        uint64 generation = uint32(node);
        if (!super._isOpen(generation)) return false;
        return !_isGroup(node) || (_groups[generation].counted & _bitOf(node) != 0 && !_votes[node].isFinal);
    }

    function _followsFinal(uint64 node) internal view override returns (bool) {
        if (_isGroup(node)) return true;
        // Attack: a generation that is true over a sum that is false.
        GroupsState storage groups = _groups[node];
        return groups.finals == Lanes.count(groups.counted) && super._followsFinal(node);
    }

    function _onFinal(uint64 node) internal override {
        if (_isGroup(node)) ++_groups[uint32(node)].finals;
    }

    // ------------------------------------------------------------------------------------------------ inside

    /// @dev Voices of a group have opened, or said that they cannot compute. The group closes g after more than half of its
    /// positions spoke; all groups at once when in each of them everybody who sealed has spoken.
    function _speak(uint64 node, uint256 voices) private {
        Votes storage votes = _votes[node];
        GroupsState storage groups = _groups[uint32(node)];
        uint256 spoke = votes.spoke + voices;
        votes.spoke = uint16(spoke);
        if (votes.closeAt == 0 && 2 * spoke > _positions) {
            votes.closeAt = _sooner(_until(node));
            ++groups.closing;
            if (votes.closeAt > groups.latest) groups.latest = votes.closeAt;
        }
        bool sealingOver = votes.sealed_ == _positions || block.timestamp > _sealUntil(node);
        if (spoke == votes.sealed_ && sealingOver && ++groups.full == _commitments.groupsIn(_roundOf(node))) {
            groups.latest = uint48(block.timestamp);
        }
        uint64 bit = _bitOf(node);
        // Attack: half of a committee completes a sum over what nobody else can fetch. Two thirds of those that spoke, so a
        // third that cannot compute it is enough against it, and silence counts for neither.
        bool counts = votes.root != 0 && 3 * uint256(_leading(node).state.votes) >= 2 * spoke;
        groups.counted = counts ? groups.counted | bit : groups.counted & ~bit;
    }

    /// @dev What roots of a node are over. Nothing of it changes while one can be sealed or opened: of a group since its
    /// mask is closed, which comes before the first seal. Of the whole since no group seals or opens any more, which comes
    /// before the first seal too; the leading root and the weight of a group that counts were written at openings and seals.
    function _overOf(uint64 node, bool isGroup) private view returns (bytes32 over) {
        uint64 round = _roundOf(node);
        if (isGroup) return _commitments.overOf(round, uint32(node >> 32) - 1);
        over = _votes[_parentOf(round)].root;
        uint64 counted = _groups[node].counted;
        unchecked {
            for (uint64 group = 1; counted != 0; (++group, counted >>= 1)) {
                if (counted & 1 == 0) continue;
                Votes storage votes = _votes[group << 32 | node];
                over = SealOver.withSum(over, group, votes.root, votes.weight);
            }
        }
    }

    function _sealUntil(uint64 node) private view returns (uint48) {
        uint48 sealUntil = _votes[node].sealUntil;
        return sealUntil != 0 ? sealUntil : _until(node);
    }

    /// @dev Last second to open at a node, if nothing ends it before.
    function _until(uint64 node) private view returns (uint48) {
        uint64 round = _roundOf(node);
        return _isGroup(node) ? _commitments.partialUntil(round) : _commitments.mergeUntil(round);
    }

    /// @dev The round of a node; none that is open for generation 0.
    function _roundOf(uint64 node) private pure returns (uint64) {
        unchecked {
            return uint64(uint32(node)) - 1;
        }
    }

    function _isGroup(uint64 node) private pure returns (bool) {
        return node >> 32 != 0;
    }

    /// @dev The bit of a group's sum among 64; none for groups that cannot be.
    function _bitOf(uint64 node) private pure returns (uint64) {
        return uint64(1) << ((node >> 32) - 1);
    }

    /// @dev A seal without its last byte, in which its voices stand.
    function _withVoices(bytes32 seal_, uint256 voices) private pure returns (bytes32) {
        return bytes32(uint256(seal_) >> 8 << 8 | voices);
    }
}
