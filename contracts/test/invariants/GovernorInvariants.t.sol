// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

import {IGovernor} from "@openzeppelin/contracts/governance/IGovernor.sol";
import {RunGovernor} from "../../run/RunGovernor.sol";
import {GovernorHandler} from "./GovernorHandler.sol";
import {Invariants} from "./Handler.sol";

/// @title Whatever owners, a guardian and strangers do in whatever order: a vote moves one of seven answers once it has passed and waited, and nothing else
contract GovernorInvariants is Invariants {
    GovernorHandler private _h;
    RunGovernor private _governor;

    function setUp() public {
        _h = new GovernorHandler();
        _governor = _h.governor();
        _handler = address(_h);
    }

    function invariant_its_answers_change_by_decisions_alone_and_within_the_charters_bounds() public view {
        assertEq(_governor.pausedUntil(), _h.pausedUntil(), "paused until");
        assertEq(_governor.votedUntil(), _h.votedUntil(), "paused by a vote until");
        assertEq(_governor.isPaused(), _h.time() < _h.pausedUntil(), "paused");
        assertEq(_governor.isSunset(), _h.isSunset(), "a sunset is final");
        assertEq(_governor.pricePpm(), _h.price(), "price");
        assertEq(_governor.guardian(), _h.guardian(), "guardian");
        assertEq(_governor.guardianPausesLeft(), _h.guardsLeft(), "pauses left");
        assertEq(_governor.isMature(), _h.isMature(), "mature");
        for (uint256 i = 0; i < _h.GATEWAYS(); ++i) {
            assertEq(_governor.isDelisted(_h.gateway(i)), _h.isDelisted(_h.gateway(i)), "listed");
        }
        assertLe(_h.LEAST_PRICE(), _governor.pricePpm(), "less than was promised");
        assertLe(_governor.pricePpm(), 1_000_000, "more than stakes follow from");
        if (_h.executions() == 0) assertFalse(_governor.isSunset() || _h.votedUntil() != 0, "nothing was decided");
    }

    function invariant_a_proposal_stands_where_its_votes_brought_it_and_nobody_votes_twice() public view {
        uint256 executed;
        for (uint256 i = 0; i < _h.proposals(); ++i) {
            (uint256 id, GovernorHandler.ProposedCall memory p) = _h.proposal(i);
            IGovernor.ProposalState state = _governor.state(id);
            assertEq(uint256(state), uint256(_h.stateOf(id)), "state");
            if (state == IGovernor.ProposalState.Executed) ++executed;
            (uint256 against, uint256 for_, uint256 abstain) = _governor.proposalVotes(id);
            assertEq(abi.encode(against, for_, abstain), abi.encode(p.tally), "votes");
            if (_h.time() <= p.snapshot) continue;
            // Attack: more weight by splitting, moving or delegating shares.
            assertLe(against + for_ + abstain, _h.supplyAt(p.snapshot), "more votes than shares");
            assertLe(against + for_ + abstain, _h.supplyAt(p.snapshot - _h.DELAY()), "more votes than shares before");
        }
        assertEq(executed, _h.executions(), "each is carried out once");
    }

    function invariant_a_run_never_stands_still_for_longer_than_both_pauses() public view {
        uint256 both = _h.LONGEST() + _h.GUARDED();
        assertLe(_governor.pausedUntil() - _h.pausedFrom(), both, "one pause after another");
        // A vote may begin when the guardian's pause is over and nobody has surely opened a round.
        assertLt(_governor.pausedUntil() - _h.stoodFrom(), both + _h.REST(), "with less than a rest between them");
    }

    function invariant_it_holds_nothing_and_calls_nobody_and_moves_no_share() public view {
        assertFalse(_h.struck(), "another contract was called");
        assertEq(address(_governor).balance, 0, "coins");
        assertEq(_h.shares().balanceOf(address(_governor)), 0, "shares of its own");
        for (uint256 i = 0; i < _h.PEOPLE(); ++i) {
            assertEq(_h.shares().balanceOf(_h.person(i)), _h.sharesOf(_h.person(i)), "shares");
        }
        assertEq(_h.shares().totalSupply(), _h.supplyAt(_h.time()), "supply");
    }
}
