// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

import {Attester, Role} from "../interfaces/IAudit.sol";
import {ICharter, Modules, Terms} from "../interfaces/ICharter.sol";
import {Status, Times} from "../interfaces/IRounds.sol";
import {ISettlement} from "../interfaces/ISettlement.sol";
import {IVesting} from "../interfaces/IShares.sol";
import {Settlement} from "../Settlement.sol";
import {TestToken} from "../TestToken.sol";
import {Vault} from "../Vault.sol";
import {Test} from "./Test.sol";
import {Vesting} from "../Vesting.sol";

/// @notice The charter and the books around Settlement and Vesting: whoever is asked, this contract answers.
contract Books {
    TestToken public immutable token = new TestToken();
    address public vault;
    address public settlement;
    uint64 public convictedAt;
    uint32 public duties;
    mapping(address owner => uint256) public minted;

    function place(address vault_, address settlement_) external {
        (vault, settlement) = (vault_, settlement_);
    }

    function convict(uint64 time) external {
        convictedAt = time;
    }

    function owe(uint32 duties_) external {
        duties = duties_;
    }

    function terms() external view returns (Terms memory t) {
        (t.token, t.sponsor, t.training.intervals) = (address(token), address(this), 3);
        (t.economics.unitPrice, t.economics.units, t.economics.wage) = (100, 1, 7);
        (t.economics.auditPpm, t.economics.whistlePpm) = (1_000_000, 1_000_000);
    }

    function modules() external view returns (Modules memory m) {
        (m.rounds, m.audit, m.shares) = (address(this), address(this), address(this));
        (m.vault, m.settlement) = (vault, settlement);
    }

    function lockers() external view returns (address[] memory all) {
        all = new address[](2);
        (all[0], all[1]) = (address(this), settlement);
    }

    function mint(address owner, uint256 amount) external {
        minted[owner] += amount;
    }

    function fund(uint256 amount) external {
        token.mint(address(this), amount);
        token.approve(vault, amount);
        Vault(vault).deposit(amount);
        Settlement(settlement).fund(amount);
    }

    function open(uint64 round, uint256 seats) external {
        Settlement(settlement).onRoundOpened(round, seats);
    }

    function members(Role role) external pure returns (uint256) {
        return role == Role.VERIFIER ? 1 : 0;
    }

    function timesOf(uint64) external pure returns (Times memory times) {
        return times;
    }

    function close(uint64, address) external view returns (uint32) {
        return duties;
    }

    function close(uint64, uint32) external pure returns (Status, address) {
        return (Status.VOID, address(0));
    }

    function attesterOf(address) external view returns (Attester memory attester) {
        attester.convictedAt = convictedAt;
    }
}

/// @title Money and shares at the wei and the second at which an answer turns
contract LimitsTest is Test {
    address private constant ATTESTER = address(0x501);
    uint64 private constant AT = 1_800_000_000;
    uint256 private constant RESERVE = 4 * 7; // a seat of two rounds each: four duties, one verifier, no pay

    Books private _books;
    Settlement private _settlement;
    Vesting private _vesting;

    function setUp() public {
        vm.warp(AT - 1000);
        _books = new Books();
        ICharter charter = ICharter(address(_books));
        _books.place(address(new Vault(charter)), address(this));
        _vesting = new Vesting(charter);
    }

    // --- the escrow

    function test_what_one_round_earns_beyond_its_reserve_never_comes_from_anothers() public {
        Vault vault = _withEscrow(2 * RESERVE + 7);
        _books.owe(6);
        // 42 wei are earned where 28 are reserved, and 7 are free: the other round's 28 stay.
        _isShort(2 * RESERVE + 7);
        _books.fund(6);
        _isShort(2 * RESERVE + 13);
        _books.fund(1);
        _settlement.settleDuties(0, ATTESTER);
        assertEq(vault.free(ATTESTER), 42, "in whole");
        assertEq(_settlement.escrow(), RESERVE, "and nothing of the other round's");
        assertEq(_settlement.reservedTotal(), RESERVE, "which stays reserved");
    }

    function _isShort(uint256 escrow) private {
        vm.expectRevert(abi.encodeWithSelector(ISettlement.EscrowShort.selector, escrow, RESERVE + 42));
        _settlement.settleDuties(0, ATTESTER);
    }

    // --- vesting

    function test_shares_vest_at_their_second_and_not_before() public {
        _credit("work", false);
        vm.warp(AT - 1);
        vm.expectPartialRevert(IVesting.NotVested.selector);
        _vesting.release("work");
        vm.warp(AT);
        _vesting.release("work");
        assertEq(_books.minted(ATTESTER), 5, "vested");
    }

    function test_a_conviction_takes_what_had_not_vested_by_its_second() public {
        _credit("before", true);
        _credit("then", true);
        vm.warp(AT);
        _books.convict(AT - 1);
        _vesting.release("before");
        assertEq(_books.minted(ATTESTER), 0, "struck out a second before it vested");
        _books.convict(AT);
        _vesting.release("then");
        assertEq(_books.minted(ATTESTER), 5, "kept from its second on");
        assertEq(_vesting.pendingOf(ATTESTER), 0, "nothing is pending");
    }

    function _credit(bytes32 id, bool forDuties) private {
        _vesting.credit(id, ATTESTER, 5, AT, forDuties);
    }

    function _withEscrow(uint256 amount) private returns (Vault vault) {
        // The vault knows its settlement from its own construction on.
        bytes32 code = keccak256(bytes.concat(type(Settlement).creationCode, abi.encode(_books)));
        address place = address(uint160(uint256(keccak256(abi.encodePacked(hex"ff", address(this), bytes32(0), code)))));
        _books.place(address(0), place);
        vault = new Vault(ICharter(address(_books)));
        _books.place(address(vault), place);
        _settlement = new Settlement{salt: 0}(ICharter(address(_books)));
        _books.fund(amount);
        _books.open(0, 1);
        _books.open(1, 1);
    }
}
