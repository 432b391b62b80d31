// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

import {ECDSA} from "@openzeppelin/contracts/utils/cryptography/ECDSA.sol";
import {IERC1271} from "@openzeppelin/contracts/interfaces/IERC1271.sol";

/// @title VoucherWallet: a contract that is a payer, and says of signatures whatever it was told to say
contract VoucherWallet is IERC1271 {
    enum Mood {
        HONEST,
        DENIES,
        BURNS,
        NONSENSE,
        REVERTS
    }

    address public immutable owner;
    Mood public mood;

    error NotTheOwner(address caller);

    constructor(address owner_) {
        owner = owner_;
    }

    function behave(Mood mood_) external {
        mood = mood_;
    }

    /// @notice A call as this wallet.
    function act(address target, bytes calldata data) external {
        (bool done, bytes memory answer) = target.call(data);
        if (done) return;
        assembly ("memory-safe") {
            revert(add(answer, 32), mload(answer))
        }
    }

    function isValidSignature(bytes32 digest, bytes calldata signature) external view returns (bytes4) {
        if (mood == Mood.BURNS) while (true) {}
        if (mood == Mood.REVERTS) revert NotTheOwner(msg.sender);
        if (mood == Mood.NONSENSE) {
            assembly ("memory-safe") {
                return(0, 3)
            }
        }
        (address signer, ECDSA.RecoverError error,) = ECDSA.tryRecoverCalldata(digest, signature);
        bool signed = error == ECDSA.RecoverError.NoError && signer == owner && mood == Mood.HONEST;
        return signed ? IERC1271.isValidSignature.selector : bytes4(0);
    }
}
