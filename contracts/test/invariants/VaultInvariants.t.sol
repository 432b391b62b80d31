// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

import {RunModules} from "../../interfaces/IRoundTerms.sol";
import {RunTerms} from "../../interfaces/RunTypes.sol";
import {TestToken} from "../../TestToken.sol";
import {Vault} from "../../Vault.sol";
import {CharterBench} from "./CharterBench.sol";
import {Handler, Invariants} from "./Handler.sol";

/// @notice People with tokens, a module (this contract) that may move locks, and strangers that may not.
contract VaultHandler is Handler {
    uint256 public constant PEOPLE = 3;
    uint256 public constant PAYEES = 2; // addresses that own no stake
    uint256 public constant LOCKS = 4;
    uint256 public constant WEALTH = 1000; // wei of each person at the start
    uint48 public constant EXIT = 1000; // seconds

    struct Lock {
        address owner;
        uint256 amount;
    }

    TestToken public immutable token = new TestToken();
    Vault public immutable vault;

    // What the vault should hold, kept apart from it.
    mapping(address who => uint256) public freeOf;
    mapping(address who => uint256) public leavingOf;
    mapping(address who => uint256) private _leavesAfter;
    mapping(address who => address) private _payees;
    mapping(address who => uint256) public tokensOf;
    mapping(uint256 id => Lock) private _locks;
    uint256 public burned;

    constructor() {
        CharterBench charter = new CharterBench();
        RunTerms memory terms;
        RunModules memory modules;
        (terms.token, terms.timing.exit, modules.game) = (address(token), EXIT, address(this));
        charter.write(terms, modules);
        vault = Vault(_deploy("Vault.sol:Vault", abi.encode(charter)));
        for (uint256 i = 0; i < PEOPLE; ++i) {
            token.mint(person(i), WEALTH);
            tokensOf[person(i)] = WEALTH;
            vm.prank(person(i));
            token.approve(address(vault), type(uint256).max);
        }
    }

    function person(uint256 seed) public pure returns (address) {
        return address(uint160(0x101 + seed % PEOPLE));
    }

    /// @notice Anybody who may be named, or may try to name: people, and addresses that own no stake.
    function anybody(uint256 seed) public pure returns (address) {
        return address(uint160(0x101 + seed % (PEOPLE + PAYEES)));
    }

    function payeeOf(address who) public view returns (address) {
        return _payees[who] == address(0) ? who : _payees[who];
    }

    function lockOf(uint256 id) external view returns (address owner, uint256 amount) {
        return (_locks[id].owner, _locks[id].amount);
    }

    // --- people

    function deposit(uint256 seed, uint256 amount) external {
        address who = person(seed);
        amount = bound(amount, 0, WEALTH / 2);
        bool may = amount != 0 && amount <= token.balanceOf(who);
        _call(who, address(vault), abi.encodeCall(Vault.deposit, (amount)), may);
        if (!may) return;
        freeOf[who] += amount;
        tokensOf[who] -= amount;
    }

    function setPayee(uint256 by, uint256 seed, uint256 to) external {
        (address caller, address who) = (anybody(by), person(seed));
        // Now and then what nobody could move again: zero, the vault, the token, the sink.
        address[4] memory nobody = [address(0), address(vault), address(token), vault.SINK()];
        address payee = to % 8 < 4 ? nobody[to % 4] : anybody(to / 8);
        bool may = caller == payeeOf(who) && to % 8 >= 4;
        _call(caller, address(vault), abi.encodeCall(Vault.setPayee, (who, payee)), may);
        if (may) _payees[who] = payee;
    }

    function requestExit(uint256 seed, uint256 amount) external {
        address who = person(seed);
        amount = bound(amount, 0, WEALTH / 2);
        bool mayAdd = leavingOf[who] == 0 || payeeOf(who) == who;
        _leave(who, who, amount, abi.encodeCall(Vault.requestExit, (amount)), mayAdd);
    }

    function requestExitFor(uint256 by, uint256 seed, uint256 amount) external {
        (address caller, address who) = (anybody(by), person(seed));
        amount = bound(amount, 0, WEALTH / 2);
        bytes memory data = abi.encodeCall(Vault.requestExitFor, (who, amount));
        _leave(caller, who, amount, data, caller == payeeOf(who));
    }

    function _leave(address caller, address who, uint256 amount, bytes memory data, bool may) private {
        may = may && amount != 0 && amount <= freeOf[who];
        _call(caller, address(vault), data, may);
        if (!may) return;
        freeOf[who] -= amount;
        leavingOf[who] += amount;
        _leavesAfter[who] = block.timestamp + EXIT;
    }

    function withdraw(uint256 by, uint256 seed) external {
        (address caller, address who) = (anybody(by), person(seed));
        bool may = leavingOf[who] != 0 && block.timestamp > _leavesAfter[who];
        bytes memory data =
            caller == who ? abi.encodeCall(Vault.withdraw, ()) : abi.encodeCall(Vault.withdrawFor, (who));
        _call(caller, address(vault), data, may);
        if (!may) return;
        tokensOf[payeeOf(who)] += leavingOf[who];
        leavingOf[who] = 0;
    }

    function flush(uint256 seed) external {
        bool may = burned != 0;
        _call(person(seed), address(vault), abi.encodeCall(Vault.flush, ()), may);
        burned = 0;
    }

    function stranger(uint256 seed, uint256 id, uint256 amount) external {
        (address who, bytes32 lockId) = (person(seed), bytes32(id % LOCKS));
        amount = bound(amount, 0, WEALTH / 4);
        _call(who, address(vault), abi.encodeCall(Vault.lock, (lockId, who, amount)), false);
        _call(who, address(vault), abi.encodeCall(Vault.release, (lockId)), false);
        _call(who, address(vault), abi.encodeCall(Vault.seize, (lockId, who, amount)), false);
        _call(who, address(vault), abi.encodeCall(Vault.burn, (lockId, amount)), false);
    }

    function wait(uint256 time) external {
        vm.warp(block.timestamp + bound(time, 1, 2 * EXIT));
    }

    // --- the module

    function lock(uint256 id, uint256 seed, uint256 amount) external {
        (id, amount) = (id % LOCKS, bound(amount, 0, WEALTH / 4));
        address who = person(seed);
        Lock storage held = _locks[id];
        bool may = amount != 0 && amount <= freeOf[who] && (held.amount == 0 || held.owner == who);
        _call(address(this), address(vault), abi.encodeCall(Vault.lock, (bytes32(id), who, amount)), may);
        if (!may) return;
        freeOf[who] -= amount;
        (held.owner, held.amount) = (who, held.amount + amount);
    }

    function release(uint256 id) external {
        id %= LOCKS;
        Lock storage held = _locks[id];
        bool may = held.amount != 0;
        _call(address(this), address(vault), abi.encodeCall(Vault.release, (bytes32(id))), may);
        if (!may) return;
        freeOf[held.owner] += held.amount;
        delete _locks[id];
    }

    function seize(uint256 id, uint256 seed, uint256 amount) external {
        id %= LOCKS;
        address to = person(seed);
        amount = _part(id, amount);
        bool may = amount <= _locks[id].amount;
        _call(address(this), address(vault), abi.encodeCall(Vault.seize, (bytes32(id), to, amount)), may);
        if (!may) return;
        _take(id, amount);
        freeOf[to] += amount;
    }

    function burn(uint256 id, uint256 amount) external {
        id %= LOCKS;
        amount = _part(id, amount);
        bool may = amount <= _locks[id].amount;
        _call(address(this), address(vault), abi.encodeCall(Vault.burn, (bytes32(id), amount)), may);
        if (!may) return;
        _take(id, amount);
        burned += amount;
    }

    /// @dev Up to one more than there is: often everything, now and then too much.
    function _part(uint256 id, uint256 seed) private view returns (uint256) {
        return bound(seed, 0, _locks[id].amount + 1);
    }

    function _take(uint256 id, uint256 amount) private {
        _locks[id].amount -= amount;
        if (_locks[id].amount == 0) delete _locks[id];
    }
}

/// @title Whatever modules, people and strangers do in whatever order, the vault holds exactly what it owes, to whom it owes it
contract VaultInvariants is Invariants {
    VaultHandler private _h;
    Vault private _vault;

    function setUp() public {
        _h = new VaultHandler();
        _vault = _h.vault();
        _handler = address(_h);
    }

    function invariant_it_holds_exactly_what_it_owes() public view {
        (uint256 free, uint256 locked, uint256 leaving, uint256 burned) = _vault.totals();
        assertEq(_h.token().balanceOf(address(_vault)), free + locked + leaving + burned, "tokens");
        assertEq(burned, _h.burned(), "burned");
    }

    function invariant_free_and_locked_are_the_sums_of_their_parts() public view {
        (uint256 free, uint256 locked, uint256 leaving,) = _vault.totals();
        for (uint256 i = 0; i < _h.PEOPLE(); ++i) {
            address who = _h.person(i);
            (uint256 amount,) = _vault.exiting(who);
            assertEq(_vault.free(who), _h.freeOf(who), "free");
            assertEq(amount, _h.leavingOf(who), "leaving");
            free -= _vault.free(who);
            leaving -= amount;
        }
        for (uint256 id = 0; id < _h.LOCKS(); ++id) {
            (, uint256 amount) = _vault.lockOf(bytes32(id));
            locked -= amount;
        }
        assertEq(free + locked + leaving, 0, "sums");
    }

    function invariant_a_lock_has_one_owner_and_is_open_only_while_it_holds_something() public view {
        for (uint256 id = 0; id < _h.LOCKS(); ++id) {
            (address owner, uint256 amount) = _vault.lockOf(bytes32(id));
            (address wantedOwner, uint256 wanted) = _h.lockOf(id);
            assertEq(owner, wantedOwner, "owner");
            assertEq(amount, wanted, "amount");
            assertEq(owner == address(0), amount == 0, "closed");
        }
    }

    function invariant_no_token_appears_or_vanishes() public view {
        uint256 sum = _h.token().balanceOf(address(_vault)) + _h.token().balanceOf(_vault.SINK());
        for (uint256 i = 0; i < _h.PEOPLE() + _h.PAYEES(); ++i) {
            sum += _h.token().balanceOf(_h.anybody(i));
        }
        assertEq(sum, _h.PEOPLE() * _h.WEALTH(), "tokens");
    }

    function invariant_no_token_leaves_but_to_a_payee() public view {
        for (uint256 i = 0; i < _h.PEOPLE() + _h.PAYEES(); ++i) {
            address who = _h.anybody(i);
            assertEq(_h.token().balanceOf(who), _h.tokensOf(who), "tokens");
        }
        for (uint256 i = 0; i < _h.PEOPLE(); ++i) {
            assertEq(_vault.payeeOf(_h.person(i)), _h.payeeOf(_h.person(i)), "payee");
        }
    }
}
