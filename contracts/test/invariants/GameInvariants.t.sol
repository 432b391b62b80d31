// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

import {Game} from "../../game/Game.sol";
import {GameState, Stage} from "../../interfaces/GameTypes.sol";
import {TestToken} from "../../TestToken.sol";
import {Vault} from "../../Vault.sol";
import {ClaimsBench} from "../ClaimsBench.sol";
import {GameHandler} from "./GameHandler.sol";
import {Invariants} from "./Handler.sol";

/// @title However games cross each other, every bond leaves once, whoever is right loses nothing, and no money is without an owner
/// @dev HP-n: the rules of the honest player and what must become of it, with their reasons, in tests/harness/honest_rules.py.
contract GameInvariants is Invariants {
    GameHandler private _h;
    Game private _game;
    Vault private _vault;

    function setUp() public {
        _h = new GameHandler();
        (_game, _vault) = (_h.game(), _h.vault());
        _handler = address(_h);
    }

    function invariant_a_bond_is_held_while_its_game_is_open_and_gone_when_it_is_over() public view {
        for (uint256 id = 1; id <= _game.games(); ++id) {
            GameState memory game = _game.gameOf(id);
            (address owner, uint256 held) = _vault.lockOf(_h.bondLock(id));
            bool over = game.stage == Stage.OVER;
            assertEq(held, over ? 0 : _h.BOND() - game.advanced, "HP-10: a bond leaves once, when its game is over");
            assertEq(owner, over ? address(0) : game.challenger, "HP-10: a bond is its challenger's");
        }
    }

    function invariant_a_winner_loses_nothing_and_a_loser_its_bond_alone() public view {
        for (uint256 id = 1; id <= _game.games(); ++id) {
            if (_game.gameOf(id).stage != Stage.OVER) continue;
            (bool won, int256 gain) = _h.endOf(id);
            if (won) assertTrue(gain >= 0, "HP-7: a winner paid for its own victory");
            else assertEq(gain, -int256(_h.BOND()), "HP-13: a loser loses its bond and no more");
        }
    }

    function invariant_a_reserve_is_exactly_what_open_games_advanced_under_a_lock_that_is_gone() public view {
        assertEq(_vault.free(address(_game)), 0, "HP-10: the game keeps nothing");
        uint256 reserves;
        for (uint256 lock = 0; lock < _h.LOCKS(); ++lock) {
            for (uint256 epoch = 0; epoch < _h.epochOf(lock); ++epoch) {
                bytes32 account = _h.accountOf(lock, epoch);
                (, uint256 held) = _vault.lockOf(account);
                assertEq(held, _h.openAdvances(account), "HP-10: a reserve is what open games advanced");
                reserves += held;
            }
            bytes32 present = _h.accountOf(lock, _h.epochOf(lock));
            assertLe(_h.openAdvances(present), _h.CLAIM_LOCK() / 4, "HP-7: advances are backed by half of the bounty");
        }
    }

    function invariant_every_token_has_a_place() public view {
        (uint256 free, uint256 locked, uint256 leaving, uint256 burned) = _vault.totals();
        assertEq(free + locked + leaving + burned, _h.token().balanceOf(address(_vault)), "HP-9: tokens");
        assertEq(locked, _h.knownLocks(), "HP-10: every lock has a name");
        for (uint256 i = 0; i < _h.PEOPLE(); ++i) {
            free -= _vault.free(_h.person(i));
        }
        assertEq(free + leaving, 0, "HP-12: nobody else is paid");
        assertLe(_h.leastBurned(), burned + _h.flushed(), "HP-11: a slash and a lost bond burn their share");
    }

    function invariant_the_book_counts_the_games_that_are_open() public view {
        for (uint256 i = 0; i < _h.CLAIMS(); ++i) {
            assertEq(_h.bench().openGames(_h.refOf(i)), int256(_h.openGames(i)), "open games");
        }
    }

    /// @dev When all games are over, whatever is locked stands behind a claim or a committed challenge.
    function afterInvariant() public {
        _h.finish();
        invariant_a_bond_is_held_while_its_game_is_open_and_gone_when_it_is_over();
        invariant_a_winner_loses_nothing_and_a_loser_its_bond_alone();
        invariant_a_reserve_is_exactly_what_open_games_advanced_under_a_lock_that_is_gone();
        invariant_every_token_has_a_place();
        invariant_the_book_counts_the_games_that_are_open();
    }
}
