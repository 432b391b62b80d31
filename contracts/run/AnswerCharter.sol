// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

import {DutyTerms} from "../interfaces/AuditTypes.sol";
import {ClaimKind, IClaims} from "../interfaces/IClaims.sol";
import {AnswerModules, AnswerTerms, IAnswerCharter} from "../interfaces/IGateways.sol";
import {RunModules, RoundTerms, TicketTerms} from "../interfaces/IRoundTerms.sol";
import {IRunCharter} from "../interfaces/IRunCharter.sol";
import {Admitted, RunTerms} from "../interfaces/RunTypes.sol";
import {Digests} from "../libraries/Digests.sol";
import {RunBounds} from "../libraries/RunBounds.sol";
import {RunPrices} from "../libraries/RunPrices.sol";
import {RunTimes} from "../libraries/RunTimes.sol";

/// @title AnswerCharter: the terms of gateways beside a run, checked once and fixed
/// @notice Money, clocks and chain are the run's, which its own charter has checked; programs, book and bond are these. So vault, game and challenges are
/// the run's code over another charter, and nothing of the run itself is touched.
contract AnswerCharter is IRunCharter, IAnswerCharter {
    uint256 private constant PPM = 1_000_000;
    uint256 private constant MAX_VOCABULARY = 1 << 20; // of an answer program

    IRunCharter private immutable _run;
    AnswerTerms private _terms;
    AnswerModules private _modules;

    constructor(IRunCharter run_, AnswerTerms memory terms_, AnswerModules memory modules_) {
        RunTerms memory terms = run_.runTerms();
        RunBounds.checkAtMost("header", terms_.answer.header.length, RunBounds.MAX_HEADER);
        bytes32 computed = Digests.program(terms_.answer.header, terms_.answer.tree);
        if (computed != terms_.answer.root) revert ProgramMismatch(terms_.answer.root, computed);
        RunBounds.checkNotZero("window", terms_.window);
        RunBounds.checkAtMost("window", terms_.window, type(uint16).max);
        RunBounds.checkNotZero("vocabulary", terms_.vocabulary);
        RunBounds.checkAtMost("vocabulary", terms_.vocabulary, MAX_VOCABULARY);
        RunPrices.checkAmount("bond", terms_.bond, RunPrices.MAX_AMOUNT);
        // Attack: a bond whose bounty does not pay for the game, so that no false answer is worth an accusation.
        uint256 kept = uint256(terms_.bond) * terms.economics.thirdBountyPpm / (2 * PPM);
        uint256 minimum = RunTimes.minKept(terms.chain, terms.clocks.arity);
        if (kept < minimum || terms_.bond == 0) revert BountyTooSmall(kept, minimum);
        (_run, _terms, _modules) = (run_, terms_, modules_);
    }

    /// @inheritdoc IAnswerCharter
    function runCharter() external view returns (address) {
        return address(_run);
    }

    /// @inheritdoc IAnswerCharter
    function answerTerms() external view returns (AnswerTerms memory) {
        return _terms;
    }

    /// @inheritdoc IAnswerCharter
    function answerModules() external view returns (AnswerModules memory) {
        return _modules;
    }

    /// @notice Games on answers go on whatever becomes of the run: what was signed under a bond was signed.
    function isStopped() external pure returns (bool) {
        return false;
    }

    /// @inheritdoc IRunCharter
    function run() external view returns (bytes32) {
        return _run.run();
    }

    /// @inheritdoc IRunCharter
    function runTerms() external view returns (RunTerms memory) {
        return _run.runTerms();
    }

    /// @inheritdoc IRunCharter
    function roundTerms() external view returns (RoundTerms memory) {
        return _run.roundTerms();
    }

    /// @inheritdoc IRunCharter
    function dutyTerms() external view returns (DutyTerms memory) {
        return _run.dutyTerms();
    }

    /// @inheritdoc IRunCharter
    function ticketTerms() external view returns (TicketTerms memory) {
        return _run.ticketTerms();
    }

    /// @inheritdoc IRunCharter
    function roundModules() external view returns (RunModules memory all) {
        // The game asks the gate whether it is stopped, and nothing else.
        (all.charter, all.escrow, all.vault) = (address(this), address(this), _modules.vault);
        (all.game, all.challenges) = (_modules.game, _modules.challenges);
    }

    /// @inheritdoc IRunCharter
    function lockers() external view returns (address[] memory all) {
        all = new address[](3);
        (all[0], all[1], all[2]) = (_modules.gateways, _modules.game, _modules.challenges);
    }

    /// @inheritdoc IRunCharter
    function programs() external view returns (Admitted[] memory all) {
        all = new Admitted[](1);
        (all[0].program, all[0].steps) = (_terms.answer, 1);
    }

    /// @inheritdoc IRunCharter
    function programOf(bytes32 root) external view returns (bytes memory header, bytes32 tree) {
        if (root != _terms.answer.root) revert ProgramNotFound(root);
        return (_terms.answer.header, _terms.answer.tree);
    }

    /// @inheritdoc IRunCharter
    function bookOf(ClaimKind kind) external view returns (IClaims) {
        if (kind != ClaimKind.ANSWER) revert BookNotFound(kind);
        return IClaims(_modules.gateways);
    }
}
