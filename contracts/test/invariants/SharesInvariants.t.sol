// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

import {RunModules} from "../../interfaces/IRoundTerms.sol";
import {RunTerms} from "../../interfaces/RunTypes.sol";
import {Tenure} from "../../interfaces/ITenures.sol";
import {Ticket} from "../../interfaces/ITickets.sol";
import {ModelShares} from "../../ModelShares.sol";
import {Grants} from "../../money/Grants.sol";
import {Revenue} from "../../Revenue.sol";
import {TestToken} from "../../TestToken.sol";
import {CharterBench} from "./CharterBench.sol";
import {Handler, Invariants} from "./Handler.sol";

/// @notice Owners of shares, somebody who pays revenue in, and what credits and convicts (this contract, as payments, tenures, tickets and vault).
contract SharesHandler is Handler {
    uint256 public constant OWNERS = 4;
    uint256 public constant MAX_REVENUE = 1e24; // wei per deposit
    uint128 public constant MAX_SHARES = 1e24; // wei per grant
    uint48 public constant VESTING = 20 days;

    struct Credit {
        bytes32 id;
        address owner;
        uint128 amount;
        uint48 vestsAt;
        bool forDuties;
        bool done;
    }

    TestToken public immutable token = new TestToken();
    Grants public immutable grants;
    ModelShares public immutable shares;
    Revenue public immutable revenue;

    Credit[] private _credits;
    mapping(uint256 number => uint48) private _tenureConvictedAt;
    mapping(uint256 number => uint48) private _ticketConvictedAt;
    mapping(address owner => address) private _payees;
    mapping(address owner => uint256) public sharesOf; // wei of shares
    mapping(address owner => uint256) public paidTo; // wei of revenue
    mapping(uint256 week => uint256) private _bucketOf;
    uint256 public firstWeek;
    uint256 public lastWeek;
    uint256 public credited;
    uint256 public vested;
    uint256 public cancelled;
    uint256 public deposited;
    uint256 public claimed;
    uint256 public restreamed; // wei that had streamed while nobody held a share, and were poured into a bucket once more

    constructor() {
        vm.warp(1_800_000_000);
        firstWeek = block.timestamp / 7 days;
        CharterBench charter = new CharterBench();
        bytes memory argument = abi.encode(charter);
        RunTerms memory terms;
        RunModules memory modules;
        terms.timing.vesting = VESTING;
        terms.revenueTokens = new address[](1);
        terms.revenueTokens[0] = address(token);
        (modules.payments, modules.tenures) = (address(this), address(this));
        (modules.tickets, modules.vault) = (address(this), address(this));
        modules.shares = _place("ModelShares.sol:ModelShares", argument);
        modules.grants = _place("Grants.sol:Grants", argument);
        modules.revenue = _place("Revenue.sol:Revenue", argument);
        charter.write(terms, modules);
        shares = ModelShares(_deploy("ModelShares.sol:ModelShares", argument));
        grants = Grants(_deploy("Grants.sol:Grants", argument));
        revenue = Revenue(_deploy("Revenue.sol:Revenue", argument));
        token.approve(address(revenue), type(uint256).max);
    }

    function owner(uint256 seed) public pure returns (address) {
        return address(uint160(0x201 + seed % OWNERS));
    }

    /// @dev Every owner holds the tenure and the ticket of its number, from 1 on: 0 is none of either.
    function _number(uint256 seed) private pure returns (uint32) {
        return uint32(1 + seed % OWNERS);
    }

    /// @notice For Grants: when a tenure was convicted.
    function tenureOf(uint32 number) external view returns (Tenure memory tenure) {
        tenure.convictedAt = _tenureConvictedAt[number];
    }

    /// @notice For Grants: when a ticket was convicted.
    function ticketOf(uint32 number) external view returns (Ticket memory ticket) {
        ticket.convictedAt = _ticketConvictedAt[number];
    }

    /// @notice For Grants and Revenue: who is paid in the place of an owner.
    function payeeOf(address who) public view returns (address) {
        return _payees[who] == address(0) ? who : _payees[who];
    }

    function namePayee(uint256 seed, uint256 to) external {
        _payees[owner(seed)] = owner(to);
    }

    // --- shares

    function credit(uint256 seed, uint256 amount, bool forDuties) external {
        address who = owner(seed);
        uint128 size = uint128(bound(amount, 0, MAX_SHARES));
        uint32 tenure = forDuties ? 0 : _number(seed);
        uint32 ticket = forDuties ? _number(seed) : 0;
        bytes32 id = keccak256(abi.encode(_credits.length));
        bytes memory data = abi.encodeCall(Grants.credit, (id, who, size, tenure, ticket));
        _call(who, address(grants), data, false);
        _call(address(this), address(grants), data, true);
        _credits.push(Credit(id, who, size, uint48(block.timestamp) + VESTING, forDuties, false));
        credited += size;
    }

    function release(uint256 seed, uint256 which) external {
        if (_credits.length == 0) return;
        Credit storage grant = _credits[which % _credits.length];
        uint256 number = uint160(grant.owner) - uint160(owner(0)) + 1;
        uint48 convictedAt = grant.forDuties ? _ticketConvictedAt[number] : _tenureConvictedAt[number];
        bool falls = convictedAt != 0 && convictedAt < grant.vestsAt;
        bool may = !grant.done && (falls || block.timestamp >= grant.vestsAt);
        _call(owner(seed), address(grants), abi.encodeCall(Grants.release, (grant.id)), may);
        if (!may) return;
        grant.done = true;
        if (falls) cancelled += grant.amount;
        else _mintedNow(payeeOf(grant.owner), grant.amount);
    }

    function convict(uint256 seed, bool asAuditor) external {
        mapping(uint256 => uint48) storage convictedAt = asAuditor ? _ticketConvictedAt : _tenureConvictedAt;
        if (convictedAt[_number(seed)] == 0) convictedAt[_number(seed)] = uint48(block.timestamp);
    }

    function transfer(uint256 from, uint256 to, uint256 amount) external {
        amount = bound(amount, 0, shares.balanceOf(owner(from)) + 1);
        bool may = amount <= shares.balanceOf(owner(from));
        _call(owner(from), address(shares), abi.encodeCall(shares.transfer, (owner(to), amount)), may);
        if (may) (sharesOf[owner(from)], sharesOf[owner(to)]) = _moved(owner(from), owner(to), amount);
    }

    /// @dev What both own after a transfer; whoever sends to itself owns what it did.
    function _moved(address from, address to, uint256 amount) private view returns (uint256 left, uint256 got) {
        if (from == to) return (sharesOf[from], sharesOf[to]);
        return (sharesOf[from] - amount, sharesOf[to] + amount);
    }

    /// @dev The first share starts anew what has streamed for nobody.
    function _mintedNow(address to, uint256 amount) private {
        if (vested == 0) {
            uint256 parked = streamed();
            restreamed += parked;
            if (parked != 0) _pour(parked);
        }
        vested += amount;
        sharesOf[to] += amount;
    }

    // --- revenue

    function _pour(uint256 amount) private {
        lastWeek = block.timestamp / 7 days + 1;
        _bucketOf[lastWeek] += amount;
    }

    function pay(uint256 amount) external {
        amount = bound(amount, revenue.MIN_DEPOSIT() - 1, MAX_REVENUE);
        bool may = amount >= revenue.MIN_DEPOSIT();
        token.mint(address(this), amount);
        _call(address(this), address(revenue), abi.encodeCall(Revenue.deposit, (address(token), amount)), may);
        if (!may) return;
        _pour(amount);
        deposited += amount;
    }

    function claim(uint256 seed, uint256 by) public {
        (address who, address caller) = (owner(seed), owner(by));
        address to = payeeOf(who);
        uint256 due = revenue.claimable(address(token), who);
        uint256 before = token.balanceOf(to);
        bool may = due != 0 && (caller == who || caller == to);
        _call(caller, address(revenue), abi.encodeCall(Revenue.claimFor, (address(token), who)), may);
        _call(who, address(revenue), abi.encodeCall(Revenue.claim, (address(token))), !may && due != 0);
        assertEq(token.balanceOf(to) - before, due, "paid what was promised");
        claimed += due;
        paidTo[to] += due;
    }

    function wait(uint256 time) external {
        vm.warp(block.timestamp + bound(time, 1, 10 days));
    }

    // --- the books

    /// @notice Credited to an owner and neither vested nor cancelled.
    function pendingOf(address who) external view returns (uint256 sum) {
        for (uint256 i = 0; i < _credits.length; ++i) {
            if (_credits[i].owner == who && !_credits[i].done) sum += _credits[i].amount;
        }
    }

    /// @notice What has streamed by now, for somebody once there are shares: each week's bucket evenly over the four weeks that follow its beginning.
    function streamed() public view returns (uint256 sum) {
        for (uint256 week = firstWeek; week <= lastWeek; ++week) {
            uint256 start = week * 7 days;
            if (block.timestamp <= start) continue;
            uint256 elapsed = block.timestamp - start;
            sum += elapsed >= 4 weeks ? _bucketOf[week] : _bucketOf[week] * elapsed / 4 weeks;
        }
        sum -= restreamed;
    }

    /// @notice The end: all streams run dry, somebody surely holds a share, everybody claims.
    function finish() external onlyTest {
        this.credit(0, 1 ether, false);
        delete _tenureConvictedAt[_number(0)];
        vm.warp(block.timestamp + VESTING);
        this.release(0, _credits.length - 1);
        vm.warp(block.timestamp + 6 weeks);
        for (uint256 i = 0; i < OWNERS; ++i) {
            claim(i, i);
        }
    }
}

/// @title Shares exist once and only when vested; nobody is paid what has not streamed, and nothing that streamed is lost
contract SharesInvariants is Invariants {
    SharesHandler private _h;

    function setUp() public {
        _h = new SharesHandler();
        _handler = address(_h);
    }

    function invariant_a_credit_is_pending_or_vested_or_cancelled() public view {
        uint256 pending;
        for (uint256 i = 0; i < _h.OWNERS(); ++i) {
            address who = _h.owner(i);
            assertEq(_h.grants().pendingOf(who), _h.pendingOf(who), "pending");
            pending += _h.pendingOf(who);
        }
        assertEq(pending + _h.vested() + _h.cancelled(), _h.credited(), "credits");
    }

    function invariant_only_vested_shares_exist() public view {
        uint256 sum;
        for (uint256 i = 0; i < _h.OWNERS(); ++i) {
            sum += _h.shares().balanceOf(_h.owner(i));
        }
        assertEq(_h.shares().totalSupply(), _h.vested(), "supply");
        assertEq(sum, _h.vested(), "balances");
    }

    function invariant_shares_and_revenue_reach_nobody_but_payees() public view {
        for (uint256 i = 0; i < _h.OWNERS(); ++i) {
            address who = _h.owner(i);
            assertEq(_h.shares().balanceOf(who), _h.sharesOf(who), "shares");
            assertEq(_h.token().balanceOf(who), _h.paidTo(who), "revenue");
        }
    }

    function invariant_claims_never_exceed_what_streamed() public view {
        uint256 due;
        for (uint256 i = 0; i < _h.OWNERS(); ++i) {
            due += _h.revenue().claimable(address(_h.token()), _h.owner(i));
        }
        assertEq(_h.token().balanceOf(address(_h.revenue())), _h.deposited() - _h.claimed(), "tokens");
        assertLe(_h.claimed() + due, _h.streamed(), "streamed");
        // Parked exactly while nobody holds a share: whoever comes first finds nothing of it.
        (,, uint256 parked,,) = _h.revenue().streamOf(address(_h.token()));
        assertLe(parked, _h.vested() == 0 ? _h.streamed() : 0, "parked");
    }

    /// @dev Only claims round, and keep what they round away for the next one: less than a wei of each owner, and of the stream, is left.
    function afterInvariant() public {
        _h.finish();
        uint256 rest = _h.token().balanceOf(address(_h.revenue()));
        assertLe(rest, _h.OWNERS(), "what streamed is paid out to the wei");
    }
}
