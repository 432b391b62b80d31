// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

import {IGrants} from "../interfaces/IGrants.sol";
import {RunModules} from "../interfaces/IRoundTerms.sol";
import {IRunCharter} from "../interfaces/IRunCharter.sol";
import {RunTerms} from "../interfaces/RunTypes.sol";
import {Tenure} from "../interfaces/ITenures.sol";
import {Grants} from "../money/Grants.sol";
import {Test} from "./Test.sol";

/// @notice The charter, the books and the share token around Grants: whoever is asked, this contract answers.
contract Books {
    uint48 public constant VESTING = 30 days;

    uint48 public convictedAt;
    address private _payee; // of everybody; zero: of nobody
    mapping(address owner => uint256) public minted;

    function convict(uint48 time) external {
        convictedAt = time;
    }

    function runTerms() external pure returns (RunTerms memory terms) {
        terms.timing.vesting = VESTING;
    }

    function roundModules() external view returns (RunModules memory m) {
        (m.tenures, m.shares, m.payments, m.vault) = (address(this), address(this), address(this), address(this));
    }

    function tenureOf(uint32) external view returns (Tenure memory tenure) {
        tenure.convictedAt = convictedAt;
    }

    function name(address payee) external {
        _payee = payee;
    }

    function payeeOf(address owner) external view returns (address) {
        return _payee == address(0) ? owner : _payee;
    }

    function mint(address owner, uint256 amount) external {
        minted[owner] += amount;
    }

    function credit(Grants grants, bytes32 id, address owner) external {
        grants.credit(id, owner, 5, 1, 0);
    }
}

/// @title Shares at the second at which an answer turns
contract LimitsTest is Test {
    address private constant SOLVER = address(0x501);
    uint48 private constant AT = 1_800_000_000;

    Books private _books;
    Grants private _grants;

    function setUp() public {
        _books = new Books();
        vm.warp(AT - _books.VESTING());
        _grants = new Grants(IRunCharter(address(_books)));
    }

    function test_shares_vest_at_their_second_and_not_before() public {
        _books.credit(_grants, "work", SOLVER);
        vm.warp(AT - 1);
        vm.expectPartialRevert(IGrants.NotVested.selector);
        _grants.release("work");
        vm.warp(AT);
        _grants.release("work");
        assertEq(_books.minted(SOLVER), 5, "vested");
    }

    function test_a_conviction_takes_what_had_not_vested_by_its_second() public {
        _books.credit(_grants, "before", SOLVER);
        _books.credit(_grants, "then", SOLVER);
        vm.warp(AT);
        _books.convict(AT - 1);
        _grants.release("before");
        assertEq(_books.minted(SOLVER), 0, "struck out a second before it vested");
        _books.convict(AT);
        _grants.release("then");
        assertEq(_books.minted(SOLVER), 5, "kept from its second on");
        assertEq(_grants.pendingOf(SOLVER), 0, "nothing is pending");
    }

    function test_shares_that_vest_go_to_whoever_is_paid_in_the_place_of_their_owner() public {
        address cold = address(0x502);
        _books.credit(_grants, "work", SOLVER);
        _books.name(cold);
        vm.warp(AT);
        vm.expectEmit();
        emit IGrants.Vested("work", SOLVER, cold, 5);
        _grants.release("work");
        assertEq(_books.minted(cold), 5, "to its payee");
        assertEq(_books.minted(SOLVER), 0, "not to the key that earned them");
        assertEq(_grants.pendingOf(SOLVER), 0, "nothing is pending");
    }
}
