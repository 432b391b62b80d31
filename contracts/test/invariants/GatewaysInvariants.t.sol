// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

import {ClaimView} from "../../interfaces/IClaims.sol";
import {GatewayBond} from "../../interfaces/IGateways.sol";
import {GatewaysHandler} from "./GatewaysHandler.sol";
import {Invariants} from "./Handler.sol";

/// @title Whatever gateways and readers do in whatever order: a bond answers for each word that was shown, is taken once, and goes back whole to the honest
contract GatewaysInvariants is Invariants {
    GatewaysHandler private _h;

    function setUp() public {
        _h = new GatewaysHandler();
        _handler = address(_h);
    }

    function invariant_a_bond_is_locked_exactly_while_its_gateway_is_bonded() public view {
        for (uint256 i = 0; i < _h.GATEWAYS(); ++i) {
            address who = _h.gateway(i);
            GatewayBond memory bond = _h.gateways().bondOf(who);
            assertEq(abi.encode(bond), abi.encode(_h.bondOf(who)), "bond");
            (address owner, uint256 amount) = _h.vault().lockOf(_h.gateways().lockOf(who));
            assertEq(amount, bond.isBonded ? _h.BOND() : 0, "locked");
            assertEq(owner, bond.isBonded ? who : address(0), "owner");
            // Attack: games on statements of a gateway whose bond is in its pocket.
            assertTrue(bond.disputes == 0 || bond.isBonded || bond.isConvicted, "a game without a bond");
            for (uint256 k = 0; k < _h.MODELS(); ++k) {
                uint256 until = _h.gateways().pledgeOf(who, _h.model(k));
                assertEq(until, _h.pledgeOf(who, _h.model(k)), "pledge");
                assertLe(until, bond.until, "the bond answers for the longest pledge");
            }
        }
    }

    function invariant_every_token_has_a_place_and_nobody_has_more_than_the_rules_give() public view {
        (uint256 free, uint256 locked, uint256 leaving, uint256 burned) = _h.vault().totals();
        assertEq(_h.token().balanceOf(address(_h.vault())), _h.PEOPLE() * _h.WEALTH(), "tokens");
        assertEq(free + locked + leaving + burned, _h.PEOPLE() * _h.WEALTH(), "sums");
        assertEq(locked, _h.locked(), "locked");
        assertEq(burned, _h.burned(), "burned");
        for (uint256 i = 0; i < _h.PEOPLE(); ++i) {
            assertEq(_h.vault().free(_h.person(i)), _h.freeOf(_h.person(i)), "free");
        }
    }

    function invariant_a_bond_answers_for_what_was_shown_until_its_window_is_over() public view {
        for (uint256 i = 0; i < _h.claims(); ++i) {
            (GatewaysHandler.ShownAnswer memory first, ClaimView memory view_, bytes32 seen) = _h.shown(i);
            assertEq(seen, first.seen, "a claim is written once");
            // Attack: a puppet that answers for another's words.
            assertEq(view_.claimant, first.gateway, "who signed it answers for it");
            GatewayBond memory bond = _h.bondOf(first.gateway);
            assertEq(view_.challengeableUntil, _h.pledgeOf(first.gateway, first.model) + _h.WINDOW(), "window");
            assertEq(view_.fallen, !bond.isBonded, "fallen");
            assertEq(view_.lockAmount, bond.isBonded ? _h.BOND() : 0, "at stake");
            // Attack: unbond in front of the accusation.
            bool isOpen = _h.time() <= view_.challengeableUntil;
            assertTrue(!isOpen || bond.isBonded || bond.isConvicted, "a bond left while games can open");
        }
    }

    function invariant_an_honest_gateway_is_never_the_poorer() public view {
        address honest = _h.gateway(0);
        GatewayBond memory bond = _h.gateways().bondOf(honest);
        assertFalse(bond.isConvicted, "convicted");
        assertLe(_h.WEALTH(), _h.vault().free(honest) + (bond.isBonded ? _h.BOND() : 0), "poorer");
    }

    /// @dev When all games and windows are over, each bond is back or was taken, and nothing but deposits of challenges is locked.
    function afterInvariant() public {
        _h.finish();
        assertEq(_h.bondsIn(), _h.bondsBack() + _h.bondsTaken(), "each bond went back or was taken, once");
        (, uint256 locked,,) = _h.vault().totals();
        assertEq(locked, _h.pending() * _h.DEPOSIT(), "what is locked for ever");
        assertLe(_h.WEALTH(), _h.vault().free(_h.gateway(0)), "the honest gateway has its bond back");
        invariant_every_token_has_a_place_and_nobody_has_more_than_the_rules_give();
    }
}
