/**
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "forensics/forensics.h"

#include <criterion/criterion.h>
#include <string.h>

enum { SIZE = 4096 };

static uint8_t good[SIZE], bad[SIZE];
static uci_damage_diff_t diff;

static void set_up(void)
{
    uint32_t state = 1;
    size_t i;

    for (i = 0; i < SIZE; ++i) {
        state   = (state * 1103515245u) + 12345u;
        good[i] = (uint8_t)((state >> 16) | 1); /* never zero */
    }
    memcpy(bad, good, SIZE);
}

TestSuite(forensics, .init = set_up);

static void expect(uci_damage_class_t damage, size_t first, size_t last)
{
    cr_assert(uci_forensics_compare(bad, SIZE, good, SIZE, &diff));
    cr_expect(diff.damage == damage, "%s, expected %s", uci_damage_class_names[diff.damage],
              uci_damage_class_names[damage]);
    cr_expect((diff.first == first) && (diff.last == last), "bytes %zu..%zu, expected %zu..%zu", diff.first, diff.last,
              first, last);
}

Test(forensics, names)
{
    int i;

    for (i = 0; i < UCI_DAMAGE_LAST; ++i) {
        cr_assert(uci_damage_class_names[i] != NULL);
    }
}

Test(forensics, equal)
{
    cr_expect(!uci_forensics_compare(bad, SIZE, good, SIZE, &diff));
    cr_expect((diff.bytes == 0) && (diff.bits == 0));
    cr_expect(!uci_forensics_compare(bad, 0, good, 0, &diff));
}

Test(forensics, bit_flip)
{
    static const size_t places[] = {0, 1, 77, SIZE - 1};
    size_t i;

    for (i = 0; i < uci_array_size(places); ++i) {
        memcpy(bad, good, SIZE);
        bad[places[i]] ^= (uint8_t)(1 << (i * 2));
        expect(UCI_DAMAGE_BIT_FLIP, places[i], places[i]);
        cr_expect((diff.bytes == 1) && (diff.bits == 1));
    }
}

Test(forensics, burst)
{
    bad[100] ^= 0xff;
    bad[101] ^= 0x0f;
    bad[131] ^= 0x01;
    expect(UCI_DAMAGE_BURST, 100, 131);
    cr_expect((diff.bytes == 3) && (diff.bits == 13));
}

Test(forensics, two_bits_far_apart_are_no_burst)
{
    bad[0] ^= 1;
    bad[4000] ^= 1;
    expect(UCI_DAMAGE_OTHER_CONTENT, 0, 4000);
}

Test(forensics, zeros)
{
    memset(bad + 1000, 0, 500);
    expect(UCI_DAMAGE_ZEROS, 1000, 1499);
    cr_expect(diff.bytes == 500);
    memset(bad, 0, SIZE);
    expect(UCI_DAMAGE_ZEROS, 0, SIZE - 1);
}

Test(forensics, shifted)
{
    static const long shifts[] = {-64, -8, -1, 1, 3, 64};
    size_t i, k;

    for (i = 0; i < uci_array_size(shifts); ++i) {
        memcpy(bad, good, SIZE);
        for (k = 500; k < 900; ++k) {
            bad[k] = good[(size_t)((long)k + shifts[i])];
        }
        cr_assert(uci_forensics_compare(bad, SIZE, good, SIZE, &diff));
        cr_expect(diff.damage == UCI_DAMAGE_SHIFTED, "%s for a shift by %ld", uci_damage_class_names[diff.damage],
                  shifts[i]);
        cr_expect(diff.shift == shifts[i], "shift %ld, expected %ld", diff.shift, shifts[i]);
    }
}

Test(forensics, other_content)
{
    size_t i;

    for (i = 1000; i < 3000; ++i) {
        bad[i] = (uint8_t)(good[i] ^ (0x55 + (i % 7)));
    }
    cr_assert(uci_forensics_compare(bad, SIZE, good, SIZE, &diff));
    cr_expect(diff.damage == UCI_DAMAGE_OTHER_CONTENT);
}

Test(forensics, truncated)
{
    cr_assert(uci_forensics_compare(bad, 100, good, SIZE, &diff));
    cr_expect(diff.damage == UCI_DAMAGE_TRUNCATED);
    cr_expect((diff.first == 100) && (diff.last == SIZE - 1));
    cr_assert(uci_forensics_compare(bad, 0, good, 1, &diff));
    cr_expect(diff.damage == UCI_DAMAGE_TRUNCATED);
    bad[5] ^= 4;
    cr_assert(uci_forensics_compare(bad, 100, good, SIZE, &diff));
    cr_expect((diff.damage == UCI_DAMAGE_TRUNCATED) && (diff.first == 5));
}

/* More arrived than was sent: "equal as far as both go" is not equal */
Test(forensics, longer_than_sent)
{
    cr_expect(uci_forensics_compare(bad, SIZE, good, 100, &diff));
}

Test(forensics, finds_bytes_of_another_place)
{
    uint8_t whole[4096], part[32];
    size_t i, offset = 0;

    for (i = 0; i < sizeof(whole); ++i) {
        whole[i] = (uint8_t)((i * i * 31) >> 3);
    }
    memcpy(part, whole + 1000, sizeof(part));
    cr_expect(uci_forensics_locate(part, sizeof(part), whole, sizeof(whole), &offset) && (offset == 1000), "%zu",
              offset);
    part[31] ^= 1;
    cr_expect(!uci_forensics_locate(part, sizeof(part), whole, sizeof(whole), &offset));
    memset(whole, 0, sizeof(whole));
    memset(part, 0, sizeof(part));
    cr_expect(!uci_forensics_locate(part, sizeof(part), whole, sizeof(whole), &offset), "zeros are everywhere");
    cr_expect(!uci_forensics_locate(part, 0, whole, sizeof(whole), &offset));
    cr_expect(!uci_forensics_locate("12345678", 8, whole, 0, &offset));
}
