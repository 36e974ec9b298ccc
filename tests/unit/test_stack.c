/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "util/stack.h"

/* Without being left out or put in line: each is a frame of its own */
static UCI_NOINLINE void test_stack_record(uci_stack_t *stack)
{
    uci_stack_take(stack);
    __asm__ volatile("" ::: "memory");
}

static UCI_NOINLINE void test_stack_caller(uci_stack_t *stack)
{
    test_stack_record(stack);
    __asm__ volatile("" ::: "memory");
}

/* What addr2line makes of "file+0xoffset" */
static void name_of(const char *place, char *name, size_t size)
{
    const char *plus = strrchr(place, '+');
    char command[8192];
    FILE *pipe;

    cr_assert(plus != NULL, "%s", place);
    snprintf(command, sizeof(command), "addr2line -f -e '%.*s' 0x%lx", (int)(plus - place), place,
             strtoul(plus + 1, NULL, 16) - 1);
    pipe = popen(command, "r");
    cr_assert((pipe != NULL) && (fgets(name, (int)size, pipe) != NULL), "%s", command);
    name[strcspn(name, "\n")] = '\0';
    while (fgetc(pipe) != EOF) {
    }
    pclose(pipe);
}

Test(stack, names_the_caller_of_who_takes_it)
{
    char *out = NULL, name[256];
    uci_stack_t stack;
    size_t length;
    FILE *stream = open_memstream(&out, &length);
    uci_json_t json;
    json_t *root, *places;

    test_stack_caller(&stack);
    uci_json_begin(&json, stream, ", ");
    uci_stack_write(&stack, &json, "stack");
    uci_json_end(&json);
    fclose(stream);
    root   = json_loads(out, 0, NULL);
    places = json_object_get(root, "stack");
    cr_assert((places != NULL) && (json_array_size(places) >= 2), "%s", out);
    cr_expect(json_array_size(places) <= UCI_STACK_DEPTH);
    name_of(json_string_value(json_array_get(places, 0)), name, sizeof(name));
    cr_expect(strcmp(name, "test_stack_caller") == 0, "%s of %s", name, out);
    json_decref(root);
    free(out);
}
