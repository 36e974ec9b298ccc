/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Cards of twins: whatever is read is refused with a reason, or can be printed, compared, and written and read back as the same. The input gets
 * a first line and an end that belongs to it, which no mutation would find.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "digest/digest.h"
#include "must.h"
#include "twin/twin_card.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* @return the text with a 0 behind it, and no byte more, for ASan to see */
static char *make_text(const uint8_t *data, size_t size, size_t *length_p)
{
    char *text = malloc(size + 64), *end;
    size_t length;

    length = (size_t)sprintf(text, "uci-twin 1\n");
    memcpy(text + length, data, size);
    length += size;
    end = text + length;
    length += (size_t)sprintf(end, "end %016" PRIx64 "\n", uci_digest_table[UCI_DIGEST_XXH3].digest(text, length));
    text      = realloc(text, length + 1);
    *length_p = length;
    return text;
}

static void use(const uci_twin_card_t *card)
{
    uci_twin_card_t other = *card;
    char text[128];

    must_be_printable(card->version, sizeof(card->version));
    must_be_printable(card->host, sizeof(card->host));
    must_be_printable(card->boot, sizeof(card->boot));
    must_be_printable(card->job, sizeof(card->job));
    must_be_printable(card->program, sizeof(card->program));
    must_be_printable(card->arguments, sizeof(card->arguments));
    must_be_printable(card->digest, sizeof(card->digest));
    if (uci_twin_card_differs(card, &other, text, sizeof(text))) {
        abort();
    }
    other.arguments_id ^= 1;
    if (!uci_twin_card_differs(card, &other, text, sizeof(text))) {
        abort();
    }
    must_be_printable(text, sizeof(text));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text, *first, *second;
    uci_twin_card_t card, again;
    const char *reason = NULL;
    size_t length, second_length;

    uci_digest_init();
    text = make_text(data, size, &length);
    if (uci_twin_card_parse(text, length, &card, &reason) != UCI_OK) {
        if ((reason == NULL) || (*reason == '\0')) {
            abort();
        }
        free(text);
        return 0;
    }
    use(&card);
    if (uci_twin_card_format(&card, &first, &length) != UCI_OK) {
        abort();
    }
    second = strdup(first);
    if (uci_twin_card_parse(second, length, &again, &reason) != UCI_OK) {
        abort();
    }
    free(second);
    if ((uci_twin_card_format(&again, &second, &second_length) != UCI_OK) || (strcmp(first, second) != 0)) {
        abort();
    }
    uci_twin_card_cleanup(&again);
    uci_twin_card_cleanup(&card);
    free(second);
    free(first);
    free(text);
    return 0;
}
