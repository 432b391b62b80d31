"""A sign an element, two thin factors, and the largest of a random eighth: what each sends, and of whose choice."""

from __future__ import annotations

import pytest
import torch

from assay.training.cocktail import GROUP, base_key, groups_of, pack_cocktail, unpack_cocktail
from assay.training.low_rank import RANK, factor_layout, pack_low_rank, unpack_low_rank
from assay.training.nibbles import MOST, bfloat16_of
from assay.training.one_bit import BLOCK, pack_signs, sign_layout, unpack_signs
from assay.training.sparse import CHUNK, SENT
from assay.training.updates import compute_update_cocktail

torch.set_num_threads(1)


def normal(*shape: int, seed: int = 1) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


# --- one bit


def test_every_element_is_received_with_its_sign_and_its_blocks_mean_magnitude() -> None:
    x = normal(2 * BLOCK)
    packed, bits = pack_signs(x)
    assert packed.numel() == x.numel() // 8 and bits.numel() == 2
    means = x.reshape(2, BLOCK).abs().mean(1, keepdim=True)
    expected = (torch.where(x < 0, -1.0, 1.0).reshape(2, BLOCK) * means).flatten()
    torch.testing.assert_close(unpack_signs(packed, bits, x.shape), expected, rtol=1 / 256, atol=0)


@pytest.mark.parametrize("size", [1, 5, 255, 257, 288])
def test_blocks_are_of_one_size_and_what_fills_them_does_not_lower_a_mean(size: int) -> None:
    count, block = sign_layout((size,))
    assert block % 8 == 0 and block <= BLOCK and count * block - size < 8 * count
    got = unpack_signs(*pack_signs(torch.full((size,), -3.0)), (size,))
    assert float(got.mean()) == pytest.approx(-3.0, rel=0.01)


# --- low rank


def test_a_matrix_of_low_rank_is_received_whole_and_one_of_rank_one_not_twice() -> None:
    for rank in (1, 2, RANK):
        x = normal(96, rank) @ normal(rank, 160, seed=2)
        left, right = pack_low_rank(x)
        assert float((unpack_low_rank(left, right, x.shape) - x).norm() / x.norm()) < 0.01
    columns = bfloat16_of(pack_low_rank(normal(96, 160))[0])
    torch.testing.assert_close(columns.t() @ columns, torch.eye(RANK), rtol=0, atol=0.02)


def test_factors_hold_more_of_a_matrix_than_columns_that_know_nothing_of_it() -> None:
    """Singular values that fall by a quarter: the best factors of rank 4 leave a third of the norm."""
    left, right = (torch.linalg.qr(normal(64, 64, seed=k))[0] for k in (1, 2))
    x = left @ torch.diag(0.75 ** torch.arange(64.0)) @ right
    best = float((0.75 ** torch.arange(4.0, 64.0)).norm())
    assert float((unpack_low_rank(*pack_low_rank(x), x.shape) - x).norm()) < 1.1 * best


def test_vectors_and_scalars_are_one_column() -> None:
    assert [factor_layout(s) for s in ((), (9,), (4, 9), (64, 8, 8))] == [(1, 1, 1), (9, 1, 1), (4, 9, 1), (64, 64, 4)]
    for x in (torch.tensor(-2.0), normal(9), torch.zeros(3)):
        torch.testing.assert_close(unpack_low_rank(*pack_low_rank(x), x.shape), x, rtol=0.02, atol=1e-6)


# --- a random eighth, the largest of that, in four bits


def test_the_64_largest_of_one_element_of_each_eight_are_sent_in_four_bits() -> None:
    x, key = normal(2 * CHUNK, seed=3), torch.tensor([5, 6], dtype=torch.int32)
    rows, bits = pack_cocktail(x, key)
    assert 4 * x.numel() / (rows.numel() + 2 * bits.numel()) > 160
    got = unpack_cocktail(rows, bits, x.shape)
    for own, sent in zip(x.reshape(2, CHUNK), got.reshape(2, -1, GROUP), strict=True):
        assert int((sent != 0).sum(1).max()) == 1 and int((sent != 0).sum()) <= SENT
        scale = float(own.abs()[sent.flatten() != 0].max()) / MOST
        assert float((own - sent.flatten())[sent.flatten() != 0].abs().max()) <= scale * (0.5 + MOST / 256)


def test_all_seats_of_a_round_offer_the_same_places_and_another_base_offers_others() -> None:
    """An update of ones beside one of threes: of equal magnitudes the earlier groups are sent."""

    def places(base: torch.Tensor, size: float) -> list[int]:
        (sent,) = compute_update_cocktail([base], [base - size])
        return unpack_cocktail(sent[0], sent[1], base.shape).nonzero()[:, 0].tolist()

    base = torch.round(normal(CHUNK, seed=4) * 8)
    first = places(base, 1.0)
    assert len(first) == SENT and [p // GROUP for p in first] == list(range(SENT))
    assert first == places(base, 3.0) != places(base + 1.0, 1.0)
    assert len({p % GROUP for p in first}) == GROUP
    assert base_key([base]).tolist() != base_key([base + 1.0]).tolist()


def test_every_element_is_offered_in_some_round() -> None:
    offered = torch.zeros(64)
    for k in range(100):
        offered += unpack_cocktail(*pack_cocktail(torch.ones(64), torch.tensor([k, 0], dtype=torch.int32)), (64,)) != 0
    assert groups_of(64) == (8, 8) and int(offered.min()) > 2 and int(offered.max()) < 30


def test_a_group_that_a_short_chunk_lacks_is_nobodys() -> None:
    rows, bits = pack_cocktail(torch.ones(16), torch.zeros(2, dtype=torch.int32))
    rows[:, :2] = 200
    assert not unpack_cocktail(rows, bits, (16,)).any()
