/* SPDX-License-Identifier: BSD-3-Clause */
#include "util/parse_size.h"

#include <criterion/criterion.h>

Test(parse_size, all)
{
    static const struct {
        const char *text;
        bool allow_auto;
        bool good;
        size_t size;
    } cases[] = {
            {"0", false, true, 0},
            {"8192", false, true, 8192},
            {"8192b", false, true, 8192},
            {"64k", false, true, 65536},
            {"64KB", false, true, 65536},
            {"1m", false, true, 1u << 20},
            {"2Mb", false, true, 2u << 20},
            {"3g", false, true, 3ul << 30},
            {"1GB", false, true, 1ul << 30},
            {"auto", true, true, UCI_SIZE_AUTO},
            {"AUTO", true, true, UCI_SIZE_AUTO},
            {"auto", false, false, 0},
            {"", false, false, 0},
            {"k", false, false, 0},
            {"-1", false, false, 0},
            {"+1", false, false, 0},
            {" 1", false, false, 0},
            {"1 k", false, false, 0},
            {"1.5k", false, false, 0},
            {"0x10", false, false, 0},
            {"1kk", false, false, 0},
            {"1t", false, false, 0},
            {"18446744073709551615", true, false, 0}, /* that would read as auto */
            {"18446744073709551616", false, false, 0},
            {"17179869184g", false, false, 0},
    };
    uci_status_t status;
    size_t i, size;

    for (i = 0; i < uci_array_size(cases); ++i) {
        size   = 12345;
        status = uci_parse_size(cases[i].text, cases[i].allow_auto, &size);
        cr_expect(status == (cases[i].good ? UCI_OK : UCI_ERR_INVALID_PARAM), "'%s'", cases[i].text);
        cr_expect(size == (cases[i].good ? cases[i].size : 12345), "'%s' is %zu", cases[i].text, size);
    }
}

Test(parse_size, text)
{
    char text[24];

    cr_expect_str_eq(uci_size_text(0, text), "0");
    cr_expect_str_eq(uci_size_text(1023, text), "1023");
    cr_expect_str_eq(uci_size_text(64 << 10, text), "64k");
    cr_expect_str_eq(uci_size_text(1536 << 10, text), "1536k");
    cr_expect_str_eq(uci_size_text(16 << 20, text), "16m");
    cr_expect_str_eq(uci_size_text((size_t)2048 << 30, text), "2048g", "there is no larger unit");
}
