// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

import {Float32} from "./Float32.sol";

/// @title ScalarMachine: the interpreter of `map` programs, equal to assay.protocol.arithmetic.scalar.evaluate on every word
/// @notice An instruction is 8 bytes: op, a, b, c, imm (4, big-endian). Registers 0..m-1 are the operands, register m+i is
/// the result of instruction i, the value is the last register. A word holds f32 as its pattern, i32 and i64 sign-extended,
/// bool as 0 or 1; each operation reduces what it reads to the type it expects. The machine is total: an unknown opcode
/// gives 0, a register at or after the current one reads 0, and code that is no sequence of at most 64 instructions over at
/// most 8 operands has the value 0. Nothing reverts (docs/adr/0002-scalar-machine.md).
library ScalarMachine {
    uint256 internal constant MAX_OPERANDS = 8;
    uint256 internal constant MAX_CODE = 512;

    uint256 private constant _M32 = 0xffffffff;

    /// @notice The word that the code computes from operand words.
    function evaluate(bytes calldata code, uint256[] calldata operands) internal pure returns (uint256) {
        unchecked {
            uint256 m = operands.length;
            if (m > MAX_OPERANDS || code.length > MAX_CODE || code.length % 8 != 0) return 0;
            uint256 count = m + code.length / 8;
            if (count == 0) return 0;
            // Registers that are not computed yet are zero, which is what reading them gives.
            uint256[72] memory registers;
            for (uint256 i = 0; i < m; ++i) {
                registers[i] = operands[i];
            }
            for (uint256 cursor = 0; cursor < code.length; cursor += 32) {
                // four instructions, the last slice filled with zeros
                uint256 four = uint256(bytes32(code[cursor:]));
                for (uint256 i = 0; i < 4 && m < count; ++i) {
                    registers[m++] = _execute(four >> 192, registers);
                    four <<= 64;
                }
            }
            return registers[count - 1];
        }
    }

    /// @dev The word of one instruction: constants and select here, the rest by type.
    function _execute(uint256 instruction, uint256[72] memory registers) private pure returns (uint256) {
        unchecked {
            uint256 op = instruction >> 56;
            uint256 imm = instruction & _M32;
            if (op < 0x05) {
                if (op == 0x01) return Float32.canonical(imm);
                if (op == 0x02 || op == 0x03) return _i32(imm);
                return op == 0x04 && imm != 0 ? 1 : 0;
            }
            uint256 a = _read(registers, (instruction >> 48) & 0xff);
            uint256 b = _read(registers, (instruction >> 40) & 0xff);
            if (op < 0x20) {
                if (op >= 0x10) return _float(op, a, b);
                if (op == 0x05) return a != 0 ? b : _read(registers, (instruction >> 32) & 0xff);
                return 0;
            }
            if (op < 0x30) return _convert(op, a);
            if (op < 0x40) return _int32(op, a, b);
            if (op < 0x50) return _int64(op, a, b);
            if (op == 0x50) return a != 0 && b != 0 ? 1 : 0;
            if (op == 0x51) return a != 0 || b != 0 ? 1 : 0;
            return op == 0x52 && a == 0 ? 1 : 0;
        }
    }

    /// @dev 0x10 to 0x1f: binary32.
    function _float(uint256 op, uint256 a, uint256 b) private pure returns (uint256) {
        unchecked {
            if (op == 0x12) return Float32.mul(a, b);
            if (op < 0x12) return Float32.add(a, op == 0x10 ? b : b ^ Float32.SIGN);
            if (op < 0x19) {
                if (op == 0x13) return Float32.div(a, b);
                if (op == 0x14) return Float32.sqrt(a);
                if (op == 0x15) return Float32.neg(a);
                if (op == 0x16) return Float32.abs(a);
                return op == 0x17 ? Float32.min(a, b) : Float32.max(a, b);
            }
            if (op < 0x1c) {
                if (op == 0x19) return _bit(Float32.eq(a, b));
                return _bit(op == 0x1a ? Float32.lt(a, b) : Float32.le(a, b));
            }
            if (op == 0x1e) return Float32.scale2(a, int256(_i32(b)));
            if (op == 0x1c) return Float32.rint(a);
            return op == 0x1d ? Float32.floor(a) : uint256(Float32.exponentOf(a));
        }
    }

    /// @dev 0x20 to 0x2f: conversions and bit patterns.
    function _convert(uint256 op, uint256 a) private pure returns (uint256) {
        unchecked {
            if (op == 0x20) return Float32.fromInt(int256(_i32(a)));
            if (op == 0x21) return uint256(Float32.toInt(a, 32));
            if (op == 0x22) return Float32.fromInt(int256(_i64(a)));
            if (op == 0x23) return uint256(Float32.toInt(a, 64));
            if (op == 0x24 || op == 0x25) return _i32(a);
            if (op == 0x26) return _bit(a != 0);
            if (op == 0x27) return _bit(a & _M32 != 0);
            if (op == 0x28) return _i32(Float32.canonical(a));
            return op == 0x29 ? Float32.canonical(a) : 0;
        }
    }

    /// @dev 0x30 to 0x3f: i32, wrapping; shift counts are masked to 0..31.
    function _int32(uint256 op, uint256 a, uint256 b) private pure returns (uint256) {
        unchecked {
            if (op < 0x34) {
                if (op == 0x30) return _i32(a + b);
                if (op == 0x31) return _i32(a - b);
                if (op == 0x32) return _i32(a * b);
                return _i32((a & _M32) * (b & _M32) >> 32);
            }
            if (op < 0x38) {
                if (op == 0x34) return _i32(a & b);
                if (op == 0x35) return _i32(a | b);
                return op == 0x36 ? _i32(a ^ b) : _i32(~a);
            }
            if (op == 0x38) return _i32(a << (b & 31));
            if (op == 0x39) return _i32((a & _M32) >> (b & 31));
            (int256 x, int256 y) = (int256(_i32(a)), int256(_i32(b)));
            if (op == 0x3a) return uint256(x >> (b & 31));
            if (op == 0x3b) return uint256(x < y ? x : y);
            if (op == 0x3c) return uint256(x > y ? x : y);
            if (op == 0x3d) return _bit(x == y);
            return op == 0x3e ? _bit(x < y) : _bit(a & _M32 < b & _M32);
        }
    }

    /// @dev 0x40 to 0x4f: i64, wrapping.
    function _int64(uint256 op, uint256 a, uint256 b) private pure returns (uint256) {
        unchecked {
            if (op == 0x40) return _i64(a + b);
            if (op == 0x41) return _i64(a - b);
            if (op == 0x42) return _i64(a * b);
            if (op == 0x43) return _bit(_i64(a) == _i64(b));
            return op == 0x44 ? _bit(int256(_i64(a)) < int256(_i64(b))) : 0;
        }
    }

    /// @dev A register, 0 where there is none.
    function _read(uint256[72] memory registers, uint256 r) private pure returns (uint256) {
        return r < 72 ? registers[r] : 0;
    }

    /// @dev The low 32 bits, sign-extended.
    function _i32(uint256 word) private pure returns (uint256) {
        return uint256(int256(int32(uint32(word))));
    }

    /// @dev The low 64 bits, sign-extended.
    function _i64(uint256 word) private pure returns (uint256) {
        return uint256(int256(int64(uint64(word))));
    }

    /// @dev A truth value as a word.
    function _bit(bool value) private pure returns (uint256) {
        return value ? 1 : 0;
    }
}
