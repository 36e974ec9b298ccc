/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * A locale whose decimal point is a comma, made where the test runs.
 */
#ifndef UCI_COMMA_LOCALE_H_
#define UCI_COMMA_LOCALE_H_

#include <criterion/criterion.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>

static inline void comma_locale_set(void)
{
    char folder[] = "/tmp/uci_locale.XXXXXX", text[128];

    cr_assert(mkdtemp(folder) != NULL);
    snprintf(text, sizeof(text), "localedef -i de_DE -f UTF-8 %s/de_DE.UTF-8", folder);
    cr_assert(system(text) == 0, "package locales");
    setenv("LOCPATH", folder, 1);
    cr_assert(setlocale(LC_ALL, "de_DE.UTF-8") != NULL);
    snprintf(text, sizeof(text), "rm -r %s", folder);
    cr_assert(system(text) == 0);
    snprintf(text, sizeof(text), "%.1f", 0.5);
    cr_assert_str_eq(text, "0,5");
}

#endif
