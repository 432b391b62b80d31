// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.30;

/// @title Governance: all that a vote of a run's shares can reach, and what the run's other contracts ask of it
/// @notice A vote moves one of these answers and nothing else: no stake, lock, game, clock, verdict, claim or exit depends on them.
interface IGovernance {
    /// @notice The proposal is not one call of the governor to itself, of a kind that a charter admits.
    /// @dev A vote that could call anything could take everything.
    /// @custom:remedy Propose one of the decisions that `assay govern propose` lists.
    error NotADecision();

    /// @notice Too few rounds are final, or too few shares have vested, for a vote to speak for the run.
    /// @dev Whoever owned the first shares would decide for all who come after.
    /// @custom:remedy Wait for rounds to become final and for shares to vest; then call `mature`, if nobody did.
    /// @param vested shares that exist, in wei of shares
    /// @param leastVested of which a vote needs so many, in wei of shares
    /// @param isMature whether the charter's number of rounds was shown to be final
    error TooEarlyToGovern(uint256 vested, uint256 leastVested, bool isMature);

    /// @notice The generation does not show that enough rounds are final.
    /// @custom:remedy Name a final generation of at least the charter's number.
    /// @param generation that was named
    /// @param least number of a generation that shows it
    error NotMature(uint64 generation, uint256 least);

    /// @notice The pause is of no length, or longer than the charter admits.
    /// @dev A run that stands still for longer could be wound down.
    /// @custom:remedy Propose a shorter pause, or a sunset.
    /// @param length in seconds
    /// @param most in seconds
    error PauseOutOfBounds(uint256 length, uint256 most);

    /// @notice A pause came too soon after the last one.
    /// @dev Between pauses a round can open: a run that stood still through several could be wound down.
    /// @custom:remedy Call again at the time named.
    /// @param now_ chain time of the call, in seconds
    /// @param notBefore first second of chain time at which a pause can begin
    error PauseTooSoon(uint256 now_, uint256 notBefore);

    /// @notice Only the run's guardian pauses without a vote.
    /// @custom:remedy Propose a pause.
    /// @param caller who called
    error NotTheGuardian(address caller);

    /// @notice The guardian has used all its pauses.
    /// @dev A guardian that could pause for ever would be a sponsor that could stop the run.
    /// @custom:remedy Propose a pause.
    error NoPausesLeft();

    /// @notice No pause is on that could be ended.
    /// @custom:remedy None: rounds open.
    error NotPaused();

    /// @notice The price is outside of the charter's bounds.
    /// @dev Stakes are priced for the charter's price, and whoever joined was promised its least.
    /// @custom:remedy Propose a price between the bounds.
    /// @param ppm of the charter's price of a unit, in parts per million
    /// @param least in parts per million
    /// @param most in parts per million
    error PriceOutOfBounds(uint256 ppm, uint256 least, uint256 most);

    /// @notice The run's sunset is decided already.
    /// @custom:remedy None: it cannot be taken back, nor decided twice.
    error AlreadySunset();

    /// @notice A successor can be named only once the run has ended.
    /// @custom:remedy Wait until the run is over or wound down.
    error RunNotFinished();

    /// @notice The decision cannot be carried out yet.
    /// @dev Whoever dislikes a decision has the time lock to leave the run.
    /// @custom:remedy Execute it from the time named on.
    /// @param now_ chain time of the call, in seconds
    /// @param notBefore first second of chain time at which it can be executed
    error TimelockRuns(uint256 now_, uint256 notBefore);

    /// @notice The charter's number of rounds is final: votes count once enough shares have vested.
    /// @param generation that showed it
    event Matured(uint64 generation);

    /// @notice No new round opens for a while. All else goes on.
    /// @param until first second of chain time at which rounds open again
    /// @param byGuardian whether the guardian did it, else a vote
    event RoundsPaused(uint48 until, bool byGuardian);

    /// @notice A vote ended a pause before its time.
    event RoundsResumed();

    /// @notice No new round opens ever again, and no new deposit of a user is taken: the run ends as if it had expired.
    event SunsetDecided();

    /// @notice Rounds that open from now on pay another part of the charter's price of a unit.
    /// @param ppm of the charter's price, in parts per million
    event PriceChanged(uint32 ppm);

    /// @notice The contract of vouchers takes new deposits for a gateway no longer, or again.
    /// @param gateway its account
    /// @param isDelisted whether it takes none
    event GatewayListed(address indexed gateway, bool isDelisted);

    /// @notice The guardian was dismissed for good.
    event GuardianDismissed();

    /// @notice The owners of an ended run named the run that follows it. It binds nobody.
    /// @param charter of the run that follows
    event SuccessorNamed(address indexed charter);

    /// @notice Shows that the charter's number of rounds is final. Anybody may call, once is enough.
    /// @param generation one that is final, of the charter's number at least
    function mature(uint64 generation) external;

    /// @notice The guardian only: pauses new rounds for the charter's length. It expires by itself.
    function guardianPause() external;

    /// @notice By vote only: pauses new rounds for a length in seconds, at most the charter's.
    function pause(uint48 length) external;

    /// @notice By vote only: ends a pause, the guardian's too.
    function resume() external;

    /// @notice By vote only, for good: no round opens any more, and no deposit of a user is taken.
    function sunset() external;

    /// @notice By vote only: what later rounds pay for a unit, in parts per million of the charter's price.
    function setPrice(uint32 ppm) external;

    /// @notice By vote only: whether the contract of vouchers takes new deposits for a gateway.
    function list(address gateway, bool isDelisted_) external;

    /// @notice By vote only, for good.
    function dismissGuardian() external;

    /// @notice By vote only, once the run has ended: names the charter of the run that follows.
    function nameSuccessor(address charter_) external;

    /// @notice Does no new round open at this moment, by a pause?
    function isPaused() external view returns (bool);

    /// @notice Was the sunset decided?
    function isSunset() external view returns (bool);

    /// @notice Part of the charter's price of a unit that a round that opens now pays, in parts per million.
    function pricePpm() external view returns (uint32);

    function isDelisted(address gateway) external view returns (bool);
}
