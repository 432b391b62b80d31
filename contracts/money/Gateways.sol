// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

import {ReentrancyGuardTransient} from "@openzeppelin/contracts/utils/ReentrancyGuardTransient.sol";
import {ECDSA} from "@openzeppelin/contracts/utils/cryptography/ECDSA.sol";
import {ClaimKind, ClaimRef, ClaimView, IClaims} from "../interfaces/IClaims.sol";
import {
    AnswerModules,
    AnswerTerms,
    GatewayBond,
    IAnswerCharter,
    IGateways,
    SaidAnswer
} from "../interfaces/IGateways.sol";
import {IRunCharter} from "../interfaces/IRunCharter.sol";
import {IVault} from "../interfaces/IVault.sol";
import {RunTerms} from "../interfaces/RunTypes.sol";
import {AnswerStates} from "../libraries/AnswerStates.sol";
import {ClaimIds} from "../libraries/ClaimIds.sol";

/// @title Gateways: who answers for what it signs, and the claims that signed statements are (assay.protocol.payments.gateway_books)
contract Gateways is IGateways, IClaims, ReentrancyGuardTransient {
    bytes32 public constant ANSWER_TYPE = keccak256(
        "Answer(address run,bytes32 model,bytes32 program,bytes32 tokenizer,uint32[] prompt,uint64 seed,uint32 temperature,uint32 topK,uint32 most,uint32 end,uint32[] answer)"
    );
    bytes32 public constant DOMAIN_TYPE = keccak256("EIP712Domain(string name,string version,uint256 chainId)");
    /// @notice Tokens of prompt and answer together of which a claim is built: 32 bytes each, so that an accusation fits into
    /// what nodes take into their pools (128 KiB) and into a transaction's gas (2^24).
    uint256 public constant MAX_TOKENS = 4000;
    /// @notice Seconds from now until a pledge ends, at most.
    uint256 public constant MAX_PLEDGE = 180 days;
    uint32 private constant STEPS = 1;

    /// @dev A statement's token, as it was presented.
    struct AnswerClaim {
        address gateway;
        bytes32 model;
        bytes32 x;
        bytes32 y;
    }

    IRunCharter public immutable charter;
    IVault private immutable _vault;
    address private immutable _runCharter;
    address private immutable _game;
    bytes32 private immutable _run;
    bytes32 private immutable _program;
    bytes32 private immutable _forward;
    uint256 private immutable _window;
    uint256 private immutable _vocabulary;
    /// @notice The bond of a gateway, in wei.
    uint256 public immutable bondSize;
    /// @notice Seconds beyond the end of a pledge in which games open on what was presented in it.
    uint256 public immutable challengeWindow;
    uint256 private immutable _bountyPpm;

    mapping(address gateway => GatewayBond) private _bonds;
    /// @inheritdoc IGateways
    mapping(address gateway => mapping(bytes32 model => uint48)) public pledgeOf;
    mapping(bytes32 id => AnswerClaim) private _claims;

    constructor(IRunCharter charter_) {
        AnswerTerms memory terms = IAnswerCharter(address(charter_)).answerTerms();
        AnswerModules memory modules = IAnswerCharter(address(charter_)).answerModules();
        RunTerms memory run = charter_.runTerms();
        (charter, _run, _runCharter) = (charter_, charter_.run(), IAnswerCharter(address(charter_)).runCharter());
        (_vault, _game) = (IVault(modules.vault), modules.game);
        (_program, _forward) = (terms.answer.root, terms.forward);
        (_window, _vocabulary, bondSize) = (terms.window, terms.vocabulary, terms.bond);
        (challengeWindow, _bountyPpm) = (run.timing.challenge, run.economics.thirdBountyPpm);
    }

    // ------------------------------------------------------------------------------------------------ gateways

    /// @inheritdoc IGateways
    function bond() external nonReentrant {
        GatewayBond storage b = _bonds[msg.sender];
        // Attack: statements of before the conviction, for which the same key would pay again, and readers who trust it.
        if (b.isConvicted) revert GatewayConvicted(msg.sender);
        if (b.isBonded) revert AlreadyBonded(msg.sender);
        b.isBonded = true;
        emit GatewayBonded(msg.sender, bondSize);
        _vault.lock(lockOf(msg.sender), msg.sender, bondSize);
    }

    /// @inheritdoc IGateways
    function unbond() external nonReentrant {
        GatewayBond storage b = _bonds[msg.sender];
        if (!b.isBonded) revert NotBonded(msg.sender);
        // Attack: lie, and take the bond in front of the accusation or out of an open game.
        uint256 notBefore = b.until == 0 ? 0 : b.until + challengeWindow + 1;
        if (block.timestamp < notBefore || b.disputes != 0) revert BondInUse(block.timestamp, notBefore, b.disputes);
        b.isBonded = false;
        emit GatewayUnbonded(msg.sender, bondSize);
        _vault.release(lockOf(msg.sender));
    }

    /// @inheritdoc IGateways
    function pledge(bytes32 model, uint48 until) external {
        GatewayBond storage b = _bonds[msg.sender];
        // Attack: a pledge that nothing stands behind.
        if (!b.isBonded) revert NotBonded(msg.sender);
        uint256 standing = pledgeOf[msg.sender][model];
        // Attack: a pledge that is shortened once an answer under it is found to be false.
        if (until <= standing) revert PledgeNotLonger(until, standing);
        if (until > block.timestamp + MAX_PLEDGE) revert PledgeTooLong(until, block.timestamp + MAX_PLEDGE);
        pledgeOf[msg.sender][model] = until;
        if (until > b.until) b.until = until;
        emit ModelPledged(msg.sender, model, until);
    }

    // ------------------------------------------------------------------------------------------------ statements

    /// @inheritdoc IGateways
    function accuse(SaidAnswer calldata said, uint32 place, bytes calldata signature) external returns (bytes32 claim) {
        uint256 tokens = said.prompt.length + said.answer.length;
        if (tokens > MAX_TOKENS) revert TooManyTokens(tokens, MAX_TOKENS);
        uint256 count = said.answer.length;
        if (place > count || (place == count && AnswerStates.isWhole(said))) revert NothingSaid(place, count);
        bytes32 digest = digestOf(said);
        // Attack: the other s, a short or a strange signature. Whoever that recovers to has pledged nothing.
        (address gateway, ECDSA.RecoverError error,) = ECDSA.tryRecoverCalldata(digest, signature);
        uint256 until = error == ECDSA.RecoverError.NoError ? pledgeOf[gateway][said.model] : 0;
        if (block.timestamp > until) revert NotPledged(gateway, said.model, until);
        if (!_bonds[gateway].isBonded) revert NotBonded(gateway);
        // Attack: a puppet that signs the same words, presents them first and falls: nobody could present them of the other any more.
        claim = keccak256(abi.encode(digest, gateway, uint256(place)));
        if (_claims[claim].gateway != address(0)) return claim;
        bytes32 x = AnswerStates.start(said, place, _window);
        bytes32 y = AnswerStates.end(said, place, _vocabulary);
        _claims[claim] = AnswerClaim(gateway, said.model, x, y);
        emit AnswerAccused(claim, gateway, place, x, y, said);
    }

    /// @inheritdoc IGateways
    function digestOf(SaidAnswer calldata said) public view returns (bytes32) {
        // Attack: a statement of a fork, of another run, or of another program, presented here.
        bytes32 domain = keccak256(abi.encode(DOMAIN_TYPE, keccak256("Assay inference"), keccak256("1"), block.chainid));
        bytes memory head = abi.encode(ANSWER_TYPE, _runCharter, said.model, _forward, said.tokenizer);
        bytes memory terms = abi.encode(said.seed, said.temperature, said.topK, said.most, said.end);
        bytes32 prompt = keccak256(abi.encodePacked(said.prompt));
        bytes32 answer = keccak256(abi.encodePacked(said.answer));
        return keccak256(abi.encodePacked(hex"1901", domain, keccak256(bytes.concat(head, prompt, terms, answer))));
    }

    /// @inheritdoc IGateways
    function bondOf(address gateway) external view returns (GatewayBond memory) {
        return _bonds[gateway];
    }

    /// @inheritdoc IGateways
    function lockOf(address gateway) public pure returns (bytes32) {
        return keccak256(abi.encode(bytes32("gateway"), gateway));
    }

    // ------------------------------------------------------------------------------------------------ claims

    /// @inheritdoc IClaims
    function claimOf(ClaimRef calldata ref) external view returns (ClaimView memory view_) {
        AnswerClaim storage claim = _claims[ref.outerRoot];
        address gateway = claim.gateway;
        if (gateway == address(0)) return view_;
        (view_.x, view_.y, view_.program, view_.steps) = (claim.x, claim.y, _program, STEPS);
        view_.claimant = gateway;
        view_.id = ClaimIds.claim(address(charter), _run, ClaimKind.ANSWER, gateway, claim.x, claim.y);
        // The same for every claim of a pledge. Attack: present one's own false statement, and let its window run out.
        view_.challengeableUntil = uint64(pledgeOf[gateway][claim.model] + challengeWindow);
        view_.lockId = lockOf(gateway);
        (, view_.lockAmount) = _vault.lockOf(view_.lockId);
        view_.fallen = !_bonds[gateway].isBonded;
        view_.bountyPpm = _bountyPpm;
    }

    /// @inheritdoc IClaims
    function mayChallengeDirectly(ClaimRef calldata, address) external pure returns (bool) {
        // Attack: an accusation copied from the mempool. Whoever committed before the statement was public comes first.
        return false;
    }

    /// @inheritdoc IClaims
    function onOpened(ClaimRef calldata ref, address) external {
        ++_disputed(ref).disputes;
    }

    /// @inheritdoc IClaims
    function onClosed(ClaimRef calldata ref, bool convicted) external returns (bool first) {
        GatewayBond storage b = _disputed(ref);
        --b.disputes;
        first = convicted && !b.isConvicted;
        if (!first) return false;
        (b.isConvicted, b.isBonded) = (true, false);
        emit AnswerRefuted(_claims[ref.outerRoot].gateway, ref.outerRoot);
    }

    /// @dev The bond that answers for a claim, for the game alone.
    function _disputed(ClaimRef calldata ref) private view returns (GatewayBond storage) {
        if (msg.sender != _game) revert NotTheGame(msg.sender);
        address gateway = _claims[ref.outerRoot].gateway;
        if (gateway == address(0)) revert ClaimNotFound(ref.kind, ref.round, ref.seat, ref.duty);
        return _bonds[gateway];
    }
}
