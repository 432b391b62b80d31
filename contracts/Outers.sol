// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

import {IAudit} from "./interfaces/IAudit.sol";
import {ICharter, Modules, Terms} from "./interfaces/ICharter.sol";
import {ClaimKind, ClaimRef, ClaimView, IClaims} from "./interfaces/IClaims.sol";
import {IOuters, OuterClaim, OuterRoot} from "./interfaces/IOuters.sol";
import {Commitment, IRounds, SEAT_COUNT, Status} from "./interfaces/IRounds.sol";
import {IVault} from "./interfaces/IVault.sol";
import {ClaimIds} from "./libraries/ClaimIds.sol";
import {EconomicsBounds} from "./libraries/Economics.sol";
import {StateRoots} from "./libraries/StateRoots.sol";

/// @title Outers: outer steps as claims, addressed by content
contract Outers is IOuters {
    ICharter public immutable charter;
    bytes32 public immutable genesis;
    IVault private immutable _vault;
    IRounds private immutable _rounds;
    IAudit private immutable _audit;
    address private immutable _game;
    bytes32 private immutable _run;
    bytes32 private immutable _program;
    bytes32 private immutable _zeroUpdate;
    uint256 private immutable _lock; // W: one seat's price
    uint32 private immutable _bountyPpm;
    uint64 private immutable _window;
    uint64 private immutable _rescue;

    /// @dev Mask and X are fixed by the first post for a (round, base), so that all honest posters claim the same step.
    struct Inclusion {
        bytes32 x;
        uint8 mask;
    }

    mapping(uint64 generation => mapping(bytes32 root => OuterRoot)) private _roots;
    mapping(uint64 generation => uint256) public standingCount;
    mapping(uint64 round => mapping(bytes32 root => mapping(address poster => OuterClaim))) private _claims;
    mapping(uint64 round => mapping(bytes32 base => Inclusion)) private _inclusions;

    constructor(ICharter charter_) {
        Terms memory terms = charter_.terms();
        Modules memory modules = charter_.modules();
        charter = charter_;
        _vault = IVault(modules.vault);
        _rounds = IRounds(modules.rounds);
        _audit = IAudit(modules.audit);
        _game = modules.game;
        _run = charter_.run();
        _program = terms.outer.root;
        _zeroUpdate = terms.training.zeroUpdate;
        (_lock, _bountyPpm) = (EconomicsBounds.price(terms.economics), terms.economics.bountyPpm);
        _window = terms.windows.challenge;
        _rescue = terms.windows.rescue;

        bytes32 root = StateRoots.state2(terms.training.parameters, terms.training.momentum);
        genesis = root;
        _roots[0][root] = OuterRoot(terms.training.parameters, terms.training.momentum, 1, true, 0);
        standingCount[0] = 1;
    }

    // ------------------------------------------------------------------------------------------------ posting

    /// @inheritdoc IOuters
    function postOuter(uint64 round, bytes32 base, bytes32 x, bytes32 parameters, bytes32 momentum) external {
        uint64 t7 = _rounds.timesOf(round).t7;
        if (block.timestamp < t7) revert TooEarly(block.timestamp, t7);
        bytes32 root = StateRoots.state2(parameters, momentum);
        _checkRoot(round, root);
        if (!isAlive(round, base)) revert BaseNotStanding(round, base);
        OuterClaim storage claim = _claims[round][root][msg.sender];
        if (claim.postedAt != 0) revert AlreadyPosted(round, root, msg.sender);

        _fixInclusion(round, base, x);
        claim.base = base;
        claim.postedAt = uint64(block.timestamp);
        OuterRoot storage entry = _roots[round + 1][root];
        if (entry.standing == 0) {
            (entry.parameters, entry.momentum) = (parameters, momentum);
            ++standingCount[round + 1];
        }
        ++entry.standing;
        _vault.lock(ClaimIds.outerLock(round, root, msg.sender), msg.sender, _lock);
        emit OuterPosted(round, root, msg.sender, base, parameters, momentum);
    }

    /// @inheritdoc IOuters
    function finalizeOuter(uint64 round, bytes32 root, address poster) external {
        OuterClaim storage claim = _open(round, root, poster);
        uint64 until = claim.postedAt + _window;
        if (block.timestamp <= until) revert TooEarly(block.timestamp, until + 1);
        if (statusOf(round, claim.base) != Status.FINAL) revert BaseNotFinal(round, claim.base);
        claim.closed = true;
        _roots[round + 1][root].isFinal = true;
        _vault.release(ClaimIds.outerLock(round, root, poster));
        emit OuterClosedAs(round, root, poster, Status.FINAL);
    }

    /// @inheritdoc IOuters
    function voidOuter(uint64 round, bytes32 root, address poster) external {
        OuterClaim storage claim = _open(round, root, poster);
        if (statusOf(round, claim.base) != Status.VOID) revert BaseNotVoid(round, claim.base);
        claim.closed = true;
        _loseStanding(round, root);
        _vault.release(ClaimIds.outerLock(round, root, poster));
        emit OuterClosedAs(round, root, poster, Status.VOID);
    }

    // ------------------------------------------------------------------------------------------------ claims

    /// @inheritdoc IClaims
    function claimOf(ClaimRef calldata ref) external view returns (ClaimView memory view_) {
        OuterClaim storage claim = _claims[ref.round][ref.outerRoot][ref.party];
        if (ref.kind != ClaimKind.OUTER || claim.postedAt == 0) return view_;
        bytes32 x = _inclusions[ref.round][claim.base].x;
        view_.id = ClaimIds.claim(address(charter), _run, ClaimKind.OUTER, ref.party, x, ref.outerRoot);
        view_.claimant = ref.party;
        view_.x = x;
        view_.y = ref.outerRoot;
        view_.program = _program;
        view_.steps = 1;
        view_.challengeableFrom = claim.postedAt;
        view_.challengeableUntil = claim.postedAt + _window;
        view_.lockId = ClaimIds.outerLock(ref.round, ref.outerRoot, ref.party);
        (view_.lockAmount, view_.bountyPpm) = (_lock, _bountyPpm);
        view_.fallen = claim.convicted;
    }

    /// @inheritdoc IClaims
    /// @dev An outer step needs no draw: everybody who trains or audits recomputes it.
    function mayChallengeDirectly(ClaimRef calldata ref, address who) external view returns (bool) {
        if (ref.kind != ClaimKind.OUTER || _claims[ref.round][ref.outerRoot][ref.party].postedAt == 0) return false;
        return who != ref.party && _isMember(who);
    }

    /// @inheritdoc IClaims
    function onOpened(ClaimRef calldata ref, address) external {
        if (msg.sender != _game) revert NotTheGame(msg.sender);
        OuterClaim storage claim = _claims[ref.round][ref.outerRoot][ref.party];
        if (ref.kind != ClaimKind.OUTER || claim.postedAt == 0) {
            revert ClaimNotFound(ref.kind, ref.round, ref.seat, ref.duty);
        }
        if (claim.closed) revert ClaimSettled(ref.kind, ref.round, ref.seat, ref.duty);
        ++claim.openGames;
    }

    /// @inheritdoc IClaims
    function onClosed(ClaimRef calldata ref, bool convicted) external returns (bool first) {
        if (msg.sender != _game) revert NotTheGame(msg.sender);
        OuterClaim storage claim = _claims[ref.round][ref.outerRoot][ref.party];
        --claim.openGames;
        if (!convicted || claim.convicted) return false;
        claim.convicted = true;
        _loseStanding(ref.round, ref.outerRoot);
        return true;
    }

    // ------------------------------------------------------------------------------------------------ views

    /// @inheritdoc IOuters
    function rootOf(uint64 generation, bytes32 root) external view returns (OuterRoot memory) {
        return _roots[generation][root];
    }

    /// @inheritdoc IOuters
    function outerClaimOf(uint64 round, bytes32 root, address poster) external view returns (OuterClaim memory) {
        return _claims[round][root][poster];
    }

    /// @inheritdoc IOuters
    function isStanding(uint64 generation, bytes32 root) public view returns (bool) {
        return _roots[generation][root].standing != 0;
    }

    /// @inheritdoc IOuters
    function statusOf(uint64 generation, bytes32 root) public view returns (Status) {
        OuterRoot storage entry = _roots[generation][root];
        if (entry.isFinal) return Status.FINAL;
        bool wasPosted = entry.standing != 0 || entry.rescueUntil != 0;
        return wasPosted && !isAlive(generation, root) ? Status.VOID : Status.OPEN;
    }

    /// @inheritdoc IOuters
    function isAlive(uint64 generation, bytes32 root) public view returns (bool) {
        OuterRoot storage entry = _roots[generation][root];
        return entry.standing != 0 || block.timestamp <= entry.rescueUntil;
    }

    /// @inheritdoc IOuters
    function inclusionOf(uint64 round, bytes32 base) public view returns (uint8 mask, bytes32 x, bool isFixed) {
        Inclusion memory fixed_ = _inclusions[round][base];
        if (fixed_.x != 0) return (fixed_.mask, fixed_.x, true);
        bytes32[SEAT_COUNT] memory updates;
        for (uint32 seat = 0; seat < SEAT_COUNT; ++seat) {
            Commitment memory c = _rounds.commitmentOf(round, seat);
            bool included = c.solver != address(0) && c.base == base && !c.excluded && !c.convicted
                && _rounds.isComplete(round, seat);
            updates[seat] = included ? c.update : _zeroUpdate;
            if (included) mask |= uint8(1) << uint8(seat);
        }
        OuterRoot storage start = _roots[round][base];
        x = StateRoots.outerInput(start.parameters, start.momentum, updates, mask);
    }

    // ------------------------------------------------------------------------------------------------ inside

    /// @dev What has been posted may be posted by anybody, in whatever round: its posters may have lost it on purpose. But after the first loss for
    /// one rescue window only, so that no root is kept in doubt for ever. A root that is new needs a member, and a round that is not over.
    function _checkRoot(uint64 round, bytes32 root) private view {
        uint64 until = _roots[round + 1][root].rescueUntil;
        // Attack: losing again and again, or relieving each other, to keep a root in doubt.
        if (until != 0 && block.timestamp > until) revert RescueOver(round, root, until);
        // Attack: losing the root after those who trained on it have left. Anybody may back what was posted.
        if (isAlive(round + 1, root)) return;
        if (!_isMember(msg.sender)) revert NotAMember(msg.sender);
        // Attack: a false root kept standing until the round has passed. Only roots that are new are refused.
        if (round + 2 < _rounds.opened() && standingCount[round + 1] != 0) revert RoundPassed(round);
    }

    /// @dev A conviction or a mismatch that is mined just before an honest post would make its step another claim's, and cost its poster the lock.
    function _fixInclusion(uint64 round, bytes32 base, bytes32 wanted) private {
        (uint8 mask, bytes32 x, bool isFixed) = inclusionOf(round, base);
        if (x != wanted) revert InclusionMoved(x, wanted);
        if (isFixed) return;
        _inclusions[round][base] = Inclusion(x, mask);
        emit InclusionFixed(round, base, mask, x);
    }

    function _loseStanding(uint64 round, bytes32 root) private {
        OuterRoot storage entry = _roots[round + 1][root];
        --entry.standing;
        if (entry.rescueUntil == 0) {
            entry.rescueUntil = uint64(block.timestamp) + _rescue;
            emit RescueBegan(round, root, entry.rescueUntil);
        }
        if (entry.standing != 0) return;
        --standingCount[round + 1];
        emit RootFell(round, root);
    }

    /// @dev A poster's claim that nothing has ended yet.
    function _open(uint64 round, bytes32 root, address poster) private view returns (OuterClaim storage claim) {
        claim = _claims[round][root][poster];
        if (claim.postedAt == 0) revert ClaimNotFound(ClaimKind.OUTER, round, 0, 0);
        if (claim.closed || claim.convicted) revert OuterClosed(round, root, poster);
        if (claim.openGames != 0) revert GamesOpen(claim.openGames);
    }

    /// @dev Solvers seated in the latest round or for the next one, and verifiers whose stake counts.
    function _isMember(address who) private view returns (bool) {
        uint64 count = _rounds.opened();
        if (count == 0) return false;
        if (_rounds.isSeated(count - 1, who) || _rounds.holdsSeat(who)) return true;
        return _audit.stakeAt(who, count - 1) != 0;
    }
}
