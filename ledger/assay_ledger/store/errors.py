"""What can go wrong with a store. None of it is fraud: bytes that are missing or other prove nothing about anybody."""

from __future__ import annotations

import errno
from typing import Final

from assay.protocol.errors import ConfigError, UnavailableError, UsageError


class ObjectMissing(UnavailableError):
    """The store has no object of that digest."""

    remedy = "Wait for its publisher, or name another store that has it."


class ObjectTooLarge(UnavailableError):
    """The object is larger than its place in the protocol allows; none of it was kept."""

    remedy = "Its publisher is at fault: fetch it from another store."


class ObjectTruncated(UnavailableError):
    """Fewer bytes arrived than the store announced."""

    remedy = "Try again; if it stays so, fetch the object from another store."


class ObjectMismatch(UnavailableError):
    """The bytes do not hash to the digest they are stored under."""

    remedy = "The copy is damaged: fetch it from another store, or ask its publisher to put it again."


class StoreDenied(UnavailableError):
    """The store refuses this account."""

    remedy = "Check the credentials (AWS_ACCESS_KEY_ID and the like, or the folder's permissions)."


class StoreUnreachable(UnavailableError):
    """The store does not answer, or its disk or bucket fails."""

    remedy = "Check the store's address and that it is up; then try again."


class StoreFails(StoreUnreachable):
    """The store answers, and fails: its disk or bucket does, or it is what it says of one object."""


class StoreSilent(StoreUnreachable):
    """The store did not answer in time, or is not asked for a while because of that."""

    remedy = "Check that the store is up and fast enough (docs/stores.md); actors go on from their own copies."


class StorePartlySilent(ObjectMissing, StoreSilent):
    """Of several stores some did not answer, and those that did have no such object: nobody knows whether it is gone.

    Whoever puts back what is missing, or makes it anew, takes it for missing; whoever gives it up does not.
    """

    remedy = StoreSilent.remedy


class NoRoomForData(ConfigError):
    """A run's data are larger than what the disk of the data folder has room for, and than memory."""

    remedy = "Make room on the disk of the data folder, or name another one by --data-dir."


class StoreAddressInvalid(ConfigError):
    """What was given as a store is neither a folder nor a supported address."""

    remedy = "Name a folder, or an address such as s3://bucket/prefix."


class ObjectNameInvalid(UsageError):
    """A name that the index cannot hold."""

    remedy = "Use letters, digits, dots, dashes and underscores in at most 8 parts divided by slashes."


_DISK_FULL: Final = (errno.ENOSPC, errno.EDQUOT)
_REMEDIES: Final = (
    (("RequestTimeTooSkewed", "RequestExpired"), "Set this machine's clock: requests are signed with its time."),
    (("ExpiredToken", "TokenRefreshRequired"), "Get new credentials: these have run out."),
    (("QuotaExceeded", "StorageFull", "507 "), "Make room in the bucket: `assay store prune` says what is over."),
    (("NoSuchBucket",), "Check the bucket's name: there is none of it."),
    (("401 ", "403 "), StoreDenied.remedy),
)


def remedy_for(error: OSError) -> str | None:
    """What to do about what a store said; None where it said nothing that tells."""
    if error.errno in _DISK_FULL:
        return "Make room on the store's disk: `assay store prune` says what is over."
    said = str(error)
    return next((remedy for words, remedy in _REMEDIES if any(word in said for word in words)), None)


def first_line(error: BaseException) -> str:
    """The beginning of what an error says."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:300]
