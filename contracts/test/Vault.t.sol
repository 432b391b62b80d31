// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

import {IRunCharter} from "../interfaces/IRunCharter.sol";
import {RunTerms} from "../interfaces/RunTypes.sol";
import {TestToken} from "../TestToken.sol";
import {Vault} from "../Vault.sol";
import {Test} from "./Test.sol";

/// @notice What the vault reads of a charter: token, exit delay, modules.
contract CharterStub {
    address private immutable _token;
    address private immutable _module;

    constructor(address token, address module) {
        (_token, _module) = (token, module);
    }

    function runTerms() external view returns (RunTerms memory t) {
        t.token = _token;
        t.timing.exit = 1000;
    }

    function lockers() external view returns (address[] memory all) {
        all = new address[](1);
        all[0] = _module;
    }
}

/// @title Whatever modules and people do in whatever order, the vault holds exactly what it owes
contract VaultTest is Test {
    TestToken private _token;
    Vault private _vault;
    address[3] private _people = [address(0x101), address(0x102), address(0x103)];

    function setUp() public {
        _token = new TestToken();
        _vault = new Vault(IRunCharter(address(new CharterStub(address(_token), address(this)))));
        for (uint256 i = 0; i < 3; ++i) {
            _token.mint(_people[i], 1000);
            vm.prank(_people[i]);
            _token.approve(address(_vault), type(uint256).max);
        }
    }

    function testFuzz_what_it_holds_is_what_it_owes(bytes32[24] calldata draws) public {
        for (uint256 i = 0; i < draws.length; ++i) {
            _step(uint256(draws[i]));
            _checkBooks();
        }
    }

    function testFuzz_a_lock_has_one_owner_and_one_way_out(uint96 amount, uint96 more) public {
        uint256 a = bound(amount, 1, 500);
        uint256 b = bound(more, 1, 500);
        vm.prank(_people[0]);
        _vault.deposit(1000);
        _vault.lock("id", _people[0], a);
        vm.expectRevert();
        _vault.lock("id", _people[1], 1);
        _vault.lock("id", _people[0], b);
        (address owner, uint256 locked) = _vault.lockOf("id");
        assertEq(owner, _people[0]);
        assertEq(locked, a + b);
        _vault.release("id");
        vm.expectRevert();
        _vault.release("id");
        assertEq(_vault.free(_people[0]), 1000);
    }

    /// @dev One call chosen by the draw; refusals are part of the game.
    function _step(uint256 draw) private {
        address who = _people[draw % 3];
        bytes32 id = bytes32(uint256(1 + (draw >> 8) % 3));
        uint256 amount = (draw >> 16) % 400;
        uint256 what = (draw >> 32) % 9;
        if (what < 4) vm.prank(who);
        if (what == 0) {
            try _vault.deposit(amount) {} catch {}
        } else if (what == 1) {
            try _vault.requestExit(amount) {} catch {}
        } else if (what == 2) {
            try _vault.withdraw() {} catch {}
        } else if (what == 3) {
            try _vault.flush() {} catch {}
        } else if (what == 4) {
            try _vault.lock(id, who, amount) {} catch {}
        } else if (what == 5) {
            try _vault.release(id) {} catch {}
        } else if (what == 6) {
            try _vault.seize(id, who, amount) {} catch {}
        } else if (what == 7) {
            try _vault.burn(id, amount) {} catch {}
        } else {
            vm.warp(block.timestamp + (draw >> 40) % 2000);
        }
    }

    function _checkBooks() private view {
        (uint256 free, uint256 locked, uint256 leaving, uint256 burned) = _vault.totals();
        uint256 frees = 0;
        uint256 exits = 0;
        uint256 locks = 0;
        for (uint256 i = 0; i < 3; ++i) {
            frees += _vault.free(_people[i]);
            (uint256 amount,) = _vault.exiting(_people[i]);
            exits += amount;
            (, amount) = _vault.lockOf(bytes32(i + 1));
            locks += amount;
        }
        assertEq(frees, free, "free");
        assertEq(locks, locked, "locks");
        assertEq(exits, leaving, "exits");
        assertEq(free + locked + leaving + burned, _token.balanceOf(address(_vault)), "tokens");
    }
}
