// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

import {Draws} from "../libraries/Draws.sol";
import {HashToCurve} from "../libraries/HashToCurve.sol";
import {DrawsHarness} from "./DrawsHarness.sol";
import {Test} from "./Test.sol";

/// @dev The vectors are py_ecc's; tests/unit/ledger/test_bls.py recomputes them.
contract DrawsTest is Test {
    DrawsHarness private harness;
    bytes private pk;
    bytes private y;
    bytes private message;
    string private vectors;

    function setUp() public {
        harness = new DrawsHarness();
        vectors = vm.readFile("tests/vectors/draws.json");
        pk = vm.parseJsonBytes(vectors, ".public_key");
        y = vm.parseJsonBytes(vectors, ".signature");
        message = vm.parseJsonBytes(vectors, ".message");
    }

    function test_the_suite_gives_the_point_that_rfc_9380_prints() public view {
        bytes memory point = harness.hashToG2("", bytes(vm.parseJsonString(vectors, ".rfc9380_tag")));
        assertEq(point, vm.parseJsonBytes(vectors, ".rfc9380_empty_message"), "hash_to_curve");
    }

    function test_a_genuine_signature_verifies() public view {
        assertTrue(harness.verify(pk, y, message), "genuine");
    }

    function test_any_flipped_bit_of_key_signature_or_message_is_refused(uint256 bit) public view {
        bit = bound(bit, 0, 8 * (pk.length + y.length + message.length) - 1);
        (bytes memory pk_, bytes memory y_, bytes memory m_) = (pk, y, message);
        uint256 place = bit / 8;
        bytes1 mask = bytes1(uint8(1 << (bit % 8)));
        if (place < pk_.length) pk_[place] ^= mask;
        else if (place - pk_.length < y_.length) y_[place - pk_.length] ^= mask;
        else m_[place - pk_.length - y_.length] ^= mask;
        assertFalse(harness.verify(pk_, y_, m_), "flipped");
    }

    function test_hostile_bytes_are_false_and_never_a_revert(bytes calldata key, bytes calldata ticket) public view {
        assertFalse(harness.verify(key, ticket, message), "bytes");
    }

    function test_wrong_lengths_are_refused(uint8 cut) public view {
        assertFalse(harness.verify(_resize(pk, cut), y, message), "short key");
        assertFalse(harness.verify(pk, _resize(y, cut), message), "short signature");
        assertFalse(harness.verify(bytes.concat(pk, hex"00"), y, message), "long key");
        assertFalse(harness.verify(pk, bytes.concat(y, hex"00"), message), "long signature");
    }

    /// @dev Both infinite: the pairing equation holds for every message. One infinite: it never does.
    function test_infinity_is_refused() public view {
        assertFalse(harness.verify(new bytes(128), new bytes(256), message), "both");
        assertFalse(harness.verify(new bytes(128), y, message), "key");
        assertFalse(harness.verify(pk, new bytes(256), message), "signature");
        assertFalse(harness.verifyPossession(new bytes(128), new bytes(256), address(this)), "possession");
    }

    function test_points_outside_the_subgroup_are_refused() public view {
        assertFalse(harness.verify(vm.parseJsonBytes(vectors, ".key_outside_subgroup"), y, message), "key");
        assertFalse(harness.verify(pk, vm.parseJsonBytes(vectors, ".signature_outside_subgroup"), message), "signature");
    }

    /// @dev The same point, one coordinate written as itself plus p: two encodings would be two tickets.
    function test_a_second_encoding_of_the_same_point_is_refused() public view {
        assertFalse(
            harness.verify(pk, vm.parseJsonBytes(vectors, ".signature_not_canonical"), message), "not canonical"
        );
    }

    function test_a_signature_of_one_domain_is_worthless_in_the_other() public view {
        bytes memory possession = vm.parseJsonBytes(vectors, ".same_message_as_possession");
        assertFalse(harness.verify(pk, possession, message), "domain");
    }

    /// @dev Too little gas must never look like a bad signature.
    function test_too_little_gas_reverts_and_never_answers_false(uint256 amount) public view {
        amount = bound(amount, 30_000, 450_000);
        try harness.verify{gas: amount}(pk, y, message) returns (bool valid) {
            assertTrue(valid, "answered false for want of gas");
        } catch {}
    }

    function test_a_verification_costs_less_than_a_quarter_million() public view {
        uint256 before = gasleft();
        harness.verify(pk, y, message);
        assertLt(before - gasleft(), 250_000, "gas");
    }

    function test_the_message_names_chain_contract_run_round_purpose_and_seed(bytes32 run, uint64 round, bytes32 seed)
        public
        view
    {
        bytes memory want = abi.encode(block.chainid, address(harness), run, round, uint8(2), seed);
        assertEq(harness.message(run, round, Draws.Purpose.WHISTLE, seed), want, "message");
    }

    function test_purposes_have_their_integers() public pure {
        assertEq(uint256(uint8(Draws.Purpose.AUDIT)), 1, "AUDIT");
        assertEq(uint256(uint8(Draws.Purpose.WHISTLE)), 2, "WHISTLE");
        assertEq(uint256(uint8(Draws.Purpose.TRAP)), 3, "TRAP");
    }

    function test_the_threshold_is_the_largest_integer_below_the_rational(uint32 ppm, uint96 stake, uint96 total)
        public
        view
    {
        uint256 t = harness.threshold(ppm, stake, total);
        if (total == 0) return assertEq(t, 0, "nothing staked");
        uint256 numerator = uint256(ppm) * stake;
        uint256 denominator = uint256(1_000_000) * total;
        if (numerator >= denominator) return assertEq(t, 1 << 128, "capped");
        // t <= 2^128 * numerator / denominator < t + 1, in 512 bits.
        assertTrue(_le(t, denominator, numerator) && !_le(t + 1, denominator, numerator), "floor");
    }

    function test_a_threshold_at_the_cap_draws_every_duty(bytes32 claimId, uint256 j, uint128 stake) public view {
        if (stake == 0) return assertFalse(harness.isDrawn(y, claimId, j, 2_000_000, 0, 0), "no stake");
        assertTrue(harness.isDrawn(y, claimId, j, 2_000_000, stake, stake), "above one");
        assertTrue(harness.isDrawn(y, claimId, j, 1_000_000, stake, stake), "exactly one");
        assertFalse(harness.isDrawn(y, claimId, j, 0, stake, stake), "rate zero");
    }

    function test_a_draw_compares_the_low_half_of_the_hash(bytes32 claimId, uint256 j, uint32 ppm) public view {
        bytes32 ticket = keccak256(abi.encode(y, claimId, j));
        assertEq(harness.ticket(y, claimId, j), ticket, "ticket");
        bool want = uint256(ticket) % (1 << 128) < harness.threshold(ppm, 1 ether, 3 ether);
        assertEq(harness.isDrawn(y, claimId, j, ppm, 1 ether, 3 ether), want, "draw");
    }

    function test_stakes_beyond_128_bits_are_refused() public {
        uint256 big = uint256(type(uint128).max) + 1;
        vm.expectRevert(abi.encodeWithSelector(Draws.StakeTooLarge.selector, big, big));
        harness.threshold(1, big, big);
    }

    function test_a_tag_beyond_one_length_byte_is_refused() public {
        vm.expectRevert(abi.encodeWithSelector(HashToCurve.TagTooLong.selector, 256));
        harness.expandMessage("", new bytes(256));
    }

    /// @dev t * denominator <= 2^128 * numerator, where both products fit 256 + 128 bits: compare quotients of 2^128.
    function _le(uint256 t, uint256 denominator, uint256 numerator) private pure returns (bool) {
        // denominator < 2^116, t <= 2^128: the product fits.
        uint256 product = t * denominator;
        uint256 high = product >> 128;
        return high < numerator || (high == numerator && product << 128 == 0);
    }

    function _resize(bytes memory data, uint256 length) private pure returns (bytes memory out) {
        out = new bytes(length < data.length ? length : data.length - 1);
        for (uint256 i = 0; i < out.length; ++i) {
            out[i] = data[i];
        }
    }
}
