// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

import {IBeacon} from "../interfaces/IBeacon.sol";
import {Bn254} from "./Bn254.sol";
import {HashToG1} from "./HashToG1.sol";

/// @title DrandSeed: rounds of a drand network, proven by their signatures (docs/beacon.md)
/// @notice Scheme bls-bn254-unchained-on-g1, that of drand's evmnet: the network signs keccak-256 of a round's number
/// with BLS on BN254, and a round's randomness is SHA-256 of the signature, as drand publishes it. A round has one valid
/// signature with one encoding, so whoever submits it decides nothing.
/// @dev Trusted is that fewer than the network's threshold of signers conspire: a threshold of them knows all rounds
/// beforehand. They cannot choose: key and round leave one signature. The key stays when signers change.
contract DrandSeed is IBeacon {
    /// @notice A network without a period has no rounds.
    /// @custom:remedy Give the period of the network's chain info, in seconds.
    error PeriodZero();

    /// @notice The public key is no point of its group, or infinity; or the chain has no pairing (EIP-197).
    /// @dev Under infinity every message has a signature that anybody can make.
    /// @custom:remedy Give the public key of the network's chain info: 128 bytes as four words.
    /// @param publicKey as given
    error BadPublicKey(uint256[4] publicKey);

    /// @notice This is not the network's signature of this round.
    /// @dev The pairing of signature, generator, hashed round and public key is not one.
    /// @custom:remedy Fetch the signature of exactly this round from another relay of the network.
    /// @param beaconRound number of the round
    error WrongSignature(uint64 beaconRound);

    /// @notice Domain separation tag of the scheme.
    bytes internal constant TAG = "BLS_SIG_BN254G1_XMD:KECCAK-256_SVDW_RO_NUL_";
    uint256 internal constant SIGNATURE_LENGTH = 64;

    /// @notice Time of round 1, in seconds.
    uint64 public immutable genesis;
    /// @notice Seconds from one round to the next.
    uint64 public immutable period;

    // The public key, in the order of EIP-197: x.c1, x.c0, y.c1, y.c0.
    uint256 private immutable _keyX1;
    uint256 private immutable _keyX0;
    uint256 private immutable _keyY1;
    uint256 private immutable _keyY0;

    mapping(uint64 beaconRound => bytes32) private _randomness;

    /// @param publicKey_ the network's key, in the order of EIP-197, which is the order of drand's chain info
    /// @param genesis_ its genesis time, in seconds
    /// @param period_ its period, in seconds
    constructor(uint256[4] memory publicKey_, uint64 genesis_, uint64 period_) {
        if (period_ == 0) revert PeriodZero();
        if (!Bn254.isKey(publicKey_)) revert BadPublicKey(publicKey_);
        (_keyX1, _keyX0, _keyY1, _keyY0) = (publicKey_[0], publicKey_[1], publicKey_[2], publicKey_[3]);
        (genesis, period) = (genesis_, period_);
    }

    /// @inheritdoc IBeacon
    function roundAfter(uint64 time) external view returns (uint64 beaconRound) {
        if (time < genesis) return 1;
        return (time - genesis) / period + 2;
    }

    /// @inheritdoc IBeacon
    function timeOf(uint64 beaconRound) public view returns (uint256 due) {
        if (beaconRound == 0) revert BeaconRoundZero();
        return genesis + uint256(beaconRound - 1) * period;
    }

    /// @inheritdoc IBeacon
    function submit(uint64 beaconRound, bytes calldata proof) external returns (bytes32 randomness) {
        if (_randomness[beaconRound] != 0) revert BeaconAlreadySubmitted(beaconRound);
        uint256 due = timeOf(beaconRound);
        if (block.timestamp < due) revert BeaconTooEarly(beaconRound, block.timestamp, due);
        if (proof.length != SIGNATURE_LENGTH) revert ProofLength(proof.length, SIGNATURE_LENGTH);
        (uint256 x, uint256 y) = abi.decode(proof, (uint256, uint256));
        Bn254.checkSignature(x, y);
        bytes memory message = abi.encodePacked(keccak256(abi.encodePacked(beaconRound)));
        (uint256 hashX, uint256 hashY) = HashToG1.hashToPoint(message, TAG);
        if (!Bn254.isSigned(x, y, hashX, hashY, publicKey())) revert WrongSignature(beaconRound);
        randomness = sha256(proof);
        _randomness[beaconRound] = randomness;
        emit BeaconSubmitted(beaconRound, randomness);
    }

    /// @inheritdoc IBeacon
    function randomnessOf(uint64 beaconRound) external view returns (bytes32 randomness) {
        randomness = _randomness[beaconRound];
        if (randomness == 0) revert BeaconNotSubmitted(beaconRound, timeOf(beaconRound));
    }

    /// @inheritdoc IBeacon
    function isKnown(uint64 beaconRound) external view returns (bool known) {
        return _randomness[beaconRound] != 0;
    }

    /// @notice The network's public key, in the order of EIP-197: x.c1, x.c0, y.c1, y.c0.
    function publicKey() public view returns (uint256[4] memory key) {
        return [_keyX1, _keyX0, _keyY1, _keyY0];
    }
}
