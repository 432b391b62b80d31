// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

import {RunModules} from "../interfaces/IRoundTerms.sol";
import {RunTerms} from "../interfaces/RunTypes.sol";
import {GovernanceBounds} from "../libraries/GovernanceBounds.sol";

/// @title RunDeployer: creates the contracts of one run out of code that it knows by hash, and nothing else
/// @notice Created by CREATE2, its address is a hash over its own creation code, the run, the arbiter and the hashes of all creation codes; the
/// addresses of a run's contracts follow from it (CREATE, nonces 1 to 17). Who computes these addresses from sources of his own, and finds a charter
/// and its modules there, knows what was created with which arguments: code, wiring and everything that a constructor wrote. Whoever calls, the
/// outcome is the same.
contract RunDeployer {
    /// @notice The creation code is not the one that this deployer was made for.
    /// @dev A run whose code could be exchanged could not be recognized by its addresses.
    /// @custom:remedy Deploy with the same release.
    /// @param index of the contract: 0 the charter, then the modules
    /// @param found keccak-256 of the code given
    /// @param wanted keccak-256 of the code that belongs there
    error WrongCode(uint256 index, bytes32 found, bytes32 wanted);

    /// @notice The terms are not those of the deployer's run.
    /// @custom:remedy Use the deployer of these terms: every run has its own.
    /// @param found keccak-256 of the terms given
    /// @param wanted keccak-256 of the run's terms
    error WrongTerms(bytes32 found, bytes32 wanted);

    /// @notice The deployer creates a run's contracts in their order, each once.
    /// @dev Their addresses follow from the order.
    /// @custom:remedy Read `created`, go on from there.
    /// @param created how many contracts exist
    error NotNext(uint256 created);

    /// @notice A contract of the run was created.
    /// @param index of the contract: 0 the charter, then the modules
    /// @param at its address
    event Created(uint256 indexed index, address at);

    /// @notice The charter (0), and the modules in the order of `RunModules`.
    uint256 public constant COUNT = 17;
    uint256 private constant GAME = 11;
    uint256 private constant GOVERNOR = 16;

    bytes32 public immutable run;
    address public immutable arbiter;
    /// @notice How many contracts exist; the next one has this index.
    uint256 public created;
    /// @notice Whether the charter names governance: a run of any other has no governor.
    bool public isGoverned;
    bytes32[COUNT] private _codes;

    /// @param run_ keccak256(abi.encode(terms))
    /// @param arbiter_ what the game asks
    /// @param codes keccak-256 of each creation code without arguments
    constructor(bytes32 run_, address arbiter_, bytes32[COUNT] memory codes) {
        run = run_;
        arbiter = arbiter_;
        _codes = codes;
    }

    /// @notice Creates the charter. Reverts with whatever its constructor says.
    function createCharter(bytes calldata code, RunTerms calldata terms) external {
        if (created != 0) revert NotNext(created);
        bytes32 found = keccak256(abi.encode(terms));
        // Attack: a stranger who begins a sponsor's deployment with terms of his own.
        if (found != run) revert WrongTerms(found, run);
        RunModules memory modules;
        modules.charter = addressOf(0);
        (modules.vault, modules.tickets, modules.tenures) = (addressOf(1), addressOf(2), addressOf(3));
        (modules.commitments, modules.generations, modules.duties) = (addressOf(4), addressOf(5), addressOf(6));
        (modules.attestations, modules.escrow, modules.payments) = (addressOf(7), addressOf(8), addressOf(9));
        (modules.bounties, modules.game, modules.challenges) = (addressOf(10), addressOf(GAME), addressOf(12));
        (modules.shares, modules.grants, modules.revenue) = (addressOf(13), addressOf(14), addressOf(15));
        isGoverned = GovernanceBounds.isNamed(terms.governance);
        // Attack: a governor beside a charter that promised that nobody can pause it.
        if (isGoverned) modules.governor = addressOf(GOVERNOR);
        modules.beacon = terms.beacon;
        _create(code, abi.encode(terms, modules));
    }

    /// @notice Creates the next module. Reverts with whatever its constructor says.
    function create(bytes calldata code) external {
        uint256 index = created;
        if (index == 0 || index == (isGoverned ? COUNT : GOVERNOR)) revert NotNext(index);
        _create(code, index == GAME ? abi.encode(addressOf(0), arbiter) : abi.encode(addressOf(0)));
    }

    /// @notice Where the contract of an index is, or will be: keccak256(rlp([this, index + 1])).
    function addressOf(uint256 index) public view returns (address) {
        return address(uint160(uint256(keccak256(abi.encodePacked(hex"d694", address(this), uint8(index + 1))))));
    }

    function _create(bytes calldata code, bytes memory arguments) private {
        uint256 index = created++;
        // Attack: a stranger who begins a sponsor's deployment with code of his own.
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
        emit Created(index, made);
    }
}
