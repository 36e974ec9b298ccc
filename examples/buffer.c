/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Has a buffer changed since a tree of it was built, and where?
 *
 *     cc buffer.c $(pkg-config --cflags --libs uci) -o buffer && ./buffer
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <uci.h>

#define LENGTH ((size_t)16 << 20)

static void must(uci_status_t status, const char *what)
{
    if (status != UCI_OK) {
        fprintf(stderr, "%s: %s\n", what, uci_tree_status_string(status));
        exit(2);
    }
}

int main(void)
{
    unsigned char *data = malloc(LENGTH);
    uci_byte_range_t ranges[8];
    uci_tree_result_t result = {.ranges = ranges, .max = 8};
    uci_tree_t *before, *after;
    size_t i;

    if (data == NULL) {
        return 2;
    }
    memset(data, 0x5a, LENGTH);
    must(uci_tree_build(data, LENGTH, NULL, &before), "tree before");

    data[1000000] ^= 1; /* what a stray pointer, or bad memory, does */

    must(uci_tree_build(data, LENGTH, NULL, &after), "tree after");
    must(uci_tree_compare(before, after, &result), "comparison");
    printf("root before %016llx, after %016llx; %zu ranges differ\n", (unsigned long long)uci_tree_root(before),
           (unsigned long long)uci_tree_root(after), result.count);
    for (i = 0; (i < result.count) && (i < result.max); ++i) {
        printf("bytes %llu..%llu\n", (unsigned long long)ranges[i].offset,
               (unsigned long long)(ranges[i].offset + ranges[i].length - 1));
    }

    uci_tree_destroy(before);
    uci_tree_destroy(after);
    free(data);
    return (result.count == 1) ? 0 : 1;
}
