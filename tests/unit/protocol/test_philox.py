"""Philox4x32-10 against the known answers of its authors' Random123 library."""

from assay.protocol.arithmetic.philox import philox4x32, random_word

ONES = 0xFFFFFFFF
KNOWN = (
    ((0, 0, 0, 0), (0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
    ((ONES, ONES, ONES, ONES), (ONES, ONES), (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
    (
        (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
        (0xA4093822, 0x299F31D0),
        (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
    ),
)


def test_the_block_function_gives_the_published_answers() -> None:
    for counter, key, words in KNOWN:
        assert philox4x32(counter, key) == words


def test_an_element_is_one_word_of_the_block_of_its_quarter() -> None:
    step, key, stream = (7, 1), (0x243F6A88, 3), 5
    for element in (0, 1, 2, 3, 4, 1023, (1 << 34) - 1):
        block = philox4x32((element // 4, stream, *step), key)
        assert random_word(element, stream, step, key) == block[element % 4]


def test_signed_words_from_state_slots_mean_their_bits() -> None:
    assert random_word(9, 2, (-1, -2), (-3, 4)) == random_word(9, 2, (ONES, ONES - 1), (ONES - 2, 4))
