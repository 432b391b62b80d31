// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

/// @notice A stake of one auditor, and how far its chain of secrets is shown.
struct Ticket {
    address owner;
    uint48 from; // chain time from which it counts
    uint48 until; // chain time from which it counts no longer; 0 while it serves
    uint32 slot; // where it stands among the tickets that count, or will count
    uint32 shown; // calls of its shift up to the last one whose secret it showed; 0: none yet
    uint24 lastEpoch; // the last epoch whose secret it showed
    uint32 obligations; // games, claims and fines owed that are not over
    uint32 disputes; // accusations of it and games about it that are not over
    uint48 shortSince; // since when a fine has left its lock below B; 0: it is whole
    uint48 convictedAt; // 0: never
    bytes32 anchor; // the last secret shown, or the end of the chain
    bytes32 nextAnchor; // the end of the chain that follows; 0: none
    uint48 nextFrom; // the chain that follows answers calls of epochs that begin then or later
}

/// @notice A fine that was proven while its ticket was disputed.
struct Debt {
    address to; // who proved it; 0: the whole stake is forfeit
    uint128 amount; // in wei; 0: there is none
}

/// @title Tickets: the stakes of auditors, who is on call, and who sits in a committee
/// @notice A ticket locks exactly B, so counts stand for stakes and a committee is drawn in O(1): position j of a node is the ticket in slot
/// K(seed, node, j) mod n. Tickets that count stand in slots 0 to n - 1, each once; every change counts from `seasoning` later, so what was true at a
/// chain time never changes.
/// @dev Chain times are in seconds. Ticket ids count from 1; a ticket's shift is its id mod `shifts`.
interface ITickets {
    /// @notice There is no such ticket, or it was reclaimed.
    /// @dev Ids count from 1 and are never used again.
    /// @custom:remedy Check the ticket's id.
    /// @param ticket id of the ticket
    error TicketNotFound(uint32 ticket);

    /// @notice The ticket belongs to another account.
    /// @dev Whoever could retire or re-anchor another's ticket could keep it from its duties.
    /// @custom:remedy Call from the account that registered it.
    /// @param ticket id of the ticket
    /// @param owner its owner
    /// @param caller who called
    error NotTheTicketsOwner(uint32 ticket, address owner, address caller);

    /// @notice The end of a chain of secrets is zero.
    /// @dev Zero stands for no chain.
    /// @custom:remedy Hash a random secret as often as the ticket will be called, and name the last hash.
    error AnchorZero();

    /// @notice The ticket retires already.
    /// @dev What retires counts no longer from the time named, and is not called or drawn after it.
    /// @custom:remedy None: reclaim the stake once nothing hangs on it.
    /// @param ticket id of the ticket
    /// @param until chain time from which it counts no longer
    error TicketRetires(uint32 ticket, uint48 until);

    /// @notice The ticket still counts.
    /// @dev An epoch may have begun in which it is on call.
    /// @custom:remedy Retire it, then wait until the newest epoch begins at the time named or later.
    /// @param ticket id of the ticket
    /// @param until chain time from which it counts no longer; 0 while it serves
    error TicketServes(uint32 ticket, uint48 until);

    /// @notice Claims of the ticket can still be disputed.
    /// @dev A stake that left before its last claim is settled would answer for nothing.
    /// @custom:remedy Wait until its games and claims are over and all epochs that re-audit its last one are closed.
    /// @param ticket id of the ticket
    /// @param obligations games and claims that are not over
    /// @param lastEpoch the last epoch whose secret it showed
    error TicketObliged(uint32 ticket, uint32 obligations, uint24 lastEpoch);

    /// @notice Calls of the ticket are not shown.
    /// @dev Its stake comes back, and its next chain begins, only against every secret that it owed: who would not show one hides what it missed.
    /// @custom:remedy Show the last secret owed, which shows those before it.
    /// @param ticket id of the ticket
    /// @param owed calls whose secrets are not shown
    error SecretsOwed(uint32 ticket, uint32 owed);

    /// @notice The secret of this call, or of a later one, was shown.
    /// @dev A chain is shown in order, each link once.
    /// @custom:remedy None: nothing is owed for this call.
    /// @param ticket id of the ticket
    /// @param call number of the call in its shift
    /// @param shown number of the last call shown
    error CallShown(uint32 ticket, uint32 call, uint32 shown);

    /// @notice The secret is too many links away from the last one shown.
    /// @dev Every link is a hash, and a call must have a bounded cost.
    /// @custom:remedy Show the secret of an earlier call first.
    /// @param ticket id of the ticket
    /// @param links how far away it is
    /// @param most links that one call walks
    error ChainTooLong(uint32 ticket, uint256 links, uint256 most);

    /// @notice The secret does not hash to the ticket's chain.
    /// @dev A ticket that could choose its secret would choose its duties.
    /// @custom:remedy Show the link of the chain that belongs to this call.
    /// @param ticket id of the ticket
    /// @param hashed where the secret leads
    /// @param anchor where it must lead
    error WrongSecret(uint32 ticket, bytes32 hashed, bytes32 anchor);

    /// @notice Another chain follows already.
    /// @dev One chain at a time can wait for its first epoch.
    /// @custom:remedy Wait until the chain that follows is in use.
    /// @param ticket id of the ticket
    /// @param from chain time from which it is used
    error AnchorPending(uint32 ticket, uint48 from);

    /// @notice The ticket's lock is whole.
    /// @dev A ticket holds exactly B: more would count no more.
    /// @custom:remedy None: nothing is missing.
    /// @param ticket id of the ticket
    error TicketWhole(uint32 ticket);

    /// @notice The owner may still fill the lock up.
    /// @dev A fine must not remove a ticket before its owner can know of it.
    /// @custom:remedy Wait until the time named.
    /// @param ticket id of the ticket
    /// @param notBefore chain time from which anybody may remove it
    error TopUpDue(uint32 ticket, uint256 notBefore);

    /// @notice The ticket was convicted.
    /// @dev Its stake is taken and it takes no part any more.
    /// @custom:remedy None: register another ticket.
    /// @param ticket id of the ticket
    error TicketConvicted(uint32 ticket);

    /// @notice Fines have left the ticket less than nine tenths of B.
    /// @dev What it said falsely would cost it less than B was priced for, so what it says counts as silence.
    /// @custom:remedy Fill the lock up.
    /// @param ticket id of the ticket
    error TicketDrained(uint32 ticket);

    /// @notice The ticket is accused, or a game about it is open.
    /// @dev What a verdict may take must not be burned, or taken back by half, before it.
    /// @custom:remedy Collect once its last accusation and game are over; the fine stays owed, and holds the stake.
    /// @param ticket id of the ticket
    /// @param disputes accusations and games that are not over
    error TicketDisputed(uint32 ticket, uint32 disputes);

    /// @notice The ticket owes no fine of this number.
    /// @dev It was never owed, or was collected.
    /// @custom:remedy Check the number that the fine was announced with.
    /// @param ticket id of the ticket
    /// @param number of the fine
    error NothingOwed(uint32 ticket, uint256 number);

    /// @notice The time is so late that tickets may still change by then.
    /// @dev Who could ask too early would count on tickets that come or go.
    /// @custom:remedy Ask for a time before the one named.
    /// @param time asked for
    /// @param settledBefore changes count from then on
    error TimeNotSettled(uint48 time, uint256 settledBefore);

    /// @notice No ticket counts at that time.
    /// @dev Nobody can sit in a committee.
    /// @custom:remedy Register a ticket and wait until it counts.
    /// @param time asked for
    error NoTickets(uint48 time);

    /// @notice Fewer tickets than that count at that time.
    /// @custom:remedy Ask for a lower slot.
    /// @param slot asked for, from 0
    /// @param count tickets that count
    error SlotEmpty(uint256 slot, uint256 count);

    /// @notice There are as many tickets as can be named.
    /// @dev Ids have 32 bits.
    /// @custom:remedy None: the run takes no more tickets.
    error TooManyTickets();

    /// @notice Only the run's own contracts move a ticket's chain, obligations and fines.
    /// @dev A stranger that could would convict or free whom it liked.
    /// @custom:remedy None: people do not make this call.
    /// @param caller who called
    error NotAPeer(address caller);

    /// @notice The terms of the contract are out of their bounds.
    /// @dev A bond of zero stakes nothing; without shifts nobody is on call.
    /// @custom:remedy Name a bond from 1 to 2^112 - 1 and at least one shift.
    error BadTicketTerms();

    /// @notice A ticket is registered.
    /// @param ticket its id
    /// @param owner who staked
    /// @param from chain time from which it counts
    /// @param anchor end of its chain of secrets
    event TicketRegistered(uint32 indexed ticket, address indexed owner, uint48 from, bytes32 anchor);

    /// @notice A ticket retires.
    /// @param ticket its id
    /// @param until chain time from which it counts no longer
    event TicketRetired(uint32 indexed ticket, uint48 until);

    /// @notice A stake is free again.
    /// @param ticket its id
    /// @param amount what was left of it, in wei
    event TicketReclaimed(uint32 indexed ticket, uint256 amount);

    /// @notice Another chain of secrets follows.
    /// @param ticket its id
    /// @param anchor end of the chain
    /// @param from it answers calls of epochs that begin then or later
    event AnchorReplaced(uint32 indexed ticket, bytes32 anchor, uint48 from);

    /// @notice A secret was shown.
    /// @param ticket its id
    /// @param epoch whose call it answers
    /// @param skipped calls before it that were not answered
    /// @param secret the link of the chain that belongs to this call
    event SecretShown(uint32 indexed ticket, uint24 indexed epoch, uint32 skipped, bytes32 secret);

    /// @notice A fine was taken: half of it to who proved it, the rest burned.
    /// @param ticket its id
    /// @param amount in wei
    /// @param to who proved it
    event TicketFined(uint32 indexed ticket, uint256 amount, address indexed to);

    /// @notice A fine was proven while its ticket was disputed: it is owed until the last dispute is over.
    /// @param ticket its id
    /// @param number of the fine among those that it came to owe, from 0
    /// @param amount in wei
    /// @param to who proved it; address zero: the whole stake is forfeit
    event FineOwed(uint32 indexed ticket, uint256 number, uint256 amount, address indexed to);

    /// @notice A fine that was owed is taken, as far as something is left.
    /// @param ticket its id
    /// @param number of the fine
    event FineCollected(uint32 indexed ticket, uint256 number);

    /// @notice A lock holds B again.
    /// @param ticket its id
    /// @param amount that was missing, in wei
    event TicketToppedUp(uint32 indexed ticket, uint256 amount);

    /// @notice A ticket is convicted and takes no part any more.
    /// @param ticket its id
    event TicketConvictedNow(uint32 indexed ticket);

    // ------------------------------------------------------------------------------------------------ owners

    /// @notice Locks B behind a new ticket, which counts from `seasoning` on.
    /// @param anchor end of a chain of secrets: K applied once per call
    function register(bytes32 anchor) external returns (uint32 ticket);

    /// @notice Announces leave: the ticket counts no longer from `seasoning` on. Until then it answers its calls.
    function retire(uint32 ticket) external;

    /// @notice Frees what is left of the stake of a retired ticket on which nothing hangs.
    function reclaim(uint32 ticket) external;

    /// @notice Names the chain that answers calls of epochs that begin `seasoning` from now or later.
    function replaceAnchor(uint32 ticket, bytes32 anchor) external;

    /// @notice Locks what fines have taken.
    function topUp(uint32 ticket) external;

    /// @notice Retires a ticket whose lock has been below B for longer than `seasoning`. Anybody may call.
    function removeShort(uint32 ticket) external;

    /// @notice Takes a fine that was proven while the ticket was disputed, once it is so no longer; half goes to who proved it. Anybody may call.
    /// @param number of the fine, as it was announced
    function collect(uint32 ticket, uint256 number) external;

    // ------------------------------------------------------------------------------------------------ peers

    /// @notice Duties only: the secret of a call, which must lead to the chain's last one shown.
    /// @param call number of the call among those of the ticket's shift, from 1
    /// @param time when the call's epoch began
    /// @return skipped calls before it that were not answered
    function advance(uint32 ticket, uint24 epoch, uint32 call, uint48 time, bytes32 secret)
        external
        returns (uint32 skipped);

    /// @notice Duties and attestations only: takes a fine, at most what the lock holds; half goes to `to` and the rest burns. Of a disputed ticket it is
    /// owed, and nothing is taken yet.
    function fine(uint32 ticket, uint256 amount, address to) external returns (uint256 taken);

    /// @notice Duties only: convicts and burns the whole lock; of a disputed ticket that is owed.
    function forfeit(uint32 ticket) external returns (bool first);

    /// @notice Peers only: one more game or claim hangs on the ticket.
    function oblige(uint32 ticket) external;

    /// @notice Peers only: one game or claim fewer hangs on the ticket.
    function acquit(uint32 ticket) external;

    /// @notice Peers only: the ticket is accused, or a game about it begins.
    function dispute(uint32 ticket) external;

    /// @notice Peers only: an accusation of the ticket, or a game about it, is over, and may have convicted it.
    /// @return first conviction of the ticket
    function undispute(uint32 ticket, bool convicted) external returns (bool first);

    // ------------------------------------------------------------------------------------------------ views

    /// @notice B, in wei.
    function bond() external view returns (uint128);

    /// @notice From a change until it counts, in seconds: covers the second seed after it.
    function seasoning() external view returns (uint48);

    /// @notice Among how many shifts the calls go round.
    function shifts() external view returns (uint32);

    /// @notice Tickets that count at a time.
    function countAt(uint48 time) external view returns (uint256);

    /// @notice The ticket in a slot at a time; slots 0 to countAt(time) - 1 hold each ticket that counts once.
    function ticketAt(uint256 slot, uint48 time) external view returns (uint32 ticket);

    /// @notice The ticket at position j of a node: drawn with replacement, so that a share of the tickets has binomially many positions.
    /// @param seed randomness that nobody knew at `time`
    /// @param node what the committee is for
    function positionOf(bytes32 seed, bytes32 node, uint256 j, uint48 time) external view returns (uint32 ticket);

    /// @notice Tickets of a shift that count at a time.
    function onCallAt(uint32 shift, uint48 time) external view returns (uint256);

    /// @notice Does the ticket count at a time?
    function isServing(uint32 ticket, uint48 time) external view returns (bool);

    /// @notice The owner; reverts for a ticket that is not there.
    function ownerOf(uint32 ticket) external view returns (address);

    /// @notice Who is paid what a ticket earned: its owner, or who took its stake back; address zero for one that was convicted, or never was.
    function payeeOf(uint32 ticket) external view returns (address);

    /// @notice A fine that waits for verdicts; empty where there is none of this number.
    function debtOf(uint32 ticket, uint256 number) external view returns (Debt memory);

    /// @notice Is its lock gone? Its positions are nobody's from then on.
    function isConvicted(uint32 ticket) external view returns (bool);

    /// @notice Whether the ticket can answer for what it says: its stake is neither lost nor below nine tenths of B.
    function canAnswer(uint32 ticket) external view returns (bool);

    /// @notice Everything about a ticket; empty if it is not there.
    function ticketOf(uint32 ticket) external view returns (Ticket memory);

    /// @notice The name of a ticket's lock in the vault.
    function lockOf(uint32 ticket) external view returns (bytes32 id);
}
