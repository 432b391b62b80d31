// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

import {Float32} from "./Float32.sol";

/// @title The scalar machine of `map` nodes: straight-line code over words, total
/// @notice Instruction: op u8, a u8, b u8, c u8, imm u32. Registers are the operands, then one per instruction; the value is the last. Each operation
/// reduces what it reads: f32 the low 32 bits with one NaN, i32 and i64 the low bits sign-extended, bool not zero. An unknown opcode gives 0, a register
/// not yet computed reads 0, malformed code has the value 0. Nothing reverts. protocol/scalar.py is the definition (docs/adr/0002-scalar-machine.md).
library ScalarMachine {
    uint256 private constant MAX_OPERANDS = 8;
    uint256 private constant MAX_BYTES = 64 * 8;
    uint256 private constant M32 = 0xffffffff;

    /// @notice The word that code computes from operand words.
    function evaluate(bytes calldata code, uint256[] calldata operands) internal pure returns (uint256) {
        unchecked {
            if (code.length % 8 != 0 || code.length > MAX_BYTES || operands.length > MAX_OPERANDS) return 0;
            uint256 count = operands.length;
            uint256[] memory registers = new uint256[](count + code.length / 8);
            for (uint256 i = 0; i < count; ++i) {
                registers[i] = operands[i];
            }
            for (uint256 at = 0; at < code.length; at += 8) {
                registers[count] = _execute(uint64(bytes8(code[at:at + 8])), registers, count);
                ++count;
            }
            return count == 0 ? 0 : registers[count - 1];
        }
    }

    function _read(uint256[] memory registers, uint256 count, uint256 r) private pure returns (uint256) {
        return r < count ? registers[r] : 0;
    }

    function _execute(uint256 instruction, uint256[] memory registers, uint256 count) private pure returns (uint256) {
        uint256 op = instruction >> 56;
        uint256 a = _read(registers, count, (instruction >> 48) & 0xff);
        if (op < 0x10) return _constantOrSelect(op, a, instruction, registers, count);
        uint256 b = _read(registers, count, (instruction >> 40) & 0xff);
        if (op < 0x20) return _float(op, a & M32, b);
        if (op < 0x30) return _convert(op, a);
        if (op < 0x40) return _int32(op, a, b);
        if (op < 0x50) return _int64(op, int64(uint64(a)), int64(uint64(b)));
        if (op == 0x50) return _bool(a != 0 && b != 0);
        if (op == 0x51) return _bool(a != 0 || b != 0);
        return _bool(op == 0x52 && a == 0);
    }

    function _constantOrSelect(uint256 op, uint256 a, uint256 instruction, uint256[] memory registers, uint256 count)
        private
        pure
        returns (uint256)
    {
        uint256 imm = instruction & M32;
        if (op == 0x01) return Float32.canonical(imm);
        if (op == 0x02 || op == 0x03) return _signed32(imm);
        if (op == 0x04) return _bool(imm != 0);
        if (op == 0x05) return _read(registers, count, (instruction >> (a != 0 ? 40 : 32)) & 0xff);
        return 0;
    }

    function _float(uint256 op, uint256 x, uint256 b) private pure returns (uint256) {
        uint256 y = b & M32;
        if (op < 0x14) {
            if (op == 0x10) return Float32.add(x, y);
            if (op == 0x11) return Float32.sub(x, y);
            if (op == 0x12) return Float32.mul(x, y);
            return Float32.div(x, y);
        }
        if (op < 0x19) {
            if (op == 0x14) return Float32.sqrt(x);
            if (op == 0x15) return Float32.neg(x);
            if (op == 0x16) return Float32.abs(x);
            return op == 0x17 ? Float32.min(x, y) : Float32.max(x, y);
        }
        if (op == 0x19) return _bool(Float32.eq(x, y));
        if (op == 0x1a) return _bool(Float32.lt(x, y));
        if (op == 0x1b) return _bool(Float32.le(x, y));
        if (op == 0x1c) return Float32.rint(x);
        if (op == 0x1d) return Float32.floor(x);
        if (op == 0x1e) return Float32.scale2(x, int256(_signed32(y)));
        return uint256(Float32.exponent(x));
    }

    function _convert(uint256 op, uint256 a) private pure returns (uint256) {
        if (op == 0x20) return Float32.fromInt(int256(_signed32(a)));
        if (op == 0x21) return uint256(Float32.toInt(a & M32, 32));
        if (op == 0x22) return Float32.fromInt(int64(uint64(a)));
        if (op == 0x23) return uint256(Float32.toInt(a & M32, 64));
        if (op == 0x24 || op == 0x25) return _signed32(a);
        if (op == 0x26) return _bool(a != 0);
        if (op == 0x27) return _bool(a & M32 != 0);
        if (op == 0x28) return _signed32(Float32.canonical(a & M32));
        if (op == 0x29) return Float32.canonical(a & M32);
        return 0;
    }

    function _int32(uint256 op, uint256 a, uint256 b) private pure returns (uint256) {
        unchecked {
            (uint256 x, uint256 y) = (a & M32, b & M32);
            if (op < 0x34) {
                if (op == 0x30) return _signed32(x + y);
                if (op == 0x31) return _signed32(x - y);
                if (op == 0x32) return _signed32(x * y);
                return _signed32((x * y) >> 32);
            }
            if (op < 0x38) {
                if (op == 0x34) return _signed32(x & y);
                if (op == 0x35) return _signed32(x | y);
                if (op == 0x36) return _signed32(x ^ y);
                return _signed32(~x);
            }
            if (op == 0x38) return _signed32(x << (y & 31));
            if (op == 0x39) return _signed32(x >> (y & 31));
            if (op == 0x3f) return _bool(x < y);
            (int256 sx, int256 sy) = (int256(_signed32(x)), int256(_signed32(y)));
            if (op == 0x3a) return uint256(sx >> (y & 31));
            if (op == 0x3b) return uint256(sx < sy ? sx : sy);
            if (op == 0x3c) return uint256(sx > sy ? sx : sy);
            if (op == 0x3d) return _bool(sx == sy);
            return _bool(sx < sy);
        }
    }

    function _int64(uint256 op, int64 x, int64 y) private pure returns (uint256) {
        unchecked {
            if (op == 0x40) return uint256(int256(x + y));
            if (op == 0x41) return uint256(int256(x - y));
            if (op == 0x42) return uint256(int256(x * y));
            if (op == 0x43) return _bool(x == y);
            if (op == 0x44) return _bool(x < y);
            return 0;
        }
    }

    function _signed32(uint256 x) private pure returns (uint256) {
        return uint256(int256(int32(uint32(x))));
    }

    function _bool(bool value) private pure returns (uint256) {
        return value ? 1 : 0;
    }
}
