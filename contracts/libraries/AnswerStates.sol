// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

import {SaidAnswer} from "../interfaces/IGateways.sol";
import {Digests} from "./Digests.sol";
import {Philox} from "./Philox.sol";
import {StateRoots} from "./StateRoots.sol";

/// @title AnswerStates: X and Y of a claim of an answer, from its statement (equal to assay.protocol.run.answers)
library AnswerStates {
    uint8 private constant I32 = 1;
    uint8 private constant I64 = 2;
    uint8 private constant BOOL = 3;
    uint256 private constant LEAF_TOKENS = 256; // of 1,024 bytes
    uint256 private constant UNIT = 1_000_000; // a temperature of 1, in millionths
    uint256 private constant MAX_TEMPERATURE = 100 * UNIT;
    uint256 private constant LOG2_E = 1_549_082_005; // in units of 2^-30
    uint256 private constant WEIGHTLESS = 32 << 50; // below 2^-32 a token has no weight
    uint256 private constant NO_LIMIT = (1 << 31) - 1;

    /// @notice Root of (parameters, (tokens i32 [1, W], length i32 [1]), (rates i64 [2], draw i32 [4])).
    /// @param window W
    function start(SaidAnswer calldata said, uint256 place, uint256 window) internal pure returns (bytes32) {
        return StateRoots.state3(said.model, _read(said, place, window), _draw(said, place));
    }

    /// @notice Root of ((bool [1])) that is true; or zero, in which no computation ends, where the statement contradicts itself.
    /// @param place a token of the answer, or their number
    /// @param vocabulary V
    function end(SaidAnswer calldata said, uint256 place, uint256 vocabulary) internal pure returns (bytes32) {
        if (_isOdd(said, place, vocabulary)) return 0;
        bytes32[] memory tensors = new bytes32[](1);
        tensors[0] = StateRoots.smallTensor(abi.encodePacked(BOOL, uint8(1), uint64(1)), hex"01");
        return StateRoots.state1(StateRoots.listRoot(tensors));
    }

    /// @notice Does the answer end where it should?
    function isWhole(SaidAnswer calldata said) internal pure returns (bool) {
        uint256 count = said.answer.length;
        return count == said.most || (count != 0 && said.answer[count - 1] == said.end);
    }

    /// @dev What no honest gateway signs, whatever the model says.
    function _isOdd(SaidAnswer calldata said, uint256 place, uint256 vocabulary) private pure returns (bool) {
        // Attack: an answer that stops before its end, or goes on behind it.
        if (place == said.answer.length || place >= said.most) return true;
        // Attack: terms and prompts that mean nothing, of which the program says something all the same.
        if (said.prompt.length == 0 || said.temperature > MAX_TEMPERATURE) return true;
        for (uint256 i = 0; i < said.prompt.length; ++i) {
            if (said.prompt[i] >= vocabulary) return true;
        }
        for (uint256 i = 0; i < place; ++i) {
            if (said.answer[i] == said.end || said.answer[i] >= vocabulary) return true;
        }
        return said.answer[place] >= vocabulary;
    }

    /// @dev List 1: the last W of the tokens in front of `place`, zeros behind them, and their number.
    function _read(SaidAnswer calldata said, uint256 place, uint256 window) private pure returns (bytes32) {
        uint256 all = said.prompt.length + place;
        uint256 length = all < window ? all : window;
        bytes32[] memory leaves = new bytes32[]((window + LEAF_TOKENS - 1) / LEAF_TOKENS);
        for (uint256 i = 0; i < leaves.length; ++i) {
            uint256 first = i * LEAF_TOKENS;
            uint256 size = window - first < LEAF_TOKENS ? window - first : LEAF_TOKENS;
            bytes memory leaf = new bytes(4 * size);
            for (uint256 k = 0; k < size && first + k < length; ++k) {
                _put(leaf, 4 * k, _token(said, all - length + first + k), 4);
            }
            leaves[i] = sha256(abi.encodePacked(Digests.LEAF, leaf));
        }
        bytes32[] memory tensors = new bytes32[](2);
        tensors[0] =
            Digests.tensor(abi.encodePacked(I32, uint8(2), uint64(1), uint64(window)), StateRoots.treeRoot(leaves));
        bytes memory number = new bytes(4);
        _put(number, 0, length, 4);
        tensors[1] = StateRoots.smallTensor(abi.encodePacked(I32, uint8(1), uint64(1)), number);
        return StateRoots.listRoot(tensors);
    }

    /// @dev List 2: how the token is drawn. Greedy is the draw from one token, the first of the largest.
    function _draw(SaidAnswer calldata said, uint256 place) private pure returns (bytes32) {
        uint256 rate = LOG2_E * UNIT / (said.temperature == 0 ? UNIT : said.temperature);
        bytes memory rates = new bytes(16);
        _put(rates, 0, rate, 8);
        _put(rates, 8, WEIGHTLESS / rate + 1, 8);
        uint256 limit = said.topK == 0 || said.topK > NO_LIMIT ? NO_LIMIT : said.topK;
        bytes memory words = new bytes(16);
        _put(words, 0, said.temperature == 0 ? 1 : limit, 4);
        _put(words, 4, place < said.answer.length ? said.answer[place] : 0, 4);
        // Attack: bits that the gateway may choose, until the token that it wants is drawn.
        _put(words, 8, Philox.element(0, 0, place, 0, said.seed, said.seed >> 32), 4);
        _put(words, 12, Philox.element(1, 0, place, 0, said.seed, said.seed >> 32), 4);
        bytes32[] memory tensors = new bytes32[](2);
        tensors[0] = StateRoots.smallTensor(abi.encodePacked(I64, uint8(1), uint64(2)), rates);
        tensors[1] = StateRoots.smallTensor(abi.encodePacked(I32, uint8(1), uint64(4)), words);
        return StateRoots.listRoot(tensors);
    }

    /// @dev A token of prompt and answer as one text.
    function _token(SaidAnswer calldata said, uint256 index) private pure returns (uint256) {
        uint256 before = said.prompt.length;
        return index < before ? said.prompt[index] : said.answer[index - before];
    }

    /// @dev Writes the low bytes of a value, the lowest first.
    function _put(bytes memory data, uint256 at, uint256 value, uint256 size) private pure {
        for (uint256 i = 0; i < size; ++i) {
            data[at + i] = bytes1(uint8(value >> (8 * i)));
        }
    }
}
