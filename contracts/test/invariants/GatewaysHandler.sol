// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

import {GameState, Side, Stage} from "../../interfaces/GameTypes.sol";
import {IChallenges} from "../../interfaces/IChallenges.sol";
import {ClaimRef, ClaimView, IClaims} from "../../interfaces/IClaims.sol";
import {IGame} from "../../interfaces/IGame.sol";
import {GatewayBond, IGateways, SaidAnswer} from "../../interfaces/IGateways.sol";
import {IVault} from "../../interfaces/IVault.sol";
import {AnswerBench} from "./AnswerBench.sol";

/// @notice Gateways and readers who do anything, and what the contracts should hold of each, kept apart from them. The first gateway is honest: it answers
/// in each of its games before its clock ends, and no challenger gets as far as a value that it would have to show.
contract GatewaysHandler is AnswerBench {
    struct GameOnAnswer {
        address gateway;
        uint256 advanced; // by the challenger's stake, to the gateway
        uint256 held;
    }

    struct CommittedReader {
        address who;
        address gateway;
        bytes32 model;
        bytes32 claim;
        uint256 block_;
        uint256 time;
        bool done;
    }

    struct ShownAnswer {
        address gateway;
        bytes32 model;
        bytes32 seen; // digest of X, Y and claimant
    }

    uint256 public time = START; // what the chain says, the compiler may keep within a call
    uint256 private _block = 1;
    mapping(address gateway => GatewayBond) private _bonds;
    mapping(address gateway => mapping(bytes32 model => uint256)) public pledgeOf;
    mapping(address gateway => uint256) public advancesOf; // of open games on its claims
    mapping(address who => uint256) public freeOf;
    mapping(bytes32 claim => ShownAnswer) private _shown;
    mapping(bytes32 place => bytes32[]) private _lists;
    mapping(uint256 id => GameOnAnswer) private _games;
    bytes32[] private _claims;
    uint256[] private _open;
    CommittedReader[] private _committed;
    uint256 public pending; // committed challenges
    uint256 public burned;
    uint256 public bondsIn;
    uint256 public bondsBack;
    uint256 public bondsTaken;

    constructor() {
        for (uint256 i = 0; i < PEOPLE; ++i) {
            freeOf[person(i)] = WEALTH;
        }
    }

    function bondOf(address at) external view returns (GatewayBond memory) {
        return _bonds[at];
    }

    /// @dev Whoever opens games: never the honest gateway, which knows no false answer.
    function _reader(uint256 seed) private view returns (address) {
        return person(1 + seed % (PEOPLE - 1));
    }

    // --- gateways

    function bond(uint256 seed) public {
        address who = gateway(seed);
        GatewayBond storage b = _bonds[who];
        bool may = !b.isBonded && !b.isConvicted && freeOf[who] >= BOND;
        _call(who, address(gateways), abi.encodeCall(IGateways.bond, ()), may);
        if (!may) return;
        (b.isBonded, freeOf[who]) = (true, freeOf[who] - BOND);
        ++bondsIn;
    }

    function unbond(uint256 seed) public {
        address who = gateway(seed);
        GatewayBond storage b = _bonds[who];
        bool may = b.isBonded && b.disputes == 0 && (b.until == 0 || time > b.until + WINDOW);
        _call(who, address(gateways), abi.encodeCall(IGateways.unbond, ()), may);
        if (!may) return;
        (b.isBonded, freeOf[who]) = (false, freeOf[who] + BOND);
        ++bondsBack;
    }

    /// @notice Leaves as soon as nothing can be presented or challenged any more, a second too early too; games may be open still.
    function leave(uint256 seed) external {
        uint256 over = _bonds[gateway(seed)].until + WINDOW;
        if (over > time) _pass(over - time, 1);
        unbond(seed);
        _pass(1, 1);
        unbond(seed);
    }

    /// @dev Times that are over too, and such as are too far away.
    function pledge(uint256 seed, uint256 which, uint256 until) public {
        address who = gateway(seed);
        until = until % 8 == 0 ? time + 180 days + until % 3 : time + bound(until, 0, 4 days) - 1 days;
        bool may = _bonds[who].isBonded && until > pledgeOf[who][model(which)] && until <= time + 180 days;
        // Half a year would keep everything in its place for the rest of the run.
        if (may && until > time + 4 days) return;
        _call(who, address(gateways), abi.encodeCall(IGateways.pledge, (model(which), uint48(until))), may);
        if (!may) return;
        pledgeOf[who][model(which)] = until;
        if (until > _bonds[who].until) _bonds[who].until = uint48(until);
    }

    // --- statements

    /// @dev Of those signatures that are faulty, one is of another text, one of another form, one of nobody who pledged.
    function accuse(uint256 seed, uint256 text, uint256 which, uint256 place, uint256 fault) public {
        (address who, SaidAnswer memory said) = (gateway(seed), _said(text, which));
        (place, fault) = (place % 5, fault % 8);
        bytes memory data = abi.encodeCall(IGateways.accuse, (said, uint32(place), _signed(seed, said, fault)));
        bool isSaid = place < said.answer.length || (place == said.answer.length && place < 3);
        bool may = isSaid && fault > 2 && _bonds[who].isBonded && time <= pledgeOf[who][said.model];
        bytes memory answer = _call(_reader(fault), address(gateways), data, may);
        if (!may) return;
        bytes32 claim = abi.decode(answer, (bytes32));
        assertEq(claim, _claimOf(who, said, place), "a claim is named by what was signed, its place, and who signed it");
        if (_shown[claim].gateway != address(0)) return;
        ClaimView memory view_ = IClaims(address(gateways)).claimOf(refOf(claim));
        assertEq(view_.y == 0, text % TEXTS != 0 && place == 2, "what contradicts itself ends in nothing");
        _shown[claim] = ShownAnswer(who, said.model, _seen(view_));
        _claims.push(claim);
    }

    // --- games

    function commit(uint256 by, uint256 seed, uint256 text, uint256 which, uint256 place) public {
        (address who, address at) = (_reader(by), gateway(seed));
        bytes32 claim = _claimOf(at, _said(text, which), place % 5);
        bool may = freeOf[who] >= DEPOSIT;
        bytes memory data = abi.encodeCall(IChallenges.commitChallenge, (_commitment(_committed.length, claim, who)));
        _call(who, address(_challenges), data, may);
        if (!may) return;
        _committed.push(CommittedReader(who, at, model(which), claim, _block, time, false));
        (freeOf[who], pending) = (freeOf[who] - DEPOSIT, pending + 1);
    }

    function reveal(uint256 number, uint256 seed) public {
        if (_committed.length == 0) return;
        CommittedReader storage c = _committed[number %= _committed.length];
        bytes memory data =
            abi.encodeCall(IChallenges.revealChallenge, (refOf(c.claim), bytes32("own"), bytes32(number)));
        if (person(seed) != c.who) _call(person(seed), address(_challenges), data, false);
        bool inTime = _block >= c.block_ + 2 && time >= c.time + REORG && time <= c.time + REVEAL;
        bool opens = _shown[c.claim].gateway != address(0) && _bonds[c.gateway].isBonded
            && time <= pledgeOf[c.gateway][c.model] + WINDOW;
        bool may = !c.done && inTime && (!opens || freeOf[c.who] + DEPOSIT >= STAKE);
        _call(c.who, address(_challenges), data, may);
        if (!may) return;
        (c.done, freeOf[c.who], pending) = (true, freeOf[c.who] + DEPOSIT, pending - 1);
        if (!opens) return;
        freeOf[c.who] -= STAKE;
        ++_bonds[c.gateway].disputes;
        _open.push(game.games());
        _games[game.games()].gateway = c.gateway;
    }

    function expire(uint256 number, uint256 seed) external {
        if (_committed.length == 0) return;
        CommittedReader storage c = _committed[number %= _committed.length];
        bool may = !c.done && time > c.time + REVEAL;
        bytes memory data = abi.encodeCall(IChallenges.expireChallenge, (_commitment(number, c.claim, c.who)));
        _call(person(seed), address(_challenges), data, may);
        if (may) (c.done, pending, burned) = (true, pending - 1, burned + DEPOSIT);
    }

    /// @notice An accusation in its order, answered once or not, which chance alone would hardly ever make in time.
    function sue(uint256 by, uint256 seed, uint256 text, uint256 which, uint256 place) external {
        bond(seed);
        pledge(seed, which, 3 days + 1);
        commit(by, seed, text, which, place);
        _pass(REORG, 2);
        accuse(seed, text, which, place, 7);
        reveal(_committed.length - 1, by);
        if (by % 2 == 0 && _open.length != 0) _post(_open[_open.length - 1], by);
    }

    function post(uint256 seed) external {
        if (_open.length != 0) _post(_open[seed % _open.length], seed);
    }

    function _post(uint256 id, uint256 salt) private {
        GameState memory g = game.gameOf(id);
        bytes32[] storage known = _lists[_place(g)];
        bytes32[] memory digests = new bytes32[](known.length != 0 ? 0 : g.hi - g.lo < 4 ? g.hi - g.lo : 4);
        for (uint256 i = 0; i < digests.length; ++i) {
            digests[i] = i + 1 == digests.length ? g.disputed : keccak256(abi.encode(salt, i));
        }
        bool may = g.stage == Stage.NODES && g.turn == Side.DEFENDER && time <= g.deadline;
        _call(g.defender, address(game), abi.encodeCall(IGame.postDigests, (id, digests)), may);
        if (!may) return;
        if (digests.length != 0) _lists[_place(g)] = digests;
        // What a reply is paid at once, half of the bounty answers for; the rest waits in the stake.
        if (_bonds[g.defender].isConvicted || advancesOf[g.defender] + _refund > BOND / 4) {
            _games[id].held += _refund;
        } else {
            _games[id].advanced += _refund;
            (advancesOf[g.defender], freeOf[g.defender]) =
            (advancesOf[g.defender] + _refund, freeOf[g.defender] + _refund);
        }
    }

    function bisect(uint256 seed, uint256 index) external {
        if (_open.length == 0) return;
        uint256 id = _open[seed % _open.length];
        GameState memory g = game.gameOf(id);
        bytes32[] memory digests = _lists[_place(g)];
        uint256 count = digests.length;
        index = count == 0 ? 0 : index % count;
        bool may = g.stage == Stage.NODES && g.turn == Side.CHALLENGER && time <= g.deadline;
        uint256 width = count == 0 ? 0 : (g.hi - g.lo) * (index + 1) / count - (g.hi - g.lo) * index / count;
        if (may && width == 1 && g.defender == gateway(0)) return;
        _call(g.challenger, address(game), abi.encodeCall(IGame.bisectDigests, (id, index, digests)), may);
    }

    function timeout(uint256 seed, uint256 by) public {
        if (_open.length == 0) return;
        uint256 at = seed % _open.length;
        uint256 id = _open[at];
        GameState memory g = game.gameOf(id);
        bool may = time > g.deadline;
        bytes memory data = abi.encodeCall(IGame.timeout, (id));
        _call(person(by), address(game), data, may);
        if (!may) return;
        _call(person(by), address(game), data, false);
        _open[at] = _open[_open.length - 1];
        _open.pop();
        _settle(_games[id], g);
    }

    function _settle(GameOnAnswer storage ended, GameState memory g) private {
        GatewayBond storage b = _bonds[ended.gateway];
        bool isFirst = !b.isConvicted;
        --b.disputes;
        advancesOf[ended.gateway] -= ended.advanced;
        if (g.turn == Side.CHALLENGER) {
            uint256 rest = STAKE - ended.advanced - ended.held;
            freeOf[ended.gateway] += ended.held + rest / 2;
            burned += rest - rest / 2 + (isFirst ? 0 : ended.advanced);
            return;
        }
        freeOf[g.challenger] += STAKE;
        if (!isFirst) return;
        (b.isConvicted, b.isBonded) = (true, false);
        freeOf[g.challenger] += BOUNTY - advancesOf[ended.gateway] - ended.advanced;
        burned += BOND - BOUNTY;
        ++bondsTaken;
    }

    /// @notice What nobody may do, whatever happened.
    function meddle(uint256 by, uint256 seed, uint256 number) external {
        (address who, bytes32 lock) = (person(by), gateways.lockOf(gateway(seed)));
        ClaimRef memory ref = refOf(_claims.length == 0 ? bytes32(0) : _claims[number % _claims.length]);
        _call(who, address(gateways), abi.encodeCall(IClaims.onOpened, (ref, who)), false);
        _call(who, address(gateways), abi.encodeCall(IClaims.onClosed, (ref, true)), false);
        _call(who, address(game), abi.encodeCall(IGame.challenge, (ref)), false);
        _call(who, address(vault), abi.encodeCall(IVault.release, (lock)), false);
        _call(who, address(vault), abi.encodeCall(IVault.seize, (lock, who, 1)), false);
    }

    function wait(uint256 seed) external {
        uint256[6] memory steps = [uint256(1), 120, REORG, REVEAL - REORG, WINDOW, 2 days];
        _pass(steps[seed % 6], 1);
    }

    function _pass(uint256 seconds_, uint256 blocks) private {
        for (uint256 i = 0; i < _open.length; ++i) {
            GameState memory g = game.gameOf(_open[i]);
            if (g.defender == gateway(0) && g.turn == Side.DEFENDER) _post(_open[i], 0);
        }
        (time, _block) = (time + seconds_, _block + blocks);
        vm.warp(time);
        vm.roll(_block);
    }

    /// @notice The end: games end by their clocks, all windows are over, and every gateway leaves that still may.
    function finish() external onlyTest {
        _pass(1000, 1);
        while (_open.length != 0) {
            timeout(0, 0);
        }
        _pass(185 days, 1);
        for (uint256 i = 0; i < GATEWAYS; ++i) {
            unbond(i);
        }
    }

    // --- the books

    /// @notice What must be locked: bonds, stakes less what they advanced, deposits, and the reserves of bonds that were taken.
    function locked() external view returns (uint256 sum) {
        sum = (bondsIn - bondsBack - bondsTaken) * BOND + pending * DEPOSIT;
        for (uint256 i = 0; i < _open.length; ++i) {
            sum += STAKE - _games[_open[i]].advanced;
        }
        for (uint256 i = 0; i < GATEWAYS; ++i) {
            if (_bonds[gateway(i)].isConvicted) sum += advancesOf[gateway(i)];
        }
    }

    function claims() external view returns (uint256) {
        return _claims.length;
    }

    /// @notice A claim as it was first shown, and as the contract shows it now.
    function shown(uint256 index)
        external
        view
        returns (ShownAnswer memory first, ClaimView memory now_, bytes32 seen)
    {
        first = _shown[_claims[index]];
        now_ = IClaims(address(gateways)).claimOf(refOf(_claims[index]));
        seen = _seen(now_);
    }
}
