// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

import {Math} from "@openzeppelin/contracts/utils/math/Math.sol";
import {HashToCurve} from "./HashToCurve.sol";
import {Precompiles} from "./Precompiles.sol";

/// @title Draws: private, unique, provable sortition of duties
/// @notice A key signs the round's seed (BLS12-381: public key in G1, signature in G2). The signature is unique, so it
/// is a lottery ticket that its holder can neither choose nor have guessed; it is revealed once, checked by one pairing,
/// and decides every duty of that key in the round by hashing.
/// Keys are 128 bytes and signatures 256 bytes, EIP-2537 uncompressed; infinity is refused. The pairing precompile
/// checks that every coordinate is below p, every point on its curve and in its subgroup, so each point has exactly one
/// encoding that passes. (Of EIP-2537 the pairing and the multi-scalar multiplications check subgroups; the additions
/// do not.)
library Draws {
    /// @notice A stake is larger than the draws can count.
    /// @dev Stakes are counted in 128 bits; a vault holds less.
    /// @custom:remedy Register with less.
    /// @param stake of the account, in wei
    /// @param total of all accounts of the role, in wei
    error StakeTooLarge(uint256 stake, uint256 total);

    /// @notice What a draw is for; the message names it, so that one purpose's signature is worthless for another.
    enum Purpose {
        NONE,
        AUDIT,
        WHISTLE,
        TRAP
    }

    bytes internal constant DRAW_TAG = "ASSAY-V1-DRAW-BLS12381G2_XMD:SHA-256_SSWU_RO_";
    bytes internal constant POSSESSION_TAG = "ASSAY-V1-POP-BLS12381G2_XMD:SHA-256_SSWU_RO_";

    uint256 internal constant KEY_LENGTH = 128;
    uint256 internal constant SIGNATURE_LENGTH = 256;
    uint256 internal constant PPM = 1_000_000;
    /// @notice A threshold of 2^128 is "always": the drawn number has 128 bits.
    uint256 internal constant ALWAYS = 1 << 128;

    /// @dev EIP-2537 asks 102,900 for two pairs; see Precompiles on why this is bounded.
    uint256 internal constant PAIRING_GAS = 200_000;

    /// @dev -G1 of BLS12-381, EIP-2537 encoding: the generator's x, and p minus its y.
    bytes private constant NEGATED_G1 = hex"0000000000000000000000000000000017f1d3a73197d7942695638c4fa9ac0fc3688c4f9774b905a14e3a3f171bac586c55e83ff97a1aeffb3af00adb22c6bb"
        hex"00000000000000000000000000000000114d1d6855d545a8aa7d76c8cf2e21f267816aef1db507c96655b9d5caac42364e6f38ba0ecb751bad54dcd6b939c2ca";

    /// @notice What a drawing key signs: this chain, this contract, the run, the round, the purpose and the seed.
    function message(bytes32 run, uint64 round, Purpose purpose, bytes32 seed) internal view returns (bytes memory) {
        return abi.encode(block.chainid, address(this), run, round, purpose, seed);
    }

    /// @notice Is `y` the signature of `pk` on a draw message?
    /// @param pk public key, 128 bytes
    /// @param y signature, 256 bytes
    /// @param message_ as `message` builds it
    /// @return valid false for every malformed input; reverts only for want of gas or of EIP-2537
    function verify(bytes memory pk, bytes memory y, bytes memory message_) internal view returns (bool valid) {
        return _verify(pk, y, message_, DRAW_TAG);
    }

    /// @notice Does `proof` show that `owner` holds the secret of `pk`, for this contract on this chain?
    /// @dev Its pairing also proves that pk lies in the subgroup. Without it, a key that is the negative of a
    /// sum of others, or another's key under a new owner, could be registered.
    function verifyPossession(bytes memory pk, bytes memory proof, address owner) internal view returns (bool valid) {
        return _verify(pk, proof, abi.encode(block.chainid, address(this), owner, pk), POSSESSION_TAG);
    }

    /// @notice Is the holder of ticket `y` on duty for duty `j` of a claim?
    /// @dev The ticket itself is not checked here. A low half of the hash below a threshold of at most 2^128.
    /// @param bound what `threshold` gives for the holder's stake
    function isDrawn(bytes memory y, bytes32 claimId, uint256 j, uint256 bound) internal pure returns (bool) {
        return uint128(uint256(ticket(y, claimId, j))) < bound;
    }

    /// @notice The hash whose low 128 bits are compared with the threshold.
    function ticket(bytes memory y, bytes32 claimId, uint256 j) internal pure returns (bytes32) {
        return keccak256(abi.encode(y, claimId, j));
    }

    /// @notice floor(2^128 * min(1, ppm / 10^6 * stake / total)); zero when nothing is staked.
    /// @param ppm expected replays per duty over all keys, in parts per million; may exceed 10^6
    /// @param stake the key's stake in the round's snapshot
    /// @param total the sum of the snapshot
    function threshold(uint32 ppm, uint256 stake, uint256 total) internal pure returns (uint256) {
        if (stake > type(uint128).max || total > type(uint128).max) revert StakeTooLarge(stake, total);
        if (total == 0) return 0;
        uint256 numerator = ppm * stake;
        uint256 denominator = PPM * total;
        if (numerator >= denominator) return ALWAYS;
        return Math.mulDiv(ALWAYS, numerator, denominator);
    }

    /// @dev e(-G1, y) * e(pk, H(message)) = 1.
    function _verify(bytes memory pk, bytes memory y, bytes memory message_, bytes memory tag)
        private
        view
        returns (bool)
    {
        if (pk.length != KEY_LENGTH || y.length != SIGNATURE_LENGTH) return false;
        // Infinity for both would satisfy the equation for every message; the pairing accepts it as a point.
        if (_isZero(pk) || _isZero(y)) return false;
        bytes memory input = bytes.concat(NEGATED_G1, y, pk, HashToCurve.hashToG2(message_, tag));
        (bool ok, bytes memory output) = Precompiles.tryCall(HashToCurve.PAIRING, PAIRING_GAS, input, 32);
        return ok && abi.decode(output, (uint256)) == 1;
    }

    /// @dev Only the length is trusted: at most SIGNATURE_LENGTH bytes.
    function _isZero(bytes memory data) private pure returns (bool) {
        return keccak256(data) == keccak256(new bytes(data.length));
    }
}
