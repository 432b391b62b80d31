// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

import {Bn254} from "../beacon/Bn254.sol";
import {DrandSeed} from "../beacon/DrandSeed.sol";
import {PrevrandaoSeed} from "../beacon/PrevrandaoSeed.sol";
import {IBeacon} from "../interfaces/IBeacon.sol";
import {Precompiles} from "../libraries/Precompiles.sol";
import {Test} from "./Test.sol";

/// @dev The rounds were published by drand (tests/vectors/beacon.json names where); the local signer's are py_ecc's.
contract BeaconTest is Test {
    DrandSeed private evmnet;
    PrevrandaoSeed private prevrandao;
    uint64 private number;
    bytes private signature;
    bytes32 private randomness;

    function setUp() public {
        string memory vectors = vm.readFile("tests/vectors/beacon.json");
        bytes memory key = vm.parseJsonBytes(vectors, ".networks.evmnet.public_key");
        uint64 genesis = uint64(vm.parseJsonUint(vectors, ".networks.evmnet.genesis_time"));
        uint64 period = uint64(vm.parseJsonUint(vectors, ".networks.evmnet.period"));
        evmnet = new DrandSeed(abi.decode(key, (uint256[4])), genesis, period);
        prevrandao = new PrevrandaoSeed();
        number = uint64(vm.parseJsonUint(vectors, ".rounds[0].round"));
        signature = vm.parseJsonBytes(vectors, ".rounds[0].signature");
        randomness = vm.parseJsonBytes32(vectors, ".rounds[0].randomness");
        vm.warp(evmnet.timeOf(number));
        vm.prevrandao(keccak256("mix"));
    }

    function test_a_recorded_round_gives_the_randomness_that_drand_published() public {
        vm.expectEmit(true, false, false, true);
        emit IBeacon.BeaconSubmitted(number, randomness);
        assertEq(evmnet.submit(number, signature), randomness, "submit");
        assertEq(evmnet.randomnessOf(number), randomness, "randomnessOf");
        assertTrue(evmnet.isKnown(number), "isKnown");
    }

    function test_whoever_submits_a_round_decides_nothing(address who, uint64 later, bytes32 mix) public {
        vm.warp(evmnet.timeOf(number) + later);
        vm.prevrandao(mix);
        vm.prank(who);
        assertEq(evmnet.submit(number, signature), randomness, "submit");
    }

    function test_any_flipped_bit_of_a_signature_is_refused(uint256 bit) public {
        bit = bound(bit, 0, 8 * signature.length - 1);
        bytes memory flipped = signature;
        flipped[bit / 8] ^= bytes1(uint8(1 << (bit % 8)));
        _refused(number, flipped);
    }

    function test_hostile_bytes_are_refused(bytes calldata proof) public {
        _refused(number, proof);
    }

    function test_hostile_coordinates_are_refused(uint256 x, uint256 y) public {
        _refused(number, abi.encode(x, y));
    }

    function test_a_signature_is_refused_for_every_other_round(uint64 other) public {
        other = uint64(bound(other, 1, number - 1));
        vm.expectRevert(abi.encodeWithSelector(DrandSeed.WrongSignature.selector, other));
        evmnet.submit(other, signature);
    }

    function test_a_second_encoding_of_the_same_point_is_refused() public {
        (uint256 x, uint256 y) = abi.decode(signature, (uint256, uint256));
        vm.expectRevert(abi.encodeWithSelector(Bn254.CoordinateTooLarge.selector, x + Bn254.P, y));
        evmnet.submit(number, abi.encode(x + Bn254.P, y));
        vm.expectRevert(abi.encodeWithSelector(Bn254.CoordinateTooLarge.selector, x, y + Bn254.P));
        evmnet.submit(number, abi.encode(x, y + Bn254.P));
    }

    function test_infinity_is_refused() public {
        vm.expectRevert(Bn254.PointAtInfinity.selector);
        evmnet.submit(number, new bytes(64));
    }

    function test_a_round_is_refused_before_its_time(uint256 earlier) public {
        uint256 due = evmnet.timeOf(number);
        uint256 time = bound(earlier, 1, due - 1);
        vm.warp(time);
        vm.expectRevert(abi.encodeWithSelector(IBeacon.BeaconTooEarly.selector, number, time, due));
        evmnet.submit(number, signature);
    }

    function test_a_round_is_submitted_once(bytes calldata proof) public {
        evmnet.submit(number, signature);
        vm.expectRevert(abi.encodeWithSelector(IBeacon.BeaconAlreadySubmitted.selector, number));
        evmnet.submit(number, proof);
        assertEq(evmnet.randomnessOf(number), randomness, "kept");
    }

    function test_a_round_that_nobody_submitted_is_waited_for(uint64 missing) public {
        missing = missing == 0 ? 1 : missing;
        uint256 due = evmnet.timeOf(missing);
        vm.expectRevert(abi.encodeWithSelector(IBeacon.BeaconNotSubmitted.selector, missing, due));
        evmnet.randomnessOf(missing);
        vm.expectRevert(abi.encodeWithSelector(IBeacon.BeaconNotSubmitted.selector, missing, missing));
        prevrandao.randomnessOf(missing);
    }

    function test_a_deadline_names_the_first_round_later_than_itself(uint64 deadline) public view {
        deadline = uint64(bound(deadline, 0, type(uint64).max - 2));
        _namesFirstAfter(evmnet, deadline);
        _namesFirstAfter(prevrandao, deadline);
    }

    /// @dev Too little gas must never look like a wrong signature.
    function test_too_little_gas_is_never_a_verdict(uint256 amount) public {
        amount = bound(amount, 5_000, 400_000);
        try evmnet.submit{gas: amount}(number, signature) returns (bytes32 given) {
            assertEq(given, randomness, "given");
        } catch (bytes memory reason) {
            assertTrue(reason.length == 0 || bytes4(reason) == Precompiles.GasTooLow.selector, "a verdict");
            assertFalse(evmnet.isKnown(number), "half recorded");
        }
    }

    function test_a_key_with_a_flipped_bit_makes_no_beacon(uint256 bit) public {
        bit = bound(bit, 0, 1023);
        uint256[4] memory key = evmnet.publicKey();
        key[bit / 256] ^= 1 << (bit % 256);
        vm.expectRevert(abi.encodeWithSelector(DrandSeed.BadPublicKey.selector, key));
        new DrandSeed(key, 1, 1);
    }

    function test_infinity_is_no_key_and_zero_no_period() public {
        uint256[4] memory key;
        vm.expectRevert(abi.encodeWithSelector(DrandSeed.BadPublicKey.selector, key));
        new DrandSeed(key, 1, 1);
        key = evmnet.publicKey();
        vm.expectRevert(DrandSeed.PeriodZero.selector);
        new DrandSeed(key, 1, 0);
    }

    function test_prevrandao_keeps_the_mix_of_the_block_that_records(bytes32 mix, uint64 wait, bytes32 later) public {
        mix = bytes32(bound(uint256(mix), 1 << 64, type(uint256).max));
        uint64 named = prevrandao.roundAfter(uint64(block.timestamp));
        vm.warp(uint256(named) + wait);
        vm.prevrandao(mix);
        bytes32 kept = keccak256(abi.encode(mix, named));
        vm.expectEmit(true, false, false, true);
        emit IBeacon.BeaconSubmitted(named, kept);
        assertEq(prevrandao.submit(named, ""), kept, "submit");
        vm.prevrandao(later);
        vm.expectRevert(abi.encodeWithSelector(IBeacon.BeaconAlreadySubmitted.selector, named));
        prevrandao.submit(named, "");
        assertEq(prevrandao.randomnessOf(named), kept, "kept");
        assertTrue(prevrandao.isKnown(named), "isKnown");
    }

    function test_prevrandao_takes_no_proof(bytes calldata proof) public {
        if (proof.length == 0) return;
        vm.expectRevert(abi.encodeWithSelector(IBeacon.ProofLength.selector, proof.length, 0));
        prevrandao.submit(uint64(block.timestamp), proof);
    }

    function test_a_constant_is_no_mix(uint64 mix) public {
        vm.prevrandao(bytes32(uint256(mix)));
        vm.expectRevert(abi.encodeWithSelector(PrevrandaoSeed.PrevrandaoConstant.selector, mix));
        prevrandao.submit(uint64(block.timestamp), "");
    }

    function _namesFirstAfter(IBeacon beacon, uint64 deadline) private view {
        uint64 named = beacon.roundAfter(deadline);
        assertLt(deadline, beacon.timeOf(named), "not after");
        if (named > 1) assertLe(beacon.timeOf(named - 1), deadline, "not the first");
    }

    /// @dev Whatever these bytes are, they are refused and nothing is known.
    function _refused(uint64 beaconRound, bytes memory proof) private {
        try evmnet.submit(beaconRound, proof) returns (bytes32) {
            assertEq(proof, signature, "accepted");
        } catch {
            assertFalse(evmnet.isKnown(beaconRound), "half recorded");
        }
    }
}
