/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Profiles: what is written is read back, what is wrong is refused with words that say what, and where.
 */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "capture.h"
#include "tune/profile.h"

#define BEST_ISA ((uci_digest_isa_t)(UCI_DIGEST_ISA_LAST - 1)) /* of those this build has kernels for */
#define HEAD \
    "{\"uci_profile\": 1, \"source\": \"s\", \"created\": \"c\", \"host\": \"h\", " \
    "\"machine\": {\"cpu\": \"m\", \"cores\": 4, \"ucx\": \"1.13.1\"}, "
#define KERNEL "{\"digest\": \"xxh3\", \"isa\": \"scalar\", \"form\": \"fused\", \"cached\": true, \"ns\": [[64, 5.5]]}"
#define PATH   "{\"transports\": \"posix cma\", \"path\": \"stream\", \"chunk\": 8192, \"ns\": [[1, 100], [2, 200]]}"

static uci_profile_t make_profile(void)
{
    uci_profile_t profile;
    uci_cost_t *cost;
    unsigned i;

    uci_profile_init(&profile, "test \"quoted\"", "1.13.1");
    for (i = 0; i < 40; ++i) { /* more than one growth */
        cost = uci_profile_add_path(&profile, "posix cma", UCI_PATH_STREAM, 256 * (i + 1));
        cr_assert_not_null(cost);
        uci_cost_add(cost, 100, 10 + i);
        uci_cost_add(cost, 1000, 100.5 + i);
    }
    uci_cost_add(uci_profile_add_path(&profile, "tcp", UCI_PATH_EAGER, 0), 64, 5000);
    uci_cost_add(uci_profile_add_registration(&profile, "posix cma"), 4096, 150);
    uci_cost_add(uci_profile_add_registration(&profile, "tcp"), 4096, 70);
    uci_cost_add(uci_profile_add_kernel(&profile, UCI_DIGEST_XXH3, BEST_ISA, UCI_FORM_FUSED, true), 64, 7);
    uci_cost_add(uci_profile_add_kernel(&profile, UCI_DIGEST_XXH3, BEST_ISA, UCI_FORM_FUSED, false), 64, 9);
    uci_cost_add(uci_profile_add_kernel(&profile, UCI_DIGEST_CRC64, UCI_DIGEST_ISA_SCALAR, UCI_FORM_FAR, true), 1,
                 0.01);
    return profile;
}

static char *write_profile(const uci_profile_t *profile)
{
    char *text;
    size_t length;
    FILE *stream = open_memstream(&text, &length);

    uci_profile_write(profile, stream);
    fclose(stream);
    return text;
}

/* Parse, and what was said about it */
static uci_status_t parse(const char *text, uci_profile_t *profile, char **said_p)
{
    test_capture_t capture = test_capture_start();
    uci_status_t status    = uci_profile_parse(text, strlen(text), "test.json", profile);

    *said_p = test_capture_stop(&capture);
    return status;
}

Test(profile, read_back)
{
    uci_profile_t profile = make_profile(), again;
    char *text            = write_profile(&profile), *said, *text_again;

    cr_assert_eq(parse(text, &again, &said), UCI_OK, "%s", said);
    cr_expect_str_empty(said);
    cr_expect_eq(again.kernels_count, 3);
    cr_expect_eq(again.paths_count, 41);
    cr_expect_eq(again.registrations_count, 2);
    cr_expect_str_eq(again.source, "test \"quoted\"");
    cr_expect_str_eq(again.machine.ucx, "1.13.1");
    cr_expect_eq(again.machine.cores, profile.machine.cores);
    text_again = write_profile(&again);
    cr_expect_str_eq(text_again, text);
    free(text);
    free(text_again);
    free(said);
    uci_profile_cleanup(&profile);
    uci_profile_cleanup(&again);
    cr_expect_eq(again.paths_count, 0);
    cr_expect_eq(again.registrations_count, 0);
}

Test(profile, entries_are_found_again)
{
    uci_profile_t profile = make_profile();
    const uci_cost_t *cost;

    cost = uci_profile_find_kernel(&profile, UCI_DIGEST_XXH3, BEST_ISA, UCI_FORM_FUSED, false);
    cr_assert_not_null(cost);
    cr_expect_eq(cost->points[0].ns, 9);
    cr_expect_null(uci_profile_find_kernel(&profile, UCI_DIGEST_XXH3, UCI_DIGEST_ISA_SCALAR, UCI_FORM_FUSED, false));
    cr_expect_eq(uci_profile_add_path(&profile, "posix cma", UCI_PATH_STREAM, 512)->points[0].ns, 11);
    cr_expect_eq(profile.paths_count, 41);
    cr_expect_eq(uci_profile_find_registration(&profile, "tcp")->points[0].ns, 70);
    cr_expect_eq(uci_profile_add_registration(&profile, "tcp")->points[0].ns, 70);
    cr_expect_null(uci_profile_find_registration(&profile, "rc_mlx5"));
    cr_expect_eq(profile.registrations_count, 2);
    uci_profile_cleanup(&profile);
}

Test(profile, merge_keeps_what_is_newer)
{
    uci_profile_t old = make_profile(), new;

    uci_profile_init(&new, "new", "1.13.1");
    uci_cost_add(uci_profile_add_path(&new, "tcp", UCI_PATH_STREAM, 61440), 64, 1);
    uci_cost_add(uci_profile_add_registration(&new, "tcp"), 4096, 1);
    cr_assert_eq(uci_profile_merge(&new, &old), UCI_OK);
    cr_expect_eq(new.kernels_count, old.kernels_count, "it had none");
    cr_expect_eq(new.registrations_count, 2);
    cr_expect_eq(uci_profile_find_registration(&new, "tcp")->points[0].ns, 1);
    cr_expect_eq(uci_profile_find_registration(&new, "posix cma")->points[0].ns, 150);
    cr_expect_eq(new.paths_count, 1 + 40, "the old paths of tcp are gone, those of posix are there");
    uci_profile_cleanup(&new);

    uci_profile_init(&new, "new", "1.13.1");
    uci_cost_add(uci_profile_add_kernel(&new, UCI_DIGEST_NONE, UCI_DIGEST_ISA_SCALAR, UCI_FORM_FUSED, true), 64, 1);
    cr_assert_eq(uci_profile_merge(&new, &old), UCI_OK);
    cr_expect_eq(new.kernels_count, 1, "kernels are of one measurement");
    uci_profile_cleanup(&old);
    uci_profile_cleanup(&new);
}

Test(profile, wrong_ones_are_refused)
{
    static const struct {
        const char *text;
        uci_status_t status;
        const char *said;
    } cases[] = {
            {"", UCI_ERR_CORRUPT, "line 1"},
            {"{", UCI_ERR_CORRUPT, "line 1"},
            {"[]", UCI_ERR_CORRUPT, "\"uci_profile\" is not a whole number"},
            {"{\"uci_profile\": 1, \"uci_profile\": 1}", UCI_ERR_CORRUPT, "duplicate"},
            {"{\"uci_profile\": 2}", UCI_ERR_UNSUPPORTED, "it is of version 2, this UCI reads version 1"},
            {"{\"uci_profile\": 1}", UCI_ERR_CORRUPT, "\"source\" is not a text"},
            {HEAD "\"kernels\": []}", UCI_ERR_CORRUPT, "\"paths\" is not a list"},
            {HEAD "\"kernels\": {}, \"paths\": []}", UCI_ERR_CORRUPT, "\"kernels\" is not a list"},
            {HEAD "\"kernels\": [1], \"paths\": []}", UCI_ERR_CORRUPT, "kernels[0].\"digest\" is not a text"},
            {HEAD "\"kernels\": [" KERNEL
                  ", {\"digest\": \"xxh3\", \"isa\": \"avx2\", \"form\": \"far\", \"cached\": 1, "
                  "\"ns\": [[1, 1]]}], \"paths\": []}",
             UCI_ERR_CORRUPT, "kernels[1].\"cached\" is not true or false"},
            {HEAD
             "\"kernels\": [], \"paths\": [{\"transports\": \"t\", \"path\": \"get\", \"chunk\": 0, \"ns\": [[1, 1]]}]}",
             UCI_ERR_CORRUPT, "paths[0].\"chunk\" is not 0 for 'eager', 256 or more for others"},
            {HEAD "\"kernels\": [], \"paths\": [{\"transports\": \"t\", \"path\": \"get\", \"chunk\": 99999999999, "
                  "\"ns\": [[1, 1]]}]}",
             UCI_ERR_CORRUPT, "\"chunk\" is not a whole number of 0 to 16777216"},
            {HEAD
             "\"kernels\": [], \"paths\": [{\"transports\": \"t\", \"path\": \"get\", \"chunk\": 512, \"ns\": []}]}",
             UCI_ERR_CORRUPT, "\"ns\" is not a list of 1 to 32 points"},
            {HEAD "\"kernels\": [], \"paths\": [{\"transports\": \"t\", \"path\": \"get\", \"chunk\": 512, "
                  "\"ns\": [[1, 2], [1, 3]]}]}",
             UCI_ERR_CORRUPT, "paths[0].\"ns\"[1] is not [size, nanoseconds], ascending"},
            {HEAD
             "\"kernels\": [], \"paths\": [{\"transports\": \"t\", \"path\": \"get\", \"chunk\": 512, \"ns\": [[1, -2]]}]}",
             UCI_ERR_CORRUPT, "paths[0].\"ns\"[0]"},
            {HEAD
             "\"kernels\": [], \"paths\": [{\"transports\": \"t\", \"path\": \"get\", \"chunk\": 512, \"ns\": [[-1, 2]]}]}",
             UCI_ERR_CORRUPT, "paths[0].\"ns\"[0]"},
            {HEAD
             "\"kernels\": [], \"paths\": [{\"transports\": \"t\", \"path\": \"get\", \"chunk\": 512, \"ns\": [7]}]}",
             UCI_ERR_CORRUPT, "paths[0].\"ns\"[0]"},
    };
    uci_profile_t profile;
    char *said;
    size_t i;

    for (i = 0; i < uci_array_size(cases); ++i) {
        cr_expect_eq(parse(cases[i].text, &profile, &said), cases[i].status, "%s: %s", cases[i].text, said);
        cr_expect(strstr(said, cases[i].said) != NULL, "%s: said %s", cases[i].text, said);
        cr_expect(strstr(said, "test.json is not used") != NULL, "%s", said);
        cr_expect_eq(strchr(said, '\n'), strrchr(said, '\n'), "more than one line: %s", said);
        free(said);
    }
}

Test(profile, names_of_later_versions_are_left_out)
{
    const char *text = HEAD
            "\"kernels\": [" KERNEL ", {\"digest\": \"blake9\", \"isa\": \"scalar\", \"form\": \"fused\", "
            "\"cached\": true, \"ns\": [[1, 1]]}, {\"digest\": \"xxh3\", \"isa\": \"avx1024\", "
            "\"form\": \"fused\", \"cached\": true, \"ns\": [[1, 1]]}], \"paths\": [" PATH
            ", {\"transports\": \"t\", \"path\": \"warp\", \"chunk\": 512, \"ns\": [[1, 1]]}], \"more\": 1}";
    uci_profile_t profile;
    char *said;

    cr_assert_eq(parse(text, &profile, &said), UCI_OK, "%s", said);
    cr_expect_eq(profile.kernels_count, 1);
    cr_expect_eq(profile.paths_count, 1);
    free(said);
    uci_profile_cleanup(&profile);
}

/* One byte changed anywhere: read or refused, and never anything else; with what is read a plan can be made */
Test(profile, every_byte_may_be_wrong)
{
    const char *text = HEAD "\"kernels\": [" KERNEL "], \"paths\": [" PATH "]}";
    char *copy       = strdup(text), *said;
    uci_profile_t profile;
    size_t i;

    for (i = 0; i < strlen(text); ++i) {
        copy[i] = (char)(text[i] ^ (1 << (i % 7)));
        if (parse(copy, &profile, &said) == UCI_OK) {
            uci_profile_cleanup(&profile);
        } else {
            cr_expect_str_not_empty(said);
        }
        free(said);
        copy[i] = text[i];
    }
    free(copy);
}

Test(profile, fits_its_machine_only)
{
    uci_profile_t profile = make_profile();
    uci_profile_machine_t machine;
    char reason[512];

    uci_profile_machine_init(&machine, "1.13.1");
    cr_expect(uci_profile_fits(&profile, &machine, reason, sizeof(reason)));
    machine.cores++;
    cr_expect(!uci_profile_fits(&profile, &machine, reason, sizeof(reason)));
    cr_expect_not_null(strstr(reason, "cores"));
    machine.cores--;
    strcpy(machine.ucx, "1.18.1");
    cr_expect(!uci_profile_fits(&profile, &machine, reason, sizeof(reason)));
    cr_expect_str_eq(reason, "it is of UCX '1.13.1', this is UCX '1.18.1'");
    cr_expect_neq(uci_profile_machine_key(&machine), uci_profile_machine_key(&profile.machine));
    strcpy(machine.cpu, "abacus");
    cr_expect(!uci_profile_fits(&profile, &machine, reason, sizeof(reason)));
    cr_expect_not_null(strstr(reason, "'abacus'"));
    uci_profile_cleanup(&profile);
}

Test(profile, saved_and_loaded)
{
    char folder[]         = "/tmp/uci-test-profile.XXXXXX", path[128], command[128];
    uci_profile_t profile = make_profile(), again;

    cr_assert_not_null(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/a/b.json", folder);
    cr_expect_eq(uci_profile_load(path, &again), UCI_ERR_NO_ELEM);
    cr_assert_eq(uci_profile_save(&profile, path), UCI_OK);
    cr_assert_eq(uci_profile_load(path, &again), UCI_OK);
    cr_expect_eq(again.paths_count, profile.paths_count);
    uci_profile_cleanup(&again);
    uci_profile_cleanup(&profile);

    test_capture_t capture = test_capture_start();
    cr_expect_eq(uci_profile_load(folder, &again), UCI_ERR_IO);
    cr_expect_eq(uci_profile_load("/dev/zero", &again), UCI_ERR_IO);
    cr_expect_eq(uci_profile_save(&profile, "/proc/no/such"), UCI_ERR_IO);
    char *said = test_capture_stop(&capture);
    cr_expect_not_null(strstr(said, "cannot read the profile"));
    cr_expect_not_null(strstr(said, "/dev/zero: it is not a regular file"));
    cr_expect_not_null(strstr(said, "cannot write the profile"));
    free(said);
    snprintf(command, sizeof(command), "rm -rf %s", folder);
    cr_assert_eq(system(command), 0);
}
