/* SPDX-License-Identifier: BSD-3-Clause */
#include "forensics.h"

#include <string.h>

#define UCI_FORENSICS_BURST     64
#define UCI_FORENSICS_MAX_SHIFT 64
#define UCI_FORENSICS_DISTINCT  8

const char *const uci_damage_class_names[UCI_DAMAGE_LAST] = {"unknown",   "bit flip", "burst",        "zeros",
                                                             "truncated", "shifted",  "other content"};

static void uci_forensics_count(const uint8_t *bad, const uint8_t *good, size_t length, uci_damage_diff_t *diff)
{
    size_t i;

    for (i = 0; i < length; ++i) {
        if (bad[i] != good[i]) {
            if (diff->bytes == 0) {
                diff->first = i;
            }
            diff->last = i;
            diff->bytes += 1;
            diff->bits += (size_t)__builtin_popcount((unsigned)(bad[i] ^ good[i]));
        }
    }
}

static bool uci_forensics_is_zero(const uint8_t *bad, const uci_damage_diff_t *diff)
{
    size_t i;

    for (i = diff->first; i <= diff->last; ++i) {
        if (bad[i] != 0) {
            return false;
        }
    }
    return true;
}

/* The damaged range holds the right bytes of a place at most 64 bytes away */
static bool uci_forensics_is_shifted(const uint8_t *bad, const uint8_t *good, size_t length, uci_damage_diff_t *diff)
{
    size_t n = diff->last - diff->first + 1;
    long shift;

    for (shift = -UCI_FORENSICS_MAX_SHIFT; shift <= UCI_FORENSICS_MAX_SHIFT; ++shift) {
        if ((shift == 0) || ((long)diff->first + shift < 0) || ((long)diff->last + shift >= (long)length)) {
            continue;
        }
        if (memcmp(bad + diff->first, good + (long)diff->first + shift, n) == 0) {
            diff->shift = shift;
            return true;
        }
    }
    return false;
}

static uci_damage_class_t uci_forensics_classify(const uint8_t *bad, const uint8_t *good, size_t length,
                                                 uci_damage_diff_t *diff)
{
    if (diff->bits == 1) {
        return UCI_DAMAGE_BIT_FLIP;
    }
    if ((diff->bytes > 1) && uci_forensics_is_zero(bad, diff)) {
        return UCI_DAMAGE_ZEROS;
    }
    if ((diff->bytes > 8) && uci_forensics_is_shifted(bad, good, length, diff)) {
        return UCI_DAMAGE_SHIFTED;
    }
    return (diff->last - diff->first < UCI_FORENSICS_BURST) ? UCI_DAMAGE_BURST : UCI_DAMAGE_OTHER_CONTENT;
}

bool uci_forensics_compare(const void *bad, size_t bad_length, const void *good, size_t good_length,
                           uci_damage_diff_t *diff_p)
{
    size_t length = uci_min(bad_length, good_length);

    memset(diff_p, 0, sizeof(*diff_p));
    uci_forensics_count(bad, good, length, diff_p);
    if (bad_length < good_length) {
        if (diff_p->bytes == 0) {
            diff_p->first = bad_length;
        }
        diff_p->last   = good_length - 1;
        diff_p->damage = UCI_DAMAGE_TRUNCATED;
        return true;
    }
    if (diff_p->bytes == 0) {
        if (bad_length == good_length) {
            return false;
        }
        /* more arrived than was sent */
        diff_p->first  = good_length;
        diff_p->last   = bad_length - 1;
        diff_p->damage = UCI_DAMAGE_OTHER_CONTENT;
        return true;
    }
    diff_p->damage = uci_forensics_classify(bad, good, length, diff_p);
    return true;
}

/* Are there so many different bytes that to find them says something? */
static bool uci_forensics_is_distinct(const uint8_t *bytes, size_t length)
{
    uint8_t seen[256] = {0};
    size_t i, count = 0;

    for (i = 0; i < length; ++i) {
        count += (seen[bytes[i]] == 0);
        seen[bytes[i]] = 1;
    }
    return count >= UCI_FORENSICS_DISTINCT;
}

bool uci_forensics_locate(const void *part, size_t part_length, const void *whole, size_t length, size_t *offset_p)
{
    const char *found;

    if ((part_length < UCI_FORENSICS_DISTINCT) || !uci_forensics_is_distinct(part, part_length)) {
        return false;
    }
    found = memmem(whole, length, part, part_length);
    if (found == NULL) {
        return false;
    }
    *offset_p = (size_t)(found - (const char *)whole);
    return true;
}
