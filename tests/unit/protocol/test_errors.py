"""The error families: stable codes, remedies, exit codes."""

import pickle

import pytest

from assay.protocol import errors
from assay.protocol.errors import AssayError, ExitCode, UserError


def families() -> list[type[AssayError]]:
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, AssayError)]
    assert len(kinds) >= 10
    return kinds


def test_exit_codes_are_the_documented_numbers() -> None:
    assert [int(code) for code in ExitCode] == [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 130]
    assert all(code.meaning for code in ExitCode)


@pytest.mark.parametrize("kind", families(), ids=lambda kind: kind.__name__)
def test_every_family_has_a_failing_exit_code_and_survives_a_process_border(kind: type[AssayError]) -> None:
    error = kind("Port 1 is in use.", code="PortInUse", remedy="Name another with --port.", port=1)
    copy = pickle.loads(pickle.dumps(error))
    assert kind.exit_code != ExitCode.OK
    assert type(copy) is kind
    assert copy.to_json() == error.to_json()
    assert copy.details == {"port": 1}


def test_a_class_without_a_code_is_named_by_itself_and_a_given_code_wins() -> None:
    class TooManyPots(UserError):
        remedy = "Wash some."

    assert TooManyPots("Nine pots.").code == "TooManyPots"
    assert UserError("Nine pots.", code="Pots").code == "Pots"
    assert UserError("Nine pots.").code == "UserError"


def test_the_text_says_what_happened_and_what_to_do() -> None:
    assert AssayError("It broke.", remedy="Fix it.").explain() == "It broke. Fix it."
    assert str(AssayError("It broke.", remedy="Fix it.")) == "It broke."
