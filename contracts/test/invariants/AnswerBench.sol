// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

import {GameState} from "../../interfaces/GameTypes.sol";
import {IChallenges} from "../../interfaces/IChallenges.sol";
import {ClaimKind, ClaimRef, ClaimView} from "../../interfaces/IClaims.sol";
import {IGame} from "../../interfaces/IGame.sol";
import {AnswerTerms, IGateways, SaidAnswer} from "../../interfaces/IGateways.sol";
import {RunModules} from "../../interfaces/IRoundTerms.sol";
import {IVault} from "../../interfaces/IVault.sol";
import {Program, RunTerms} from "../../interfaces/RunTypes.sol";
import {Digests} from "../../libraries/Digests.sol";
import {AnswerDeployer} from "../../run/AnswerDeployer.sol";
import {TestToken} from "../../TestToken.sol";
import {CharterBench} from "./CharterBench.sol";
import {Handler} from "./Handler.sol";

/// @title AnswerBench: the contracts of gateways beside a run, as their own deployer makes them, people with money in their vault, and what gateways sign
abstract contract AnswerBench is Handler {
    uint256 internal constant START = 1_800_000_000;
    uint256 public constant GATEWAYS = 3;
    uint256 public constant PEOPLE = 5; // these, and two who only read
    uint256 public constant MODELS = 2;
    uint256 public constant BOND = 6_001; // wei of a gateway; half of its bounty answers for one refund
    uint256 public constant BOUNTY = 3_000; // wei of it for the first winner, less what other games have advanced
    uint256 public constant STAKE = 178_000; // wei of a challenger in a game
    uint256 public constant DEPOSIT = 50; // wei
    uint256 public constant WEALTH = 12 * STAKE;
    uint256 public constant WINDOW = 1 days; // of challenges
    uint256 internal constant REORG = 10 minutes;
    uint256 internal constant REVEAL = 1 hours + REORG;
    uint256 internal constant TEXTS = 3;
    address private constant ARBITER = address(1); // no game here gets as far as asking it

    TestToken public immutable token = new TestToken();
    IVault public immutable vault;
    IGateways public immutable gateways;
    IGame public immutable game;
    IChallenges internal immutable _challenges;
    uint256 internal immutable _refund;
    address[GATEWAYS] private _gateways;

    constructor() {
        vm.warp(START);
        vm.roll(1);
        CharterBench run = new CharterBench();
        RunModules memory none;
        run.write(_terms(), none);
        AnswerTerms memory terms = _answers();
        bytes[5] memory codes;
        bytes32[5] memory hashes;
        string[5] memory names = ["AnswerCharter", "Vault", "Gateways", "Game", "Challenges"];
        for (uint256 i = 0; i < 5; ++i) {
            codes[i] = vm.getCode(string.concat(names[i], ".sol:", names[i]));
            hashes[i] = keccak256(codes[i]);
        }
        bytes memory arguments = abi.encode(run, keccak256(abi.encode(terms)), ARBITER, hashes);
        AnswerDeployer deployer = AnswerDeployer(_deploy("AnswerDeployer.sol:AnswerDeployer", arguments));
        deployer.createCharter(codes[0], terms);
        for (uint256 i = 1; i < 5; ++i) {
            deployer.create(codes[i]);
        }
        (vault, gateways) = (IVault(deployer.addressOf(1)), IGateways(deployer.addressOf(2)));
        (game, _challenges) = (IGame(deployer.addressOf(3)), IChallenges(deployer.addressOf(4)));
        _refund = game.moveRefund();
        for (uint256 i = 0; i < PEOPLE; ++i) {
            if (i < GATEWAYS) _gateways[i] = vm.addr(_key(i));
            address who = person(i);
            token.mint(who, WEALTH);
            vm.prank(who);
            token.approve(address(vault), WEALTH);
            vm.prank(who);
            vault.deposit(WEALTH);
        }
    }

    function _terms() private view returns (RunTerms memory terms) {
        terms.token = address(token);
        (terms.clocks.arity, terms.clocks.budget, terms.clocks.replay, terms.clocks.move) = (4, 100, 10, 5);
        (terms.timing.longestDispute, terms.timing.challenge) = (type(uint48).max, uint48(WINDOW));
        (terms.economics.challengeBond, terms.economics.challengeDeposit) = (uint128(STAKE), uint128(DEPOSIT));
        terms.economics.thirdBountyPpm = 500_000;
        terms.chain.reorgDepth = uint48(REORG);
    }

    function _answers() private pure returns (AnswerTerms memory) {
        // version 1, five nodes, one list of one slot in and out
        bytes memory header = hex"00010000000501000000010100000001";
        return AnswerTerms(Program(Digests.program(header, 0), 0, header), "forward", 4, 16, uint128(BOND));
    }

    function person(uint256 seed) public view returns (address) {
        seed %= PEOPLE;
        return seed < GATEWAYS ? _gateways[seed] : address(uint160(0x700 + seed));
    }

    function gateway(uint256 seed) public view returns (address) {
        return _gateways[seed % GATEWAYS];
    }

    function model(uint256 seed) public pure returns (bytes32) {
        return bytes32(1 + seed % MODELS);
    }

    function _key(uint256 seed) internal pure returns (uint256) {
        return 0x6a7e + seed % GATEWAYS;
    }

    // --- statements

    /// @dev A whole answer, one that stops early, and one with a token that there is not, each with two tokens in front of what is odd.
    function _said(uint256 text, uint256 which) internal pure returns (SaidAnswer memory said) {
        text %= TEXTS;
        (said.model, said.prompt, said.temperature) = (model(which), new uint32[](1), 1_000_000);
        (said.most, said.end, said.answer) = (3, 9, new uint32[](text == 1 ? 2 : 3));
        (said.answer[0], said.answer[1]) = (1, 2);
        if (text == 2) said.answer[2] = 99;
    }

    function _claimOf(address who, SaidAnswer memory said, uint256 place) internal view returns (bytes32) {
        return keccak256(abi.encode(gateways.digestOf(said), who, place));
    }

    function _signed(uint256 seed, SaidAnswer memory said, uint256 fault) internal view returns (bytes memory) {
        bytes32 digest = gateways.digestOf(said);
        if (fault == 0) digest = keccak256(abi.encode(digest));
        (uint8 v, bytes32 r, bytes32 s) = vm.sign(fault == 2 ? 0xdead : _key(seed), digest);
        return abi.encodePacked(r, s, fault == 1 ? 55 - v : v);
    }

    function refOf(bytes32 claim) public pure returns (ClaimRef memory ref) {
        (ref.kind, ref.outerRoot) = (ClaimKind.ANSWER, claim);
    }

    function _seen(ClaimView memory view_) internal pure returns (bytes32) {
        return keccak256(abi.encode(view_.x, view_.y, view_.claimant, view_.program, view_.steps));
    }

    // --- games

    function _place(GameState memory g) internal pure returns (bytes32) {
        return keccak256(abi.encode(g.claimId, g.stage, g.step, g.lo, g.hi, g.agreed, g.disputed));
    }

    function _commitment(uint256 salt, bytes32 claim, address who) internal pure returns (bytes32) {
        return keccak256(abi.encode(refOf(claim), bytes32("own"), bytes32(salt), who));
    }
}
