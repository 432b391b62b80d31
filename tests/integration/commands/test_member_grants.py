"""What a member's policy lets it do in a bucket, judged by a server that others wrote."""

from __future__ import annotations

import json
import os
import urllib.request
from collections.abc import Iterator
from importlib.util import find_spec

import pytest

from assay.protocol.types import Address
from assay_ledger.store.blobs import BlobStore, StoreDenied, open_store
from assay_ledger.store.errors import StoreAddressInvalid
from assay_ledger.store.grants import member_policy
from tests.harness.commands import assay
from tests.harness.s3_servers import running_moto

PLACE = "s3://assay/runs/one"
ME, OTHER = Address(b"\x11" * 20), Address(b"\x22" * 20)

pytestmark = pytest.mark.skipif(find_spec("moto") is None, reason="moto is not installed")


@pytest.fixture
def member(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[BlobStore]:
    """A store as a member has it; the bucket's owner put something before."""
    import boto3

    with running_moto(tmp_path_factory.mktemp("moto")):
        url = os.environ["AWS_ENDPOINT_URL"]
        owner = open_store(PLACE)
        owner.put(b"the owner's", "lists/aa")
        owner.write_slot(f"actors/{OTHER.hex()}", b"alive")
        iam = boto3.client("iam", endpoint_url=url, region_name="us-east-1")
        iam.create_user(UserName="member")
        document = json.dumps(member_policy(PLACE, ME))
        iam.put_user_policy(UserName="member", PolicyName="run", PolicyDocument=document)
        key = iam.create_access_key(UserName="member")["AccessKey"]
        request = urllib.request.Request(
            f"{url}/moto-api/reset-auth", data=b"0", headers={"Content-Type": "text/plain"}
        )
        urllib.request.urlopen(request, timeout=10).close()  # from here on every call is judged
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", key["AccessKeyId"])
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", key["SecretAccessKey"])
        yield open_store(PLACE)


def test_a_member_reads_all_adds_objects_and_replaces_its_own_heartbeat_alone(member: BlobStore) -> None:
    ((_, theirs),) = member.list("lists/aa")
    assert member.get(theirs, 100) == b"the owner's"
    mine = member.put(bytes(6 << 20), "lists/bb")  # in several parts
    assert member.get(mine, 6 << 20) == bytes(6 << 20)
    member.write_slot(f"actors/{ME.hex()}", b"alive")
    assert member.read_slot(f"actors/{OTHER.hex()}", 10) == b"alive"
    with pytest.raises(StoreDenied):
        member.write_slot(f"actors/{OTHER.hex()}", b"dead")
    for path, _ in [*member.entries("objects"), *member.entries("names"), *member.entries("slots")]:
        with pytest.raises(StoreDenied):
            member.delete(path)
    with pytest.raises(StoreDenied):
        open_store("s3://assay/runs/two").put(b"of another run")


def test_a_folder_has_permissions_and_no_policy() -> None:
    with pytest.raises(StoreAddressInvalid, match="is no bucket"):
        member_policy("/data/store", ME)


def test_the_command_prints_the_policy(monkeypatch: pytest.MonkeyPatch) -> None:
    words = ("store", "grant", "--member", "0x" + ME.hex(), "--store", PLACE)
    assert json.loads(assay(monkeypatch, *words).stdout) == member_policy(PLACE, ME)
    (found,) = json.loads(assay(monkeypatch, *words, "--json").stdout)["grants"]
    assert found == {"store": PLACE, "policy": member_policy(PLACE, ME)}
