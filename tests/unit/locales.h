/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Locales, made where the test runs: one whose decimal point is a comma, and one in which 'I' is no 'i'.
 */
#ifndef UCI_TEST_LOCALES_H_
#define UCI_TEST_LOCALES_H_

#include <criterion/criterion.h>
#include <ctype.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>

/* @param name  as "de_DE" */
static inline void test_locale_set(const char *name)
{
    char folder[] = "/tmp/uci_locale.XXXXXX", text[128];

    cr_assert(mkdtemp(folder) != NULL);
    snprintf(text, sizeof(text), "localedef -i %s -f UTF-8 %s/%s.UTF-8", name, folder, name);
    cr_assert(system(text) == 0, "package locales");
    setenv("LOCPATH", folder, 1);
    snprintf(text, sizeof(text), "%s.UTF-8", name);
    cr_assert(setlocale(LC_ALL, text) != NULL);
    snprintf(text, sizeof(text), "rm -r %s", folder);
    cr_assert(system(text) == 0);
}

static inline void comma_locale_set(void)
{
    char text[8];

    test_locale_set("de_DE");
    snprintf(text, sizeof(text), "%.1f", 0.5);
    cr_assert_str_eq(text, "0,5");
}

static inline void turkish_locale_set(void)
{
    test_locale_set("tr_TR");
    cr_assert_neq(tolower('I'), 'i'); /* as strcasecmp() does, but that of a sanitizer */
}

#endif
