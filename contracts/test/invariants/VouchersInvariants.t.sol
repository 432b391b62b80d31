// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

import {RunModules} from "../../interfaces/IRoundTerms.sol";
import {RunTerms} from "../../interfaces/RunTypes.sol";
import {PayerDeposit, PayerVoucher} from "../../interfaces/IVouchers.sol";
import {Revenue} from "../../Revenue.sol";
import {TestToken} from "../../TestToken.sol";
import {Vouchers} from "../../money/Vouchers.sol";
import {CharterBench} from "./CharterBench.sol";
import {Handler, Invariants} from "./Handler.sol";

/// @notice Payers with keys, gateways, strangers, and what the contract should hold of each, kept apart from it.
contract VouchersHandler is Handler {
    uint256 public constant PAYERS = 3;
    uint256 public constant GATEWAYS = 2;
    uint256 public constant WEALTH = 100_000_000; // wei of each payer at the start
    uint256 public constant PPM = 123_457; // so that nearly every redemption rounds
    uint256 public constant DELAY = 2 hours;

    TestToken public immutable token = new TestToken();
    Revenue public immutable revenue;
    Vouchers public immutable vouchers;

    mapping(address payer => mapping(address gateway => PayerDeposit)) private _books;
    mapping(address payer => mapping(address gateway => uint256)) public highestOf; // voucher ever signed
    uint256 public taken; // out of deposits, by all gateways
    uint256 public batches;
    address[PAYERS] private _payers;
    uint256 public toOwners; // owed to them, or paid
    uint256 public paidToOwners;

    constructor() {
        vm.warp(1_800_000_000);
        CharterBench charter = new CharterBench();
        bytes memory argument = abi.encode(charter);
        RunTerms memory terms;
        RunModules memory modules;
        terms.revenueTokens = new address[](1);
        terms.revenueTokens[0] = address(token);
        modules.shares = _place("ModelShares.sol:ModelShares", argument);
        modules.revenue = _place("Revenue.sol:Revenue", argument);
        charter.write(terms, modules);
        _deploy("ModelShares.sol:ModelShares", argument);
        revenue = Revenue(_deploy("Revenue.sol:Revenue", argument));
        vouchers = Vouchers(_deploy("Vouchers.sol:Vouchers", abi.encode(charter, PPM, DELAY)));
        for (uint256 i = 0; i < PAYERS; ++i) {
            _payers[i] = vm.addr(_key(i));
            token.mint(payer(i), WEALTH);
            vm.prank(payer(i));
            token.approve(address(vouchers), type(uint256).max);
        }
    }

    function payer(uint256 seed) public view returns (address) {
        return _payers[seed % PAYERS];
    }

    function gateway(uint256 seed) public pure returns (address) {
        return address(uint160(0x301 + seed % GATEWAYS));
    }

    function bookOf(address who, address at) external view returns (PayerDeposit memory) {
        return _books[who][at];
    }

    function _key(uint256 seed) private pure returns (uint256) {
        return 0xa11ce + seed % PAYERS;
    }

    // --- payers

    function deposit(uint256 from, uint256 to, uint256 at, uint256 amount) external {
        amount = bound(amount, 0, WEALTH / 10);
        (address giver, address who) = (payer(from), payer(to));
        bool may = amount != 0 && amount <= token.balanceOf(giver);
        bytes memory data = abi.encodeCall(Vouchers.deposit, (who, gateway(at), address(token), amount));
        _call(giver, address(vouchers), data, may);
        if (may) _books[who][gateway(at)].balance += uint128(amount);
    }

    function askRefund(uint256 seed, uint256 at, uint256 amount) external {
        (address who, address to) = (payer(seed), gateway(at));
        PayerDeposit storage book = _books[who][to];
        amount = bound(amount, 0, book.balance + 1);
        bool may = amount <= book.balance;
        _call(who, address(vouchers), abi.encodeCall(Vouchers.askRefund, (to, address(token), amount)), may);
        if (may) (book.asked, book.notBefore) = (uint128(amount), uint64(block.timestamp + DELAY));
    }

    function withdraw(uint256 seed, uint256 at) external {
        (address who, address to) = (payer(seed), gateway(at));
        PayerDeposit storage book = _books[who][to];
        uint256 before = token.balanceOf(who);
        bool may = book.asked != 0 && block.timestamp >= book.notBefore;
        _call(who, address(vouchers), abi.encodeCall(Vouchers.withdraw, (to, address(token))), may);
        if (!may) return;
        assertEq(token.balanceOf(who) - before, book.asked, "withdrawn");
        (book.balance, book.asked) = (book.balance - book.asked, 0);
    }

    function wait(uint256 time) external {
        vm.warp(block.timestamp + bound(time, 1, DELAY));
    }

    // --- anybody, for a gateway

    /// @dev Three vouchers: fresh, used up and uncovered ones, some for another gateway, some signed by somebody else.
    function redeem(uint256 at, uint256[3] calldata seeds) external {
        address to = gateway(at);
        PayerVoucher[] memory batch = new PayerVoucher[](3);
        uint256 wanted;
        for (uint256 i = 0; i < 3; ++i) {
            address who = payer(seeds[i]);
            PayerDeposit storage book = _books[who][to];
            uint256 amount = bound(seeds[i] >> 8, 0, book.redeemed + book.balance + 2);
            uint256 fault = (seeds[i] >> 4) % 8;
            uint256 by = fault == 0 ? seeds[i] % PAYERS + 1 : seeds[i];
            (batch[i].payer, batch[i].amount) = (who, amount);
            batch[i].signature = _signed(by, who, fault == 1 ? gateway(at % GATEWAYS + 1) : to, amount);
            if (fault >= 2) wanted += _taken(who, to, amount);
        }
        uint256 before = token.balanceOf(to);
        bytes memory data = abi.encodeCall(Vouchers.redeem, (to, address(token), batch));
        _call(payer(at), address(vouchers), data, wanted != 0);
        uint256 part = (wanted * PPM + 999_999) / 1_000_000;
        assertEq(token.balanceOf(to) - before, wanted - part, "paid");
        (taken, toOwners) = (taken + wanted, toOwners + part);
        if (wanted != 0) ++batches;
    }

    function payOwners(uint256 amount) external {
        uint256 owed = toOwners - paidToOwners;
        amount = bound(amount, 0, owed + 1);
        bool may = amount <= owed && amount >= revenue.MIN_DEPOSIT();
        _call(payer(0), address(vouchers), abi.encodeCall(Vouchers.payOwners, (address(token), amount)), may);
        if (may) paidToOwners += amount;
    }

    /// @dev What a true voucher takes, booked at once: a later one of the batch comes after it.
    function _taken(address who, address to, uint256 amount) private returns (uint256 took) {
        PayerDeposit storage book = _books[who][to];
        if (amount > highestOf[who][to]) highestOf[who][to] = amount;
        if (amount <= book.redeemed) return 0;
        took = amount - book.redeemed;
        if (took > book.balance) took = book.balance;
        book.redeemed += uint192(took);
        book.balance -= uint128(took);
        if (book.asked > book.balance) book.asked = book.balance;
    }

    function _signed(uint256 by, address who, address to, uint256 amount) private view returns (bytes memory) {
        (uint8 v, bytes32 r, bytes32 s) = vm.sign(_key(by), vouchers.digestOf(who, to, address(token), amount));
        return abi.encodePacked(r, s, v);
    }
}

/// @title Whatever payers, gateways and strangers do in whatever order: nothing is lost, and no amount is taken twice
contract VouchersInvariants is Invariants {
    VouchersHandler private _h;
    Vouchers private _vouchers;

    function setUp() public {
        _h = new VouchersHandler();
        _vouchers = _h.vouchers();
        _handler = address(_h);
    }

    function invariant_deposits_are_what_the_books_say() public view {
        for (uint256 i = 0; i < _h.PAYERS(); ++i) {
            for (uint256 k = 0; k < _h.GATEWAYS(); ++k) {
                (address who, address at) = (_h.payer(i), _h.gateway(k));
                PayerDeposit memory held = _vouchers.depositOf(who, at, address(_h.token()));
                assertEq(abi.encode(held), abi.encode(_h.bookOf(who, at)), "deposit");
                assertLe(held.asked, held.balance, "asked");
                // Attack: more taken than was ever signed, by the same voucher again.
                assertLe(held.redeemed, _h.highestOf(who, at), "cumulative");
            }
        }
    }

    function invariant_it_holds_exactly_what_it_owes() public view {
        uint256 sum = _vouchers.owedOf(address(_h.token()));
        assertEq(sum, _h.toOwners() - _h.paidToOwners(), "owners");
        for (uint256 i = 0; i < _h.PAYERS(); ++i) {
            for (uint256 k = 0; k < _h.GATEWAYS(); ++k) {
                sum += _vouchers.depositOf(_h.payer(i), _h.gateway(k), address(_h.token())).balance;
            }
        }
        assertEq(_h.token().balanceOf(address(_vouchers)), sum, "held");
    }

    function invariant_no_token_appears_or_vanishes() public view {
        uint256 sum = _h.token().balanceOf(address(_vouchers)) + _h.token().balanceOf(address(_h.revenue()));
        for (uint256 i = 0; i < _h.PAYERS(); ++i) {
            sum += _h.token().balanceOf(_h.payer(i));
        }
        uint256 gateways;
        for (uint256 k = 0; k < _h.GATEWAYS(); ++k) {
            gateways += _h.token().balanceOf(_h.gateway(k));
        }
        assertEq(sum + gateways, _h.PAYERS() * _h.WEALTH(), "tokens");
        assertEq(gateways + _h.toOwners(), _h.taken(), "what was taken has gone to gateways and owners");
        assertEq(_h.token().balanceOf(address(_h.revenue())), _h.paidToOwners(), "revenue");
    }

    function invariant_rounding_is_in_favour_of_the_owners_and_below_a_wei_a_batch() public view {
        assertLe(_h.taken() * _h.PPM(), _h.toOwners() * 1_000_000, "at least their part");
        assertLe(_h.toOwners() * 1_000_000, _h.taken() * _h.PPM() + _h.batches() * 999_999, "at most a wei more");
    }
}
