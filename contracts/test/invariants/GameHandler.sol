// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

import {Challenges} from "../../game/Challenges.sol";
import {Game} from "../../game/Game.sol";
import {GameState, Side, Stage} from "../../interfaces/GameTypes.sol";
import {ClaimKind, ClaimRef, ClaimView} from "../../interfaces/IClaims.sol";
import {IChallenges} from "../../interfaces/IChallenges.sol";
import {IGame} from "../../interfaces/IGame.sol";
import {RunModules} from "../../interfaces/IRoundTerms.sol";
import {Program, RunTerms} from "../../interfaces/RunTypes.sol";
import {TestToken} from "../../TestToken.sol";
import {Vault} from "../../Vault.sol";
import {ClaimsBench} from "../ClaimsBench.sol";
import {CharterBench} from "./CharterBench.sol";
import {Handler} from "./Handler.sol";

/// @notice Claimants, challengers and many games at once on claims that share locks. Games descend by bisection as far as nobody needs to know a
/// preimage and end by the clock, for either side; what a computed verdict does with money is the same function.
contract GameHandler is Handler {
    uint256 public constant PEOPLE = 4; // claimants and challengers alike
    uint256 public constant CLAIMS = 3;
    uint256 public constant LOCKS = 2; // claims 0 and 2 stand behind lock 0
    uint256 public constant BOND = 178_000; // wei
    uint256 public constant DEPOSIT = 50; // wei
    uint256 public constant CLAIM_LOCK = 20_000; // wei; half of it is the bounty
    uint256 private constant WEALTH = 50 * BOND;
    bytes32 private constant PROGRAM = "program";
    address private constant ARBITER = address(1); // no game here gets as far as asking it

    struct End {
        bool over;
        bool won; // by the challenger
        int256 gain; // of the challenger, all told
    }

    struct CommittedCall {
        address who;
        uint256 claim;
        uint256 block_;
        uint256 time;
        bool done;
    }

    TestToken public immutable token = new TestToken();
    Vault public immutable vault;
    Game public immutable game;
    Challenges public immutable challenges;
    ClaimsBench public immutable bench;

    mapping(uint256 id => End) private _ends;
    mapping(uint256 id => uint256) private _claimOf;
    mapping(bytes32 place => bytes32[]) private _lists;
    mapping(uint256 lock => uint256) public epochOf;
    mapping(uint256 lock => bool) private _fallen;
    CommittedCall[] private _committed;
    uint256 public leastBurned;
    uint256 public flushed;

    constructor() {
        vm.warp(1_800_000_000);
        CharterBench charter = new CharterBench();
        bytes memory argument = abi.encode(charter);
        RunModules memory modules;
        // Claims stand in the bench, and the bench may lock what stands behind them; it is the gate too.
        address book = _place("ClaimsBench.sol:ClaimsBench", argument);
        (modules.commitments, modules.escrow) = (book, book);
        modules.game = _place("Game.sol:Game", abi.encode(charter, ARBITER));
        modules.challenges = _place("Challenges.sol:Challenges", argument);
        modules.vault = _place("Vault.sol:Vault", argument);
        charter.write(_terms(), modules);
        bench = ClaimsBench(_deploy("ClaimsBench.sol:ClaimsBench", argument));
        vault = Vault(_deploy("Vault.sol:Vault", argument));
        game = Game(_deploy("Game.sol:Game", abi.encode(charter, ARBITER)));
        challenges = Challenges(_deploy("Challenges.sol:Challenges", argument));
        for (uint256 i = 0; i < PEOPLE; ++i) {
            token.mint(person(i), WEALTH);
            vm.prank(person(i));
            token.approve(address(vault), WEALTH);
            vm.prank(person(i));
            vault.deposit(WEALTH);
        }
        for (uint256 i = 0; i < CLAIMS; ++i) {
            _claim(i);
        }
    }

    function _terms() private view returns (RunTerms memory terms) {
        terms.token = address(token);
        (terms.clocks.arity, terms.clocks.budget, terms.clocks.replay, terms.clocks.move) = (4, 100, 10, 5);
        terms.timing.longestDispute = type(uint48).max;
        terms.economics.challengeBond = uint128(BOND);
        terms.economics.challengeDeposit = uint128(DEPOSIT);
        terms.economics.thirdBountyPpm = 500_000;
        // version 1, five nodes, one list of one slot in and out
        bytes memory header = hex"00010000000501000000010100000001";
        terms.step = Program(PROGRAM, bytes32(0), header);
        terms.update = Program("update", bytes32(0), header);
        terms.merge = Program("merge", bytes32(0), header);
    }

    function _claim(uint256 i) private {
        ClaimView memory claim;
        claim.id = keccak256(abi.encode("claim", i));
        (claim.claimant, claim.lockId, claim.lockAmount) = (person(i % LOCKS), lockId(i % LOCKS), CLAIM_LOCK);
        claim.bountyPpm = 500_000;
        (claim.x, claim.y, claim.program) = (bytes32(uint256(1)), keccak256(abi.encode("y", i)), PROGRAM);
        (claim.steps, claim.challengeableFrom, claim.challengeableUntil) = (i == 1 ? 1 : 1000, 0, type(uint64).max);
        bench.put(refOf(i), claim, i < LOCKS ? CLAIM_LOCK : 0);
        for (uint256 k = 0; k < PEOPLE; ++k) {
            bench.allow(refOf(i), person(k));
        }
    }

    function person(uint256 seed) public pure returns (address) {
        return address(uint160(0x501 + seed % PEOPLE));
    }

    function refOf(uint256 claim) public pure returns (ClaimRef memory ref) {
        (ref.kind, ref.duty) = (ClaimKind.INTERVAL, uint32(claim));
    }

    function lockId(uint256 lock) public pure returns (bytes32) {
        return keccak256(abi.encode("lock", lock));
    }

    function bondLock(uint256 id) public pure returns (bytes32) {
        return keccak256(abi.encode(bytes32("game"), id));
    }

    function accountOf(uint256 lock, uint256 epoch) public pure returns (bytes32) {
        return keccak256(abi.encode(bytes32("advance"), lockId(lock), epoch));
    }

    function endOf(uint256 id) external view returns (bool won, int256 gain) {
        return (_ends[id].won, _ends[id].gain);
    }

    // --- opening

    function challenge(uint256 claim, uint256 seed) external {
        (claim, seed) = (claim % CLAIMS, seed % PEOPLE);
        bool may = !bench.isStopped() && !_fallen[claim % LOCKS] && vault.free(person(seed)) >= BOND;
        _call(person(seed), address(game), abi.encodeCall(IGame.challenge, (refOf(claim))), may);
        if (may) _opened(claim);
    }

    function commit(uint256 claim, uint256 seed) external {
        address who = person(seed);
        bool may = vault.free(who) >= DEPOSIT;
        bytes memory data =
            abi.encodeCall(IChallenges.commitChallenge, (_commitment(_committed.length, claim % CLAIMS, who)));
        _call(who, address(challenges), data, may);
        if (may) _committed.push(CommittedCall(who, claim % CLAIMS, block.number, block.timestamp, false));
    }

    function reveal(uint256 which, uint256 seed) external {
        if (_committed.length == 0) return;
        CommittedCall storage b = _committed[which %= _committed.length];
        bool opensNone = bench.isStopped() || _fallen[b.claim % LOCKS];
        bool inTime = block.number >= b.block_ + 2 && block.timestamp <= b.time + 1 hours;
        bool may = !b.done && inTime && (opensNone || vault.free(b.who) + DEPOSIT >= BOND);
        bytes memory data =
            abi.encodeCall(IChallenges.revealChallenge, (refOf(b.claim), bytes32("own"), bytes32(which)));
        if (person(seed) != b.who) _call(person(seed), address(challenges), data, false);
        _call(b.who, address(challenges), data, may);
        if (!may) return;
        b.done = true;
        if (!opensNone) _opened(b.claim);
    }

    function expire(uint256 which, uint256 seed) external {
        if (_committed.length == 0) return;
        CommittedCall storage b = _committed[which %= _committed.length];
        bool may = !b.done && block.timestamp > b.time + 1 hours;
        bytes memory data = abi.encodeCall(IChallenges.expireChallenge, (_commitment(which, b.claim, b.who)));
        _call(person(seed), address(challenges), data, may);
        if (!may) return;
        b.done = true;
        leastBurned += DEPOSIT;
    }

    /// @notice The claimant puts up anew a lock that a conviction took.
    function renew(uint256 lock) external {
        lock %= LOCKS;
        if (!_fallen[lock] || vault.free(person(lock)) < CLAIM_LOCK) return;
        bench.renew(lockId(lock), person(lock), CLAIM_LOCK);
        _fallen[lock] = false;
    }

    /// @notice The run is wound down, or it was not after all, so that both are seen: games go on, none is opened.
    function stop(uint256 seed) external {
        bench.stop(seed % 4 == 0);
    }

    function _opened(uint256 claim) private {
        _claimOf[game.games()] = claim;
        _checkTurn(game.games());
    }

    // --- moves

    /// @dev Where a game stands, by these books: the claimant of a claim answers once for all games that come here.
    function _place(uint256 id, GameState memory g) private view returns (bytes32) {
        return keccak256(abi.encode(_claimOf[id], g.stage, g.step, g.lo, g.hi, g.agreed, g.disputed));
    }

    function _bisects(GameState memory g) private pure returns (bool) {
        return g.stage == Stage.STEPS || g.stage == Stage.NODES;
    }

    /// @dev A game that has just come to where it stands waits for its defender exactly if nobody has been answered there.
    function _checkTurn(uint256 id) private view {
        GameState memory g = game.gameOf(id);
        if (!_bisects(g)) return;
        assertTrue(g.turn == (_lists[_place(id, g)].length == 0 ? Side.DEFENDER : Side.CHALLENGER), "whose turn");
    }

    function post(uint256 seed, uint256 salt) external {
        (uint256 id, GameState memory g) = _pick(seed);
        if (id == 0) return;
        bool may = _bisects(g) && g.turn == Side.DEFENDER && block.timestamp <= g.deadline;
        uint256 width = g.hi - g.lo;
        bytes32[] memory digests = new bytes32[](width < 4 ? width : 4);
        for (uint256 i = 0; i < digests.length; ++i) {
            digests[i] = i + 1 == digests.length ? g.disputed : keccak256(abi.encode(salt, i));
        }
        bytes memory data = abi.encodeCall(IGame.postDigests, (id, digests));
        _call(g.challenger == g.defender ? address(this) : g.challenger, address(game), data, false);
        bytes32[] storage known = _lists[_place(id, g)];
        bytes memory short = abi.encodeCall(IGame.postDigests, (id, new bytes32[](0)));
        if (known.length == 0) {
            _call(g.defender, address(game), short, false);
            _call(g.defender, address(game), data, may);
            if (may) _lists[_place(id, g)] = digests;
        } else {
            bool same = keccak256(abi.encode(known)) == keccak256(abi.encode(digests));
            _call(g.defender, address(game), data, may && same);
            _call(g.defender, address(game), short, may && !same);
        }
    }

    function bisect(uint256 seed, uint256 index) external {
        (uint256 id, GameState memory g) = _pick(seed);
        if (id == 0) return;
        bool may = _bisects(g) && g.turn == Side.CHALLENGER && block.timestamp <= g.deadline;
        bytes32[] memory digests = _lists[_place(id, g)];
        index = digests.length == 0 ? 0 : index % digests.length;
        _call(g.challenger, address(game), abi.encodeCall(IGame.bisectDigests, (id, index, digests)), may);
        if (may) _checkTurn(id);
    }

    function timeout(uint256 seed, uint256 by) external {
        (uint256 id, GameState memory g) = _pick(seed);
        if (id == 0) return;
        bool may = g.stage != Stage.OVER && block.timestamp > g.deadline;
        uint256 before = vault.free(g.challenger);
        _call(person(by), address(game), abi.encodeCall(IGame.timeout, (id)), may);
        if (!may) return;
        // Who is both sides is paid as defender too; what it gains as challenger cannot be told apart.
        bool won = g.turn == Side.DEFENDER;
        int256 gain = int256(vault.free(g.challenger)) - int256(before) - int256(BOND);
        if (g.challenger == g.defender) gain = won ? int256(0) : -int256(BOND);
        _ends[id] = End(true, won, gain);
        _close(_claimOf[id] % LOCKS, won);
    }

    function flush() external {
        (,,, uint256 burned) = vault.totals();
        _call(address(this), address(vault), abi.encodeCall(Vault.flush, ()), burned != 0);
        flushed += burned;
    }

    function wait(uint256 time, uint256 blocks) external {
        vm.warp(block.timestamp + bound(time, 1, 150));
        vm.roll(block.number + bound(blocks, 1, 3));
    }

    /// @notice The end: nobody moves any more, so every game is ended by its clock.
    function finish() external onlyTest {
        vm.warp(block.timestamp + 1000);
        for (uint256 id = 1; id <= game.games(); ++id) {
            this.timeout(id - 1, 0);
        }
    }

    // --- the books

    /// @notice What open games have advanced under an account.
    function openAdvances(bytes32 account) external view returns (uint256 sum) {
        for (uint256 id = 1; id <= game.games(); ++id) {
            GameState memory g = game.gameOf(id);
            if (!_ends[id].over && g.account == account) sum += g.advanced;
        }
    }

    function openGames(uint256 claim) external view returns (uint256 count) {
        for (uint256 id = 1; id <= game.games(); ++id) {
            if (!_ends[id].over && _claimOf[id] == claim) ++count;
        }
    }

    /// @notice Everything in locks that a name is known for: bonds, deposits, claims, reserves.
    function knownLocks() external view returns (uint256 sum) {
        for (uint256 id = 1; id <= game.games(); ++id) {
            sum += _amount(bondLock(id));
        }
        for (uint256 i = 0; i < _committed.length; ++i) {
            bytes32 commitment = _commitment(i, _committed[i].claim, _committed[i].who);
            sum += _amount(keccak256(abi.encode(bytes32("challenge"), commitment)));
        }
        for (uint256 lock = 0; lock < LOCKS; ++lock) {
            sum += _amount(lockId(lock));
            for (uint256 epoch = 0; epoch <= epochOf[lock]; ++epoch) {
                sum += _amount(accountOf(lock, epoch));
            }
        }
    }

    function _close(uint256 lock, bool won) private {
        if (!won) {
            // At least a quarter: half of the bond survives the longest defence, half of the rest burns.
            leastBurned += BOND / 4;
        } else if (!_fallen[lock]) {
            _fallen[lock] = true;
            ++epochOf[lock];
            leastBurned += CLAIM_LOCK / 2;
        }
    }

    function _pick(uint256 seed) private view returns (uint256 id, GameState memory g) {
        uint256 count = game.games();
        if (count == 0) return (0, g);
        id = 1 + seed % count;
        g = game.gameOf(id);
    }

    function _commitment(uint256 salt, uint256 claim, address who) private pure returns (bytes32) {
        return keccak256(abi.encode(refOf(claim), bytes32("own"), bytes32(salt), who));
    }

    function _amount(bytes32 id) private view returns (uint256 amount) {
        (, amount) = vault.lockOf(id);
    }
}
