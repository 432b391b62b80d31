// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

import {AnswerModules, AnswerTerms} from "../interfaces/IGateways.sol";
import {IRunCharter} from "../interfaces/IRunCharter.sol";

/// @title AnswerDeployer: creates the contracts of gateways beside one run out of code that it knows by hash, and nothing else
/// @notice As RunDeployer does for a run: created by CREATE2, its address is a hash over its own creation code, the run's charter, the terms, the arbiter
/// and the hashes of all creation codes; the addresses of what it creates follow from it (CREATE, nonces 1 to 5). Whoever calls, the outcome is the same.
contract AnswerDeployer {
    /// @notice The creation code is not the one that this deployer was made for.
    /// @dev Contracts whose code could be exchanged could not be recognized by their addresses.
    /// @custom:remedy Deploy with the same release.
    /// @param index of the contract: 0 the charter, then the modules
    /// @param found keccak-256 of the code given
    /// @param wanted keccak-256 of the code that belongs there
    error WrongCode(uint256 index, bytes32 found, bytes32 wanted);

    /// @notice The terms are not those that the deployer was made for.
    /// @custom:remedy Use the deployer of these terms.
    /// @param found keccak-256 of the terms given
    /// @param wanted keccak-256 of the deployer's terms
    error WrongTerms(bytes32 found, bytes32 wanted);

    /// @notice The deployer creates its contracts in their order, each once.
    /// @dev Their addresses follow from the order.
    /// @custom:remedy Read `created`, go on from there.
    /// @param created how many contracts exist
    error NotNext(uint256 created);

    /// @notice A contract was created.
    /// @param index of the contract: 0 the charter, then the modules
    /// @param at its address
    event CreatedBeside(uint256 indexed index, address at);

    /// @notice The charter (0), and the modules in the order of `AnswerModules`.
    uint256 public constant COUNT = 5;
    uint256 private constant GAME = 3;

    IRunCharter public immutable runCharter;
    bytes32 public immutable terms;
    address public immutable arbiter;
    /// @notice How many contracts exist; the next one has this index.
    uint256 public created;
    bytes32[COUNT] private _codes;

    /// @param run_ the charter of the run beside which they stand
    /// @param terms_ keccak256(abi.encode(terms))
    /// @param arbiter_ what the game asks
    /// @param codes keccak-256 of each creation code without arguments
    constructor(IRunCharter run_, bytes32 terms_, address arbiter_, bytes32[COUNT] memory codes) {
        (runCharter, terms, arbiter, _codes) = (run_, terms_, arbiter_, codes);
    }

    /// @notice Creates the charter. Reverts with whatever its constructor says.
    function createCharter(bytes calldata code, AnswerTerms calldata terms_) external {
        if (created != 0) revert NotNext(created);
        bytes32 found = keccak256(abi.encode(terms_));
        // Attack: a stranger who begins a deployment with terms of his own.
        if (found != terms) revert WrongTerms(found, terms);
        AnswerModules memory modules = AnswerModules(addressOf(1), addressOf(2), addressOf(GAME), addressOf(4));
        _create(code, abi.encode(runCharter, terms_, modules));
    }

    /// @notice Creates the next module. Reverts with whatever its constructor says.
    function create(bytes calldata code) external {
        uint256 index = created;
        if (index == 0 || index == COUNT) revert NotNext(index);
        _create(code, index == GAME ? abi.encode(addressOf(0), arbiter) : abi.encode(addressOf(0)));
    }

    /// @notice Where the contract of an index is, or will be: keccak256(rlp([this, index + 1])).
    function addressOf(uint256 index) public view returns (address) {
        return address(uint160(uint256(keccak256(abi.encodePacked(hex"d694", address(this), uint8(index + 1))))));
    }

    function _create(bytes calldata code, bytes memory arguments) private {
        uint256 index = created++;
        // Attack: a stranger who begins a deployment with code of his own.
        if (keccak256(code) != _codes[index]) revert WrongCode(index, keccak256(code), _codes[index]);
        bytes memory init = bytes.concat(code, arguments);
        address made;
        assembly ("memory-safe") {
            made := create(0, add(init, 32), mload(init))
            if iszero(made) {
                // A reverted call takes the nonce back, so that the next try is at the same address.
                let at := mload(0x40)
                returndatacopy(at, 0, returndatasize())
                revert(at, returndatasize())
            }
        }
        emit CreatedBeside(index, made);
    }
}
