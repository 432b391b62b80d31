"""Every metric of every process: its name, its kind, its labels and what it says. The one place where they are named.

Names follow Prometheus' own rules: base units, `_total` for what only grows. Seconds of chain time say so.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class MetricName:
    """A metric as it is published; kind is counter, gauge or histogram. A counter's name is given with `_total`."""

    name: str
    kind: str
    text: str
    labels: tuple[str, ...] = ()


# --- any process
BUILD_INFO: Final = MetricName("assay_build_info", "gauge", "1, with this release's version.", ("version",))
PROCESS_INFO: Final = MetricName(
    "assay_process_info", "gauge", "1, with what runs here and for whom.", ("role", "run", "address")
)
ALIVE: Final = MetricName("assay_alive", "gauge", "1 while the process goes on; what /health answers.")
READY: Final = MetricName(
    "assay_ready", "gauge", "1 while a condition of readiness holds; /ready asks for all.", ("condition",)
)
TURN_AGE: Final = MetricName("assay_turn_age_seconds", "gauge", "Seconds since the loop turned or an action went on.")
RPC_REQUESTS: Final = MetricName(
    "assay_rpc_requests_total", "counter", "Requests to the node: ok, refused or unanswered.", ("method", "outcome")
)
RPC_SECONDS: Final = MetricName(
    "assay_rpc_seconds", "histogram", "Seconds that requests to the node took.", ("method",)
)
STORE_REQUESTS: Final = MetricName(
    "assay_store_requests_total", "counter", "Calls of the store: ok, missing, silent or failed.", ("kind", "outcome")
)
STORE_SECONDS: Final = MetricName(
    "assay_store_seconds", "histogram", "Seconds that calls of the store took.", ("kind",)
)

# --- what the chain says, in actors and explorers
HEAD_BLOCK: Final = MetricName("assay_head_block", "gauge", "Number of the newest block seen.")
HEAD_AGE: Final = MetricName(
    "assay_head_age_seconds", "gauge", "Seconds from the newest block's time to now, by this machine's clock."
)

# --- actors
ROUNDS_TRAINED: Final = MetricName(
    "assay_rounds_trained_total", "counter", "Commitments of this address that the chain has."
)
FINDINGS: Final = MetricName("assay_findings_total", "counter", "Findings that tickets of this address opened.")
OPEN_GAMES: Final = MetricName("assay_open_games", "gauge", "Open games that this address is a party of.")
GAMES_LOST: Final = MetricName("assay_games_lost_total", "counter", "Games that this address has lost.")
NEXT_DEADLINE: Final = MetricName(
    "assay_next_deadline_seconds",
    "gauge",
    "Seconds of chain time until the next time that the actor waits for, or its clock in a game runs out.",
)
GAS: Final = MetricName("assay_account_gas_wei", "gauge", "The chain's coin of this address, which pays for gas.")
FREE: Final = MetricName("assay_free_wei", "gauge", "Tokens of this address in the run's vault that nothing locks.")
LOCKED: Final = MetricName("assay_locked_wei", "gauge", "Tokens of this address that the run's vault locks.")
ACTIONS: Final = MetricName(
    "assay_actions_total", "counter", "Actions tried: done, refused, unavailable or failed.", ("action", "outcome")
)
REFUSALS: Final = MetricName("assay_refusals_total", "counter", "Actions refused, by the code of the error.", ("code",))

# --- servers of text: gateways and relays
SERVED_REQUESTS: Final = MetricName(
    "assay_served_requests_total",
    "counter",
    "Requests answered, by class of status; none where whoever asked left before.",
    ("status",),
)
ANSWER_SECONDS: Final = MetricName(
    "assay_answer_seconds", "histogram", "Seconds from a request for text until its answer was sent."
)
ANSWER_TOKENS: Final = MetricName("assay_answer_tokens_total", "counter", "Tokens of text given since the start.")
EARNED: Final = MetricName(
    "assay_earned_wei_total", "counter", "Money charged for answers since the start, in the token's smallest unit."
)
SIGNED: Final = MetricName(
    "assay_signed_wei_total", "counter", "Money signed for since the purse began, in the token's smallest unit."
)

# --- watches
ALARMS: Final = MetricName(
    "assay_alarms",
    "gauge",
    "Alarms that stand. Gravity: fraud, deadline, rejected, funds, network or note.",
    ("kind", "gravity"),
)
LOOK_AGE: Final = MetricName("assay_look_age_seconds", "gauge", "Seconds since a look ended.")

# --- a service of several roles
CHILD_UP: Final = MetricName(
    "assay_service_child_up", "gauge", "1 while a role's process runs; none once it is done.", ("child", "role")
)
CHILD_STARTS: Final = MetricName("assay_service_starts_total", "counter", "Starts of a role's process.", ("child",))

ALL: Final = tuple(value for value in globals().values() if isinstance(value, MetricName))
