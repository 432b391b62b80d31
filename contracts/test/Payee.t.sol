// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

import {IRunCharter} from "../interfaces/IRunCharter.sol";
import {IVault} from "../interfaces/IVault.sol";
import {Vault} from "../Vault.sol";
import {ReentrantToken} from "./ReentrantToken.sol";
import {Test} from "./Test.sol";
import {CharterStub} from "./Vault.t.sol";

/// @notice A payee that a token tells of what it is sent, and that asks for the same once more, then names another.
contract GreedyPayee {
    Vault private immutable _vault;
    address private immutable _owner;
    address private immutable _next;
    uint256 public told;
    uint256 public refused;

    constructor(Vault vault, address owner, address next) {
        (_vault, _owner, _next) = (vault, owner, next);
    }

    function onTokens() external {
        ++told;
        try _vault.withdrawFor(_owner) {}
        catch {
            ++refused;
        }
        try _vault.flush() {}
        catch {
            ++refused;
        }
        _vault.requestExitFor(_owner, 1);
        _vault.setPayee(_owner, _next);
    }
}

/// @title A withdrawal address: whoever steals the key that works every day is not paid
contract PayeeTest is Test {
    address private constant HOT = address(0x501); // whose key a thief has, too
    address private constant COLD = address(0x502);
    address private constant STRANGER = address(0x503);
    uint256 private constant EXIT = 1000; // seconds, of CharterStub

    ReentrantToken private _token;
    Vault private _vault;

    function setUp() public {
        _token = new ReentrantToken();
        _vault = new Vault(IRunCharter(address(new CharterStub(address(_token), address(this)))));
        _token.mint(HOT, 100);
        vm.startPrank(HOT);
        _token.approve(address(_vault), 100);
        _vault.deposit(100);
        _vault.requestExit(60);
        vm.stopPrank();
    }

    function test_whoever_names_nobody_is_paid_itself() public {
        assertEq(_vault.payeeOf(HOT), HOT);
        vm.warp(block.timestamp + EXIT + 1);
        vm.prank(HOT);
        _vault.withdraw();
        assertEq(_token.balanceOf(HOT), 60);
    }

    function test_an_exit_that_waits_is_paid_to_whoever_is_named_when_it_is_paid() public {
        _name(HOT, COLD);
        vm.warp(block.timestamp + EXIT + 1);
        vm.expectEmit();
        emit IVault.Withdrawn(HOT, COLD, 60);
        vm.prank(HOT);
        _vault.withdraw();
        assertEq(_token.balanceOf(COLD), 60, "paid");
        assertEq(_token.balanceOf(HOT), 0, "not to the key");
    }

    function test_anybody_withdraws_for_an_owner_and_only_its_payee_is_paid() public {
        _name(HOT, COLD);
        vm.prank(STRANGER);
        vm.expectRevert(abi.encodeWithSelector(IVault.ExitTooEarly.selector, block.timestamp, _leavesAfter() + 1));
        _vault.withdrawFor(HOT);
        vm.warp(block.timestamp + EXIT + 1);
        vm.prank(STRANGER);
        _vault.withdrawFor(HOT);
        assertEq(_token.balanceOf(COLD), 60, "paid");
        assertEq(_token.balanceOf(STRANGER), 0, "not who called");
        vm.expectRevert(abi.encodeWithSelector(IVault.NothingExiting.selector, HOT));
        _vault.withdrawFor(HOT);
    }

    function test_a_thief_of_the_key_names_nobody_else() public {
        _name(HOT, COLD);
        bytes memory refusal = abi.encodeWithSelector(IVault.NotThePayee.selector, HOT, COLD, HOT);
        vm.startPrank(HOT);
        vm.expectRevert(refusal);
        _vault.setPayee(HOT, STRANGER);
        vm.expectRevert(refusal);
        _vault.setPayee(HOT, HOT);
        vm.stopPrank();
        vm.prank(STRANGER);
        vm.expectRevert(abi.encodeWithSelector(IVault.NotThePayee.selector, HOT, COLD, STRANGER));
        _vault.setPayee(HOT, STRANGER);
        assertEq(_vault.payeeOf(HOT), COLD);
    }

    function test_a_thief_of_the_key_does_not_start_the_delay_again() public {
        _name(HOT, COLD);
        uint256 after_ = _leavesAfter();
        vm.warp(block.timestamp + EXIT / 2);
        vm.prank(HOT);
        vm.expectRevert(abi.encodeWithSelector(IVault.NotThePayee.selector, HOT, COLD, HOT));
        _vault.requestExit(1);
        assertEq(_leavesAfter(), after_, "as it was");
        vm.prank(COLD);
        _vault.requestExitFor(HOT, 40);
        assertEq(_leavesAfter(), block.timestamp + EXIT, "its payee may");
        assertEq(_vault.free(HOT), 0, "all of it");
        vm.warp(block.timestamp + EXIT + 1);
        _vault.withdrawFor(HOT);
        assertEq(_token.balanceOf(COLD), 100, "paid");
    }

    function test_whoever_has_lost_the_key_gets_its_free_stake_by_the_payee() public {
        _name(HOT, COLD);
        vm.warp(block.timestamp + EXIT + 1);
        _vault.withdrawFor(HOT);
        // Nothing waits: the owner may ask, its payee may, and nobody else.
        vm.prank(STRANGER);
        vm.expectRevert(abi.encodeWithSelector(IVault.NotThePayee.selector, HOT, COLD, STRANGER));
        _vault.requestExitFor(HOT, 40);
        vm.prank(COLD);
        vm.expectRevert(abi.encodeWithSelector(IVault.InsufficientFree.selector, HOT, 40, 41));
        _vault.requestExitFor(HOT, 41);
        vm.prank(COLD);
        _vault.requestExitFor(HOT, 40);
        assertEq(_vault.free(HOT), 0);
    }

    function test_a_payee_names_the_next_one_or_the_owner_again() public {
        _name(HOT, COLD);
        _name(COLD, STRANGER);
        _name(STRANGER, HOT);
        assertEq(_vault.payeeOf(HOT), HOT);
        _name(HOT, COLD);
        assertEq(_vault.payeeOf(COLD), COLD, "it has none of its own");
    }

    function test_nobody_is_named_who_could_move_nothing() public {
        address[4] memory nobody = [address(0), address(_vault), address(_token), _vault.SINK()];
        for (uint256 i = 0; i < nobody.length; ++i) {
            vm.prank(HOT);
            vm.expectRevert(abi.encodeWithSelector(IVault.PayeeRefused.selector, nobody[i]));
            _vault.setPayee(HOT, nobody[i]);
        }
        assertEq(_vault.payeeOf(HOT), HOT);
    }

    function test_a_payee_that_calls_back_is_paid_once() public {
        GreedyPayee greedy = new GreedyPayee(_vault, HOT, COLD);
        _name(HOT, address(greedy));
        vm.warp(block.timestamp + EXIT + 1);
        _token.arm(address(greedy), abi.encodeCall(GreedyPayee.onTokens, ()));
        _vault.withdrawFor(HOT);
        assertEq(_token.balanceOf(address(greedy)), 60, "paid once");
        assertEq(greedy.told(), 1, "it was called");
        assertEq(greedy.refused(), 2, "and refused");
        // What it may do at any time it may do here: ask for more, strictly after the delay, and name another.
        assertEq(_vault.payeeOf(HOT), COLD, "named");
        (uint256 leaving,) = _vault.exiting(HOT);
        assertEq(leaving, 1, "asked");
        (uint256 free,, uint256 exits,) = _vault.totals();
        assertEq(free + exits, _token.balanceOf(address(_vault)), "tokens");
    }

    function _name(address by, address payee) private {
        vm.expectEmit();
        emit IVault.PayeeSet(HOT, payee);
        vm.prank(by);
        _vault.setPayee(HOT, payee);
    }

    function _leavesAfter() private view returns (uint256 notBefore) {
        (, notBefore) = _vault.exiting(HOT);
    }
}
