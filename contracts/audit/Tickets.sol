// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

import {Checkpoints} from "@openzeppelin/contracts/utils/structs/Checkpoints.sol";
import {ICalls} from "../interfaces/ICalls.sol";
import {IRoundGate, RunModules, TicketTerms} from "../interfaces/IRoundTerms.sol";
import {IRunCharter} from "../interfaces/IRunCharter.sol";
import {Debt, ITickets, Ticket} from "../interfaces/ITickets.sol";
import {IVault} from "../interfaces/IVault.sol";

/// @title Tickets: the stakes of auditors, who is on call, and who sits in a committee
contract Tickets is ITickets {
    using Checkpoints for Checkpoints.Trace208;

    /// @notice Links of a chain that one call walks.
    uint256 public constant MAX_LINKS = 32;

    uint256 private constant MAX_BOND = type(uint112).max;

    /// @inheritdoc ITickets
    uint128 public immutable bond;
    /// @inheritdoc ITickets
    uint48 public immutable seasoning;
    /// @inheritdoc ITickets
    uint32 public immutable shifts;
    IVault private immutable _vault;
    IRoundGate private immutable _gate;
    address private immutable _duties;
    address private immutable _attestations;
    address private immutable _generations;

    uint32 private _last; // the newest id
    mapping(uint32 ticket => Ticket) private _tickets;
    mapping(uint32 ticket => address) private _left; // who took stakes back
    mapping(uint32 ticket => Debt[]) private _debts; // fines that wait, or waited, for verdicts
    mapping(uint256 slot => Checkpoints.Trace208) private _slots;
    Checkpoints.Trace208 private _counts;
    mapping(uint32 shift => Checkpoints.Trace208) private _onCall;

    modifier onlyDuties() {
        if (msg.sender != _duties) revert NotAPeer(msg.sender);
        _;
    }

    modifier onlyPeer() {
        if (msg.sender != _attestations && msg.sender != _generations) revert NotAPeer(msg.sender);
        _;
    }

    constructor(IRunCharter charter) {
        (TicketTerms memory terms, RunModules memory modules) = (charter.ticketTerms(), charter.roundModules());
        if (terms.bond == 0 || terms.bond > MAX_BOND || terms.shifts == 0) revert BadTicketTerms();
        (_vault, _gate, _duties) = (IVault(modules.vault), IRoundGate(modules.escrow), modules.duties);
        (_attestations, _generations) = (modules.attestations, modules.generations);
        (bond, seasoning, shifts) = (terms.bond, terms.seasoning, terms.shifts);
    }

    // ------------------------------------------------------------------------------------------------ owners

    /// @inheritdoc ITickets
    function register(bytes32 anchor) external returns (uint32 ticket) {
        if (anchor == 0) revert AnchorZero();
        if (_last == type(uint32).max) revert TooManyTickets();
        ticket = ++_last;
        uint48 from = _countsFrom();
        uint256 count = _counts.latest();
        Ticket storage t = _tickets[ticket];
        (t.owner, t.from, t.slot, t.anchor) = (msg.sender, from, uint32(count), anchor);
        _slots[count].push(from, ticket);
        _counts.push(from, uint208(count + 1));
        Checkpoints.Trace208 storage called = _onCall[ticket % shifts];
        called.push(from, called.latest() + 1);
        _vault.lock(lockOf(ticket), msg.sender, bond);
        emit TicketRegistered(ticket, msg.sender, from, anchor);
    }

    /// @inheritdoc ITickets
    function retire(uint32 ticket) external {
        Ticket storage t = _owned(ticket);
        if (t.until != 0) revert TicketRetires(ticket, t.until);
        _retire(ticket, t);
    }

    /// @inheritdoc ITickets
    function reclaim(uint32 ticket) external {
        Ticket storage t = _owned(ticket);
        if (t.convictedAt != 0) revert TicketConvicted(ticket);
        // Attack: a beacon that ends, or epochs that nobody closes, keep every stake for ever.
        if (!_gate.isStopped()) _mustBeDone(ticket, t);
        else if (t.obligations != 0) revert TicketObliged(ticket, t.obligations, t.lastEpoch);
        bytes32 id = lockOf(ticket);
        (, uint256 left) = _vault.lockOf(id);
        delete _tickets[ticket];
        // Its last findings may be paid, and its parts of pots taken, after it has left.
        _left[ticket] = msg.sender;
        if (left != 0) _vault.release(id);
        emit TicketReclaimed(ticket, left);
    }

    /// @dev Can nothing that the ticket did be disputed any more?
    function _mustBeDone(uint32 ticket, Ticket storage t) private view {
        (, uint48 start) = ICalls(_duties).newest();
        // All epochs that may call it are closed: each began before the newest one.
        if (t.until == 0 || start < t.until) revert TicketServes(ticket, t.until);
        // Attack: hide a missed duty, and leave before the secret of the call is ever shown.
        uint32 owed = _calls(ticket, t.until) - _shown(ticket, t);
        if (owed != 0) revert SecretsOwed(ticket, owed);
        // Attack: bribe who re-audits a false attestation to miss it, and be gone before the miss is drawn again.
        bool open = ICalls(_duties).overSince(t.lastEpoch + 1) == 0;
        if (t.obligations != 0 || open) revert TicketObliged(ticket, t.obligations, t.lastEpoch);
    }

    /// @inheritdoc ITickets
    function replaceAnchor(uint32 ticket, bytes32 anchor) external {
        Ticket storage t = _owned(ticket);
        if (anchor == 0) revert AnchorZero();
        if (t.nextAnchor != 0) revert AnchorPending(ticket, t.nextFrom);
        // Attack: a chain that is chosen after its seed is known chooses its duties.
        (t.nextAnchor, t.nextFrom) = (anchor, _countsFrom());
        emit AnchorReplaced(ticket, anchor, t.nextFrom);
    }

    /// @inheritdoc ITickets
    function topUp(uint32 ticket) external {
        Ticket storage t = _owned(ticket);
        if (t.convictedAt != 0) revert TicketConvicted(ticket);
        if (t.shortSince == 0) revert TicketWhole(ticket);
        bytes32 id = lockOf(ticket);
        (, uint256 left) = _vault.lockOf(id);
        t.shortSince = 0;
        _vault.lock(id, msg.sender, bond - left);
        emit TicketToppedUp(ticket, bond - left);
    }

    /// @inheritdoc ITickets
    function removeShort(uint32 ticket) external {
        Ticket storage t = _known(ticket);
        if (t.until != 0) revert TicketRetires(ticket, t.until);
        if (t.shortSince == 0) revert TicketWhole(ticket);
        uint256 notBefore = uint256(t.shortSince) + seasoning + 1;
        if (block.timestamp < notBefore) revert TopUpDue(ticket, notBefore);
        _retire(ticket, t);
    }

    /// @inheritdoc ITickets
    function collect(uint32 ticket, uint256 number) external {
        Ticket storage t = _known(ticket);
        if (t.disputes != 0) revert TicketDisputed(ticket, t.disputes);
        if (number >= _debts[ticket].length) revert NothingOwed(ticket, number);
        Debt memory debt = _debts[ticket][number];
        if (debt.amount == 0) revert NothingOwed(ticket, number);
        delete _debts[ticket][number];
        --t.obligations;
        if (debt.to == address(0)) _forfeit(ticket);
        else _take(ticket, t, debt.amount, debt.to);
        emit FineCollected(ticket, number);
    }

    // ------------------------------------------------------------------------------------------------ peers

    /// @inheritdoc ITickets
    function advance(uint32 ticket, uint24 epoch, uint32 call, uint48 time, bytes32 secret)
        external
        onlyDuties
        returns (uint32 skipped)
    {
        Ticket storage t = _known(ticket);
        uint32 shown = _shown(ticket, t);
        bytes32 anchor = t.anchor;
        if (t.nextAnchor != 0 && time >= t.nextFrom) {
            // Attack: replace the chain so that the secret of a skipped call is never shown.
            uint32 owed = _calls(ticket, t.nextFrom) - shown;
            if (owed != 0) revert SecretsOwed(ticket, owed);
            anchor = t.nextAnchor;
            (t.nextAnchor, t.nextFrom) = (0, 0);
        }
        if (call <= shown) revert CallShown(ticket, call, shown);
        uint256 links = call - shown;
        if (links > MAX_LINKS) revert ChainTooLong(ticket, links, MAX_LINKS);
        bytes32 hashed = secret;
        for (uint256 k = 0; k < links; ++k) {
            hashed = keccak256(abi.encode(hashed));
        }
        // Attack: a secret that suits the seed.
        if (hashed != anchor) revert WrongSecret(ticket, hashed, anchor);
        t.anchor = secret;
        t.shown = call;
        if (epoch > t.lastEpoch) t.lastEpoch = epoch;
        skipped = uint32(links - 1);
        emit SecretShown(ticket, epoch, skipped, secret);
    }

    /// @inheritdoc ITickets
    function fine(uint32 ticket, uint256 amount, address to) external returns (uint256 taken) {
        if (msg.sender != _duties && msg.sender != _attestations) revert NotAPeer(msg.sender);
        Ticket storage t = _known(ticket);
        // Attack: an accused ticket that fines itself, and takes half of its stake back before the verdict takes all.
        if (t.disputes == 0) return _take(ticket, t, amount, to);
        _owe(ticket, t, to, amount < bond ? amount : bond);
    }

    /// @inheritdoc ITickets
    function forfeit(uint32 ticket) external onlyDuties returns (bool first) {
        Ticket storage t = _known(ticket);
        // Attack: an accused ticket that is silent until its stake burns, so that nothing is left for who caught it.
        if (t.disputes == 0 || t.convictedAt != 0) return _forfeit(ticket);
        _owe(ticket, t, address(0), bond);
    }

    /// @inheritdoc ITickets
    function oblige(uint32 ticket) external onlyPeer {
        ++_known(ticket).obligations;
    }

    /// @inheritdoc ITickets
    function acquit(uint32 ticket) external onlyPeer {
        --_known(ticket).obligations;
    }

    /// @inheritdoc ITickets
    function dispute(uint32 ticket) external onlyPeer {
        Ticket storage t = _known(ticket);
        ++t.obligations;
        ++t.disputes;
    }

    /// @inheritdoc ITickets
    function undispute(uint32 ticket, bool convicted) external onlyPeer returns (bool first) {
        Ticket storage t = _known(ticket);
        --t.obligations;
        --t.disputes;
        return convicted && _convict(ticket);
    }

    // ------------------------------------------------------------------------------------------------ views

    /// @inheritdoc ITickets
    function payeeOf(uint32 ticket) external view returns (address) {
        Ticket storage t = _tickets[ticket];
        if (t.owner == address(0)) return _left[ticket];
        return t.convictedAt == 0 ? t.owner : address(0);
    }

    /// @inheritdoc ITickets
    function debtOf(uint32 ticket, uint256 number) external view returns (Debt memory debt) {
        if (number < _debts[ticket].length) debt = _debts[ticket][number];
    }

    /// @inheritdoc ITickets
    function countAt(uint48 time) public view returns (uint256) {
        _settled(time);
        return _counts.upperLookupRecent(time);
    }

    /// @inheritdoc ITickets
    function ticketAt(uint256 slot, uint48 time) external view returns (uint32 ticket) {
        uint256 count = countAt(time);
        // A slot above the count keeps the ticket that stood there last.
        if (slot >= count) revert SlotEmpty(slot, count);
        return uint32(_slots[slot].upperLookupRecent(time));
    }

    /// @inheritdoc ITickets
    function positionOf(bytes32 seed, bytes32 node, uint256 j, uint48 time) external view returns (uint32 ticket) {
        uint256 count = countAt(time);
        if (count == 0) revert NoTickets(time);
        uint256 slot = uint256(keccak256(abi.encode(seed, node, j))) % count;
        return uint32(_slots[slot].upperLookupRecent(time));
    }

    /// @inheritdoc ITickets
    function onCallAt(uint32 shift, uint48 time) external view returns (uint256) {
        _settled(time);
        return _onCall[shift].upperLookupRecent(time);
    }

    /// @inheritdoc ITickets
    function isServing(uint32 ticket, uint48 time) external view returns (bool) {
        _settled(time);
        Ticket storage t = _tickets[ticket];
        return t.owner != address(0) && t.from <= time && (t.until == 0 || time < t.until);
    }

    /// @inheritdoc ITickets
    function ownerOf(uint32 ticket) external view returns (address) {
        return _known(ticket).owner;
    }

    /// @inheritdoc ITickets
    function isConvicted(uint32 ticket) external view returns (bool) {
        return _tickets[ticket].convictedAt != 0;
    }

    /// @inheritdoc ITickets
    function canAnswer(uint32 ticket) external view returns (bool) {
        Ticket storage t = _tickets[ticket];
        if (t.owner == address(0) || t.convictedAt != 0) return false;
        if (t.shortSince == 0) return true;
        (, uint256 left) = _vault.lockOf(lockOf(ticket));
        // Attack: let fines drain a stake, half of them into one's own pocket, and lie for what is left.
        return 10 * left >= 9 * bond;
    }

    /// @inheritdoc ITickets
    function ticketOf(uint32 ticket) external view returns (Ticket memory) {
        return _tickets[ticket];
    }

    /// @inheritdoc ITickets
    function lockOf(uint32 ticket) public pure returns (bytes32 id) {
        return keccak256(abi.encode("assay.ticket", ticket));
    }

    // ------------------------------------------------------------------------------------------------ inside

    /// @dev The last slot's ticket moves into the freed one, so that slots stay dense; both count from then on.
    function _retire(uint32 ticket, Ticket storage t) private {
        uint48 until = _countsFrom();
        t.until = until;
        uint256 last = _counts.latest() - 1;
        uint32 slot = t.slot;
        if (slot != last) {
            uint32 moved = uint32(_slots[last].latest());
            _slots[slot].push(until, moved);
            _tickets[moved].slot = slot;
        }
        _counts.push(until, uint208(last));
        Checkpoints.Trace208 storage called = _onCall[ticket % shifts];
        called.push(until, called.latest() - 1);
        emit TicketRetired(ticket, until);
    }

    function _owe(uint32 ticket, Ticket storage t, address to, uint256 amount) private {
        ++t.obligations;
        _debts[ticket].push(Debt(to, uint128(amount)));
        emit FineOwed(ticket, _debts[ticket].length - 1, amount, to);
    }

    function _take(uint32 ticket, Ticket storage t, uint256 amount, address to) private returns (uint256 taken) {
        bytes32 id = lockOf(ticket);
        (, uint256 left) = _vault.lockOf(id);
        taken = amount < left ? amount : left;
        if (taken == 0) return 0;
        if (t.shortSince == 0) t.shortSince = uint48(block.timestamp);
        // Rounds down for who proved it: an owner that proves its own fine loses the larger half.
        _vault.seize(id, to, taken / 2);
        _vault.burn(id, taken - taken / 2);
        emit TicketFined(ticket, taken, to);
    }

    function _forfeit(uint32 ticket) private returns (bool first) {
        first = _convict(ticket);
        if (!first) return false;
        bytes32 id = lockOf(ticket);
        (, uint256 left) = _vault.lockOf(id);
        if (left != 0) _vault.burn(id, left);
    }

    function _convict(uint32 ticket) private returns (bool) {
        Ticket storage t = _known(ticket);
        if (t.convictedAt != 0) return false;
        t.convictedAt = uint48(block.timestamp);
        if (t.until == 0) _retire(ticket, t);
        emit TicketConvictedNow(ticket);
        return true;
    }

    /// @dev Calls of a ticket's shift by epochs that began before a time.
    function _calls(uint32 ticket, uint48 before) private view returns (uint32) {
        return ICalls(_duties).callsAt(ticket % shifts, before - 1);
    }

    /// @dev The last call that it showed; calls of epochs that began before it counted are not its own.
    function _shown(uint32 ticket, Ticket storage t) private view returns (uint32) {
        return t.shown != 0 ? t.shown : _calls(ticket, t.from);
    }

    function _owned(uint32 ticket) private view returns (Ticket storage t) {
        t = _known(ticket);
        if (t.owner != msg.sender) revert NotTheTicketsOwner(ticket, t.owner, msg.sender);
    }

    function _known(uint32 ticket) private view returns (Ticket storage t) {
        t = _tickets[ticket];
        if (t.owner == address(0)) revert TicketNotFound(ticket);
    }

    function _countsFrom() private view returns (uint48) {
        return uint48(block.timestamp) + seasoning;
    }

    /// @dev Attack: count on tickets that can still come or go.
    function _settled(uint48 time) private view {
        uint256 before = block.timestamp + seasoning;
        if (time >= before) revert TimeNotSettled(time, before);
    }
}
