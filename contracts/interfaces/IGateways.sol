// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

import {Program} from "./RunTypes.sol";

/// @notice What gateways of a model answer for.
struct AnswerTerms {
    Program answer; // the answer program: the forward program, and a token drawn from its logits
    bytes32 forward; // root of the forward program that statements name
    uint32 window; // W: tokens that the forward program reads
    uint32 vocabulary; // V: tokens that there are
    uint128 bond; // of each gateway, in wei
}

/// @notice The contracts of gateways beside a run, in the order of their creation after the charter.
struct AnswerModules {
    address vault;
    address gateways;
    address game;
    address challenges;
}

/// @notice What a statement says beside its run and program; equal to assay.protocol.run.answers.SaidAnswer.
struct SaidAnswer {
    bytes32 model; // root of the list of parameters
    bytes32 tokenizer; // SHA-256 of its file
    uint32[] prompt;
    uint64 seed;
    uint32 temperature; // in millionths
    uint32 topK; // 0: all
    uint32 most; // tokens that were asked for
    uint32 end; // the token that ends an answer
    uint32[] answer;
}

/// @notice What a gateway has at stake.
struct GatewayBond {
    bool isBonded;
    bool isConvicted; // for good: it bonds no more
    uint32 disputes; // open games
    uint48 until; // end of its last pledge, in seconds of chain time
}

/// @title IAnswerCharter: what the charter of gateways says beside what every charter does
interface IAnswerCharter {
    /// @notice The charter of the run beside which it stands: what statements name as their run.
    function runCharter() external view returns (address);

    function answerTerms() external view returns (AnswerTerms memory);

    function answerModules() external view returns (AnswerModules memory);
}

/// @title Bonded gateways: statements that they sign are claims, and their bond is what a false one costs
/// @notice A gateway bonds itself and pledges itself to serve a model until a time. Until then anybody may present a statement of it as a claim, one token
/// at a time, and games open on it for the run's challenge window beyond. Nobody administers the contract.
interface IGateways {
    /// @notice The gateway has no bond here, or lost it.
    /// @dev Nothing would be at stake.
    /// @custom:remedy Bond first (`assay gateway bond`); whoever was convicted takes another key.
    /// @param gateway the account
    error NotBonded(address gateway);

    /// @notice The gateway has a bond already.
    /// @custom:remedy Pledge a model (`assay inference pledge`).
    /// @param gateway the account
    error AlreadyBonded(address gateway);

    /// @notice The gateway was convicted of a false answer.
    /// @dev What it signed before could be presented again, and readers should know.
    /// @custom:remedy Take another key.
    /// @param gateway the account
    error GatewayConvicted(address gateway);

    /// @notice The bond still answers for statements, or games on them are open.
    /// @dev Else a gateway would take its bond in front of an accusation.
    /// @custom:remedy Wait until the time named, and for the games to end.
    /// @param now_ chain time of the call, in seconds
    /// @param notBefore first second of chain time at which the call goes through
    /// @param disputes open games
    error BondInUse(uint256 now_, uint256 notBefore, uint256 disputes);

    /// @notice The pledge would end no later than the one that stands.
    /// @dev Readers count on what was pledged.
    /// @custom:remedy Name a later time.
    /// @param until chain time named, in seconds
    /// @param standing end of the pledge that stands, in seconds
    error PledgeNotLonger(uint256 until, uint256 standing);

    /// @notice The pledge would end too far in the future.
    /// @dev A slip of a digit would hold a bond for years.
    /// @custom:remedy Pledge for less, and again later.
    /// @param until chain time named, in seconds
    /// @param latest latest end now, in seconds
    error PledgeTooLong(uint256 until, uint256 latest);

    /// @notice Who signed the statement has not pledged itself to serve this model, or no longer; or the signature is no one's under this statement.
    /// @dev Any other bytes, run or chain give another signer.
    /// @custom:remedy Present statements of bonded gateways while their pledge lasts (`assay inference covered`).
    /// @param signer who signed; zero where the signature is malformed
    /// @param model root of the list of parameters
    /// @param until end of its pledge, in seconds; 0 where there is none
    error NotPledged(address signer, bytes32 model, uint256 until);

    /// @notice The statement has more tokens than a claim is built of.
    /// @custom:remedy Ask for less at a time: `assay inference covered` says the most.
    /// @param tokens of prompt and answer
    /// @param maximum most tokens
    error TooManyTokens(uint256 tokens, uint256 maximum);

    /// @notice The statement says nothing of this place: the answer ends before it, as it should.
    /// @custom:remedy Name the place that `assay inference verify` finds false.
    /// @param place number of the token, from 0
    /// @param count tokens of the answer
    error NothingSaid(uint256 place, uint256 count);

    /// @notice A gateway bonded itself.
    /// @param gateway the account
    /// @param amount of the bond, in wei
    event GatewayBonded(address indexed gateway, uint256 amount);

    /// @notice A gateway took its bond back.
    /// @param gateway the account
    /// @param amount of the bond, in wei
    event GatewayUnbonded(address indexed gateway, uint256 amount);

    /// @notice A gateway pledged itself: until then its statements of the model are claims.
    /// @param gateway the account
    /// @param model root of the list of parameters
    /// @param until in seconds of chain time, inclusive
    event ModelPledged(address indexed gateway, bytes32 indexed model, uint256 until);

    /// @notice A statement was presented: one token of it is a claim, on which whoever committed to a challenge opens a game.
    /// @param claim what references to the claim name
    /// @param gateway who signed
    /// @param place number of the token, from 0
    /// @param x state root that the contract built
    /// @param y state root claimed; zero where the statement contradicts itself
    /// @param said the statement
    event AnswerAccused(
        bytes32 indexed claim, address indexed gateway, uint256 place, bytes32 x, bytes32 y, SaidAnswer said
    );

    /// @notice A gateway lost a game on a statement, and its bond.
    /// @param gateway the account
    /// @param claim of the first conviction
    event AnswerRefuted(address indexed gateway, bytes32 indexed claim);

    /// @notice Locks the caller's bond, from its free balance in the vault.
    function bond() external;

    /// @notice Releases the caller's bond once nothing that it signed can be presented or disputed any more.
    function unbond() external;

    /// @notice Pledges the caller to serve a model until a time, inclusive; a pledge only grows.
    function pledge(bytes32 model, uint48 until) external;

    /// @notice Presents a statement as a claim of its token number `place`; known claims stay as they are.
    /// @param said what was signed, beside run and program
    /// @param place number of the token; the number of tokens where the answer stops too early
    /// @param signature r, s, v of a bonded gateway
    /// @return claim what references to the claim name
    function accuse(SaidAnswer calldata said, uint32 place, bytes calldata signature) external returns (bytes32 claim);

    /// @notice What EIP-712 signs under a statement of this run and program.
    function digestOf(SaidAnswer calldata said) external view returns (bytes32);

    function bondOf(address gateway) external view returns (GatewayBond memory);

    /// @notice End of a gateway's pledge of a model, in seconds of chain time, inclusive; 0 where there is none.
    function pledgeOf(address gateway, bytes32 model) external view returns (uint48 until);

    /// @notice The lock of a gateway's bond in the vault: K("gateway", account).
    function lockOf(address gateway) external pure returns (bytes32);
}
