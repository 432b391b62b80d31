"""What a bucket should let one member do: a policy document in the language of S3.

Names and digests are nobody's own, so members share `objects/` and `names/`; only the slot of the heartbeat has an
owner. Source: docs/adr/0057-stores.md.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import urlparse

from assay.protocol.types import Address
from assay_ledger.store.errors import StoreAddressInvalid


def member_policy(location: str, member: Address) -> dict[str, Any]:
    """Reads all, writes objects and names, replaces its own heartbeat, deletes nothing. Raises StoreAddressInvalid."""
    address = urlparse(location)
    if address.scheme not in ("s3", "s3a") or not address.netloc:
        raise StoreAddressInvalid(f"{location} is no bucket of S3: for a folder its permissions say who may write.")
    bucket, prefix = f"arn:aws:s3:::{address.netloc}", address.path.strip("/")
    below = f"{bucket}/{prefix}/" if prefix else f"{bucket}/"
    listed = {"Condition": {"StringLike": {"s3:prefix": f"{prefix}/*"}}} if prefix else {}
    written = [f"{below}objects/*", f"{below}names/*", f"{below}slots/actors/{member.hex()}"]
    return {
        "Version": "2012-10-17",
        "Statement": [
            {"Sid": "List", "Effect": "Allow", "Action": "s3:ListBucket", "Resource": bucket, **listed},
            {"Sid": "Read", "Effect": "Allow", "Action": "s3:GetObject", "Resource": f"{below}*"},
            {
                "Sid": "Write",
                "Effect": "Allow",
                "Action": ["s3:PutObject", "s3:AbortMultipartUpload"],
                "Resource": written,
            },
            {
                "Sid": "DeleteNothing",
                "Effect": "Deny",
                "Action": ["s3:DeleteObject", "s3:DeleteObjectVersion", "s3:PutBucketVersioning"],
                "Resource": [bucket, f"{below}*"],
            },
        ],
    }
