/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * The tuner: sources and their order, what is chosen from them, and many processes that start at once. Each test is a
 * process of its own with an empty cache folder.
 */
#include <criterion/criterion.h>
#include <dirent.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tune/calibrate.h"
#include "capture.h"
#include "util/file.h"
#include "util/process.h"
#include "settings/settings.h"
#include "tune/tuner.h"

#define BEST_ISA ((uci_digest_isa_t)(UCI_DIGEST_ISA_LAST - 1)) /* of those this build has kernels for */
#define UCX      "1.13.1"
#define STREAM   UCI_PATH_BIT(UCI_PATH_STREAM)
#define DIRECT   UCI_PATH_BIT(UCI_PATH_DIRECT)
#define GET      UCI_PATH_BIT(UCI_PATH_GET)
#define RUNNERS \
    200 /* processes that start at once; TEST_RUNNERS is another number (core/tune/README.md has it for 4000) */

static char folder[] = "/tmp/uci-test-tuner.XXXXXX";

static void make_folder(void)
{
    cr_assert_not_null(mkdtemp(folder));
    setenv("XDG_CACHE_HOME", folder, 1);
    setenv("UCI_CONFIG_FILE", "", 1);
}

static void drop_folder(void)
{
    char command[64];

    snprintf(command, sizeof(command), "rm -rf %s", folder);
    cr_assert_eq(system(command), 0);
}

TestSuite(tuner, .init = make_folder, .fini = drop_folder);

static void start(void)
{
    cr_assert_eq(uci_settings_read(), UCI_OK);
    uci_tuner_init(UCX);
}

/* What a start says */
static char *start_and_listen(void)
{
    test_capture_t capture = test_capture_start();

    start();
    return test_capture_stop(&capture);
}

/* Path of a file in the cache whose name begins so; NULL if there is none */
static const char *find_cached(const char *begin)
{
    static char path[PATH_MAX];
    const char *found = NULL;
    struct dirent *entry;
    DIR *dir;

    snprintf(path, sizeof(path), "%s/uci", folder);
    dir = opendir(path);
    while ((dir != NULL) && ((entry = readdir(dir)) != NULL)) {
        if (strncmp(entry->d_name, begin, strlen(begin)) == 0) {
            snprintf(path, sizeof(path), "%s/uci/%s", folder, entry->d_name);
            found = path;
        }
    }
    if (dir != NULL) {
        closedir(dir);
    }
    return found;
}

/* A time of `latency` and `rate` bytes a nanosecond at 64 bytes to 16 MiB */
static void fill(uci_cost_t *cost, double latency, double rate)
{
    uint64_t size;

    cr_assert_not_null(cost);
    for (size = 64; size <= 16 << 20; size *= 4) {
        uci_cost_add(cost, size, latency + (double)size / rate);
    }
}

static void save(const uci_profile_t *profile)
{
    char path[PATH_MAX];

    cr_assert_eq(uci_tuner_profile_path(&profile->machine, path, sizeof(path)), UCI_OK);
    cr_assert_eq(uci_profile_save(profile, path), UCI_OK);
}

Test(tuner, classes)
{
    unsigned i;

    cr_expect_eq(uci_plan_class(0), 0);
    cr_expect_eq(uci_plan_class(1), 0);
    cr_expect_eq(uci_plan_class(2), 2);
    cr_expect_eq(uci_plan_class(3), 3);
    cr_expect_eq(uci_plan_class(4), 4);
    cr_expect_eq(uci_plan_class(5), 5);
    cr_expect_eq(uci_plan_class(1 << 20), 40);
    cr_expect_eq(uci_plan_class((1 << 20) + 1), 41);
    cr_expect_eq(uci_plan_class(3 << 19), 41);
    cr_expect_eq(uci_plan_class((3 << 19) + 1), 42);
    cr_expect_eq(uci_plan_class(1ul << 32), UCI_PLAN_CLASSES - 1);
    cr_expect_eq(uci_plan_class((1ul << 32) + 1), UCI_PLAN_CLASSES - 1);
    cr_expect_eq(uci_plan_class(UINT64_MAX), UCI_PLAN_CLASSES - 1);
    for (i = 2; i < UCI_PLAN_CLASSES; ++i) {
        cr_expect_eq(uci_plan_class(uci_plan_class_size(i)), i, "class %u", i);
        cr_expect_eq(uci_plan_class(uci_plan_class_size(i - 1) + 1), i, "class %u", i);
    }
}

static uci_choice_t choose(const char *transports, uint32_t paths, uint64_t size)
{
    return *uci_plan_choose(uci_tuner_plan(transports, paths), size);
}

Test(tuner, built_in)
{
    const uci_plan_t *plan;
    uci_choice_t choice;
    char *said;

    setenv("UCI_PROFILE", "none", 1);
    said = start_and_listen();
    cr_expect_str_empty(said);
    cr_expect_str_eq(uci_tuner_source(), "built in");
    cr_expect_null(find_cached(""));
    cr_expect_eq(uci_tuner_eager_max(), 32768, "of tcp");
    cr_expect(uci_tuner_eager_differs());
    cr_expect_eq(uci_tuner_plan("tcp", STREAM)->eager_max, 32768);
    cr_expect_eq(uci_tuner_plan("rc_mlx5", STREAM)->eager_max, 8192);

    plan = uci_tuner_plan("posix cma", STREAM);
    cr_expect_eq(plan->eager_max, 8192);
    cr_expect_eq(uci_plan_path(plan, 8192), UCI_PATH_EAGER);
    cr_expect_eq(uci_plan_path(plan, 8193), UCI_PATH_STREAM);
    cr_expect_eq(uci_plan_choose(plan, 1 << 20)->chunk_size, 8192);
    cr_expect_eq(uci_plan_choose(plan, 1 << 20)->digest->id, UCI_DIGEST_XXH3);
    cr_expect_eq(uci_plan_choose(plan, 1 << 20)->form, UCI_FORM_FUSED);
    cr_expect_eq(uci_plan_choose(plan, 64 << 20)->form, UCI_FORM_FAR);
    cr_expect_eq(uci_tuner_plan("posix cma", STREAM), plan, "made once");
    cr_expect_eq(choose("posix", STREAM | DIRECT, 1 << 20).path, UCI_PATH_DIRECT);
    cr_expect_eq(choose("tcp", STREAM | GET, 524288).path, UCI_PATH_GET);
    cr_expect_eq(choose("tcp", STREAM | GET, 65536).path, UCI_PATH_STREAM);
    cr_expect_eq(choose("tcp", STREAM | GET | UCI_PLAN_SLOW_LINK, 64 << 20).path, UCI_PATH_STREAM);
    cr_expect_eq(choose("rc_mlx5", STREAM | GET | UCI_PLAN_SLOW_LINK, 65536).path, UCI_PATH_GET);
    choice = choose("rc_mlx5", STREAM | DIRECT, 1 << 20);
    cr_expect_eq(choice.chunk_size, 61440);
    cr_expect_eq(choice.path, UCI_PATH_STREAM, "memory is not shared");
    free(said);
}

Test(tuner, forced)
{
    uci_profile_t profile;

    uci_profile_init(&profile, "test", UCX);
    fill(uci_profile_add_path(&profile, "tcp", UCI_PATH_EAGER, 0), 1, 1);
    fill(uci_profile_add_path(&profile, "tcp", UCI_PATH_STREAM, 8192), 10, 1);
    fill(uci_profile_add_path(&profile, "tcp", UCI_PATH_GET, 12288), 500, 1);
    save(&profile);
    setenv("UCI_DIGEST", "fletcher", 1);
    setenv("UCI_EAGER_MAX", "100", 1);
    setenv("UCI_CHUNK_SIZE", "12k", 1);
    start();
    cr_expect_eq(uci_tuner_eager_max(), 100);
    cr_expect_eq(choose("tcp", STREAM, 1 << 20).chunk_size, 12288);
    cr_expect_eq(choose("tcp", STREAM, 1 << 20).path, UCI_PATH_STREAM);
    cr_expect_eq(choose("tcp", STREAM | GET, 1 << 20).path, UCI_PATH_GET,
                 "measured with the chunk size that is forced");
    cr_expect_eq(choose("tcp", STREAM, 64).digest->id, UCI_DIGEST_FLETCHER);
    uci_profile_cleanup(&profile);
}

Test(tuner, forced_path)
{
    const uci_plan_t *plan;

    setenv("UCI_PATH", "stream", 1);
    setenv("UCI_PROFILE", "none", 1);
    start();
    cr_expect_eq(choose("posix", STREAM | DIRECT, 1 << 20).path, UCI_PATH_STREAM);
    plan              = uci_tuner_plan("posix", STREAM | DIRECT);
    uci_settings.path = UCI_PATH_DIRECT;
    uci_tuner_refresh();
    cr_expect_str_eq(plan->transports, "posix");
    cr_expect_eq(uci_tuner_plan("posix", STREAM | DIRECT), plan, "the same plan, made anew");
    cr_expect_eq(uci_plan_choose(plan, 1 << 20)->path, UCI_PATH_DIRECT);
    cr_expect_eq(choose("posix", STREAM | DIRECT, 1 << 20).path, UCI_PATH_DIRECT);
    cr_expect_eq(choose("posix", STREAM | DIRECT, 1 << 20).chunk_size, 32768);
    cr_expect_eq(choose("posix", STREAM, 1 << 20).path, UCI_PATH_STREAM, "not possible");
}

/* between nodes, without a profile: large messages are fetched, from where that pays */
Test(tuner, get_built_in)
{
    const uint32_t paths = STREAM | GET;

    setenv("UCI_PROFILE", "none", 1);
    start();
    cr_expect_eq(choose("tcp", paths, 256 << 10).path, UCI_PATH_STREAM);
    cr_expect_eq(choose("tcp", paths, 512 << 10).path, UCI_PATH_GET);
    cr_expect_eq(choose("tcp", paths, 1 << 20).chunk_size, 61440);
    cr_expect_eq(choose("tcp", STREAM, 1 << 20).path, UCI_PATH_STREAM);
    cr_expect_eq(choose("rc_verbs", paths, 64 << 10).path, UCI_PATH_GET);
    cr_expect(uci_tuner_is_rdma("rc_verbs ud_verbs") && !uci_tuner_is_rdma("ud_verbs tcp"));
    cr_expect_eq(choose("ud_verbs", paths, 64 << 10).path, UCI_PATH_STREAM);
    cr_expect_eq(choose("posix cma", paths, 1 << 20).path, UCI_PATH_STREAM, "what direct does there");
    uci_settings.path = UCI_PATH_GET;
    uci_tuner_refresh();
    cr_expect_eq(choose("posix cma", paths, 1 << 20).path, UCI_PATH_GET, "forced");
}

/* Path for a message of so many bytes while both sides send */
static uci_path_t both(const char *transports, uint32_t paths, uint64_t size)
{
    return choose(transports, paths, size).both;
}

/* While both sides send, large messages between processes of a node are fetched if the kernel copies; nothing else changes */
Test(tuner, both_ways_built_in)
{
    const uint32_t paths = STREAM | GET | DIRECT;
    uint64_t size;

    setenv("UCI_PROFILE", "none", 1);
    start();
    cr_expect_eq(both("posix cma", paths, 1 << 20), UCI_PATH_GET);
    cr_expect_eq(both("posix cma", paths, UCI_TUNER_BOTH_MIN + 1), UCI_PATH_GET);
    cr_expect_eq(both("posix cma", paths, 2 << 20), UCI_PATH_GET);
    cr_expect_eq(both("posix cma", paths, (2 << 20) + 1), UCI_PATH_DIRECT, "in no cache");
    cr_expect_eq(both("posix cma", paths, UCI_TUNER_BOTH_MIN), UCI_PATH_DIRECT);
    cr_expect_eq(both("sysv knem", paths, 1 << 20), UCI_PATH_GET);
    cr_expect_eq(both("posix", paths, 1 << 20), UCI_PATH_DIRECT, "nothing to fetch with");
    cr_expect_eq(both("posix cma", STREAM | DIRECT, 1 << 20), UCI_PATH_DIRECT);
    cr_expect_eq(both("posix cma", STREAM | GET, 1 << 20), UCI_PATH_STREAM, "no slots");
    cr_expect_eq(both("tcp", paths, 256 << 10), UCI_PATH_STREAM);
    for (size = 1; size <= 16 << 20; size *= 2) {
        cr_expect_eq(choose("posix cma", paths, size).path, UCI_PATH_DIRECT, "one way, %lu bytes", size);
        cr_expect_eq(both("rc_verbs", paths, size), choose("rc_verbs", paths, size).path);
    }
    uci_settings.path = UCI_PATH_DIRECT;
    uci_tuner_refresh();
    cr_expect_eq(both("posix cma", paths, 1 << 20), UCI_PATH_DIRECT, "forced");
}

/* What both sides' processors need together: all of the direct path twice; of get its time, and the sender's digest. A message takes 1 ns
 * for 10 bytes by the direct path. */
Test(tuner, both_ways_from_a_profile)
{
    static const struct {
        double get, digest; /* bytes a nanosecond */
        uci_path_t path, both;
    } cases[] = {{20, 10, UCI_PATH_GET, UCI_PATH_GET},
                 {9.5, 10, UCI_PATH_DIRECT, UCI_PATH_DIRECT},
                 {9.5, 20, UCI_PATH_DIRECT, UCI_PATH_GET},
                 {6, 20, UCI_PATH_DIRECT, UCI_PATH_DIRECT}};
    uci_profile_t profile;
    uci_plan_t plan = {0};
    unsigned i;

    cr_assert_eq(uci_settings_read(), UCI_OK);
    uci_digest_init();
    for (i = 0; i < uci_array_size(cases); ++i) {
        uci_profile_init(&profile, "test", UCX);
        fill(uci_profile_add_kernel(&profile, UCI_DIGEST_XXH3, uci_digest_isa_best(), UCI_FORM_DIGEST, true), 0.1,
             cases[i].digest);
        fill(uci_profile_add_path(&profile, "posix cma", UCI_PATH_DIRECT, 32768), 0.1, 10);
        fill(uci_profile_add_path(&profile, "posix cma", UCI_PATH_GET, 61440), 0.1, cases[i].get);
        uci_tuner_make_plan(&profile, "posix cma", STREAM | GET | DIRECT, &plan);
        cr_expect_eq(uci_plan_choose(&plan, 1 << 20)->path, cases[i].path, "case %u", i);
        cr_expect_eq(uci_plan_choose(&plan, 1 << 20)->both, cases[i].both, "case %u", i);
        uci_profile_cleanup(&profile);
    }
}

/* eager is best up to 5200 bytes, between two points; stream to 64 KiB, direct beyond; large chunks pay for large messages */
Test(tuner, from_a_profile)
{
    const uci_plan_t *plan;
    uci_profile_t profile;
    char *said;

    uci_profile_init(&profile, "test", UCX);
    fill(uci_profile_add_path(&profile, "posix", UCI_PATH_EAGER, 0), 100, 1);
    fill(uci_profile_add_path(&profile, "posix", UCI_PATH_STREAM, 4096), 4000, 4);
    fill(uci_profile_add_path(&profile, "posix", UCI_PATH_DIRECT, 32768), 30000, 16);
    fill(uci_profile_add_path(&profile, "tcp", UCI_PATH_EAGER, 0), 100, 1);
    fill(uci_profile_add_path(&profile, "tcp", UCI_PATH_STREAM, 61440), 20000, 1);
    save(&profile);
    said = start_and_listen();
    cr_expect_str_empty(said);
    cr_expect_eq(strncmp(uci_tuner_source(), "profile ", 8), 0);

    plan = uci_tuner_plan("posix", STREAM | DIRECT);
    cr_expect_eq(plan->eager_max, 5184, "where the lines cross: %u", plan->eager_max);
    cr_expect_eq(uci_plan_path(plan, 4096), UCI_PATH_EAGER);
    cr_expect_eq(uci_plan_path(plan, 65536), UCI_PATH_STREAM);
    cr_expect_eq(uci_plan_choose(plan, 65536)->chunk_size, 4096);
    cr_expect_eq(plan->fragment, 8192);
    cr_expect_eq(uci_plan_choose(plan, 1 << 20)->path, UCI_PATH_DIRECT);
    cr_expect_eq(uci_plan_choose(plan, 1 << 20)->chunk_size, 32768);
    cr_expect_eq(uci_plan_choose(uci_tuner_plan("posix", STREAM), 1 << 20)->path, UCI_PATH_STREAM,
                 "direct not offered");

    cr_expect_eq(uci_tuner_plan("tcp", STREAM)->eager_max, 16384);
    cr_expect_eq(uci_tuner_plan("rc_mlx5", STREAM)->eager_max, 8192, "not measured");
    cr_expect_eq(uci_tuner_eager_max(), 16384, "what was measured of tcp, not what is built in");
    cr_expect(uci_tuner_eager_differs());

    uci_settings.eager_max = 2048;
    uci_tuner_refresh();
    cr_expect_eq(plan->eager_max, 2048, "in place");
    cr_expect_eq(uci_plan_path(plan, 4096), UCI_PATH_STREAM);
    free(said);
    uci_profile_cleanup(&profile);
}

/* Where it is dear to register a buffer, fetching must be more than a little faster to be worth it */
Test(tuner, registrations_count)
{
    static const struct {
        double registration, get; /* times and bandwidths relative to stream's: cheap or dear, hardly or much faster */
        uci_path_t path;
    } cases[] = {{0.01, 0.99, UCI_PATH_GET}, {1, 0.99, UCI_PATH_STREAM}, {1, 0.9, UCI_PATH_GET}};
    uci_profile_t profile;
    uci_plan_t plan = {0};
    unsigned i;

    cr_assert_eq(uci_settings_read(), UCI_OK);
    for (i = 0; i < uci_array_size(cases); ++i) {
        uci_profile_init(&profile, "test", UCX);
        fill(uci_profile_add_path(&profile, "rc_verbs", UCI_PATH_STREAM, 61440), 1000, 10);
        fill(uci_profile_add_path(&profile, "rc_verbs", UCI_PATH_GET, 61440), 1000 * cases[i].get, 10 / cases[i].get);
        uci_tuner_make_plan(&profile, "rc_verbs", STREAM | GET, &plan);
        cr_expect_eq(uci_plan_choose(&plan, 1 << 20)->path, UCI_PATH_GET, "what registering costs is not known");
        fill(uci_profile_add_registration(&profile, "rc_verbs"), 1000 * cases[i].registration,
             10 / cases[i].registration);
        uci_tuner_make_plan(&profile, "rc_verbs", STREAM | GET, &plan);
        cr_expect_eq(uci_plan_choose(&plan, 1 << 20)->path, cases[i].path, "case %u", i);
        cr_expect_eq(uci_plan_choose(&plan, 65536)->path, cases[i].path, "case %u", i);
        uci_profile_cleanup(&profile);
    }
}

/* 20 KiB lose with chunks of 16 KiB what 24 KiB hardly win with them: all sizes of their class go in one chunk. 32 KiB do not. */
Test(tuner, a_class_is_more_than_its_largest_size)
{
    static const uci_cost_point_t two[] = {{16384, 1340}, {20480, 1868}, {24576, 1700}, {32768, 1900}},
                                  one[] = {{16384, 1340}, {20480, 1727}, {24576, 1711}, {32768, 2400}};
    uci_cost_t *costs[2];
    uci_profile_t profile;
    uci_plan_t plan = {0};
    unsigned i;

    cr_assert_eq(uci_settings_read(), UCI_OK);
    uci_profile_init(&profile, "test", UCX);
    uci_profile_add_path(&profile, "posix", UCI_PATH_DIRECT, 16384);
    uci_profile_add_path(&profile, "posix", UCI_PATH_DIRECT, 32768);
    costs[0] = uci_profile_add_path(&profile, "posix", UCI_PATH_DIRECT, 16384);
    costs[1] = uci_profile_add_path(&profile, "posix", UCI_PATH_DIRECT, 32768);
    for (i = 0; i < uci_array_size(two); ++i) {
        uci_cost_add(costs[0], two[i].size, two[i].ns);
        uci_cost_add(costs[1], one[i].size, one[i].ns);
    }
    uci_tuner_make_plan(&profile, "posix", STREAM | DIRECT, &plan);
    cr_expect_eq(uci_plan_choose(&plan, 20480)->chunk_size, 32768);
    cr_expect_eq(uci_plan_choose(&plan, 24576)->chunk_size, 32768);
    cr_expect_eq(uci_plan_choose(&plan, 32768)->chunk_size, 16384);
    uci_profile_cleanup(&profile);
}

Test(tuner, digest_and_form_by_size)
{
    uci_digest_isa_t isa = UCI_DIGEST_ISA_SCALAR;
    uci_profile_t profile;
    uci_plan_t plan = {0};

    cr_assert_eq(uci_settings_read(), UCI_OK);
    isa = uci_digest_isa_best();
    uci_profile_init(&profile, "test", UCX);
    fill(uci_profile_add_kernel(&profile, UCI_DIGEST_XXH3, isa, UCI_FORM_FUSED, true), 1, 10);
    fill(uci_profile_add_kernel(&profile, UCI_DIGEST_CRC64, isa, UCI_FORM_FUSED, true), 100, 20);
    fill(uci_profile_add_kernel(&profile, UCI_DIGEST_CRC64, isa, UCI_FORM_SEPARATE, true), 10000, 40);
    fill(uci_profile_add_kernel(&profile, UCI_DIGEST_CRC32C, isa, UCI_FORM_FUSED, true), 1, 1000);
    uci_tuner_make_plan(&profile, "tcp", STREAM, &plan);
    cr_expect_eq(uci_plan_choose(&plan, 64)->digest->id, UCI_DIGEST_XXH3);
    cr_expect_eq(uci_plan_choose(&plan, 16384)->digest->id, UCI_DIGEST_CRC64, "crc32c has too few bits to be chosen");
    cr_expect_eq(uci_plan_choose(&plan, 16384)->form, UCI_FORM_FUSED);
    cr_expect_eq(uci_plan_choose(&plan, 4 << 20)->form, UCI_FORM_SEPARATE);

    /* cached and uncached count the same */
    fill(uci_profile_add_kernel(&profile, UCI_DIGEST_CRC64, isa, UCI_FORM_FUSED, false), 100, 1);
    uci_tuner_make_plan(&profile, "tcp", STREAM, &plan);
    cr_expect_eq(uci_plan_choose(&plan, 16384)->digest->id, UCI_DIGEST_XXH3);

    /* faster from memory to memory, and on the whole, is not enough for another form */
    fill(uci_profile_add_kernel(&profile, UCI_DIGEST_XXH3, isa, UCI_FORM_FUSED, false), 1, 1);
    fill(uci_profile_add_kernel(&profile, UCI_DIGEST_XXH3, isa, UCI_FORM_FAR, true), 1, 9);
    fill(uci_profile_add_kernel(&profile, UCI_DIGEST_XXH3, isa, UCI_FORM_FAR, false), 1, 4);
    uci_tuner_make_plan(&profile, "tcp", STREAM, &plan);
    cr_expect_eq(uci_plan_choose(&plan, 4096)->form, UCI_FORM_FUSED);
    cr_expect_not(uci_tuner_form_applies(&profile, UCI_DIGEST_XXH3, isa, UCI_FORM_FAR, 4096));
    cr_expect(uci_tuner_form_applies(&profile, UCI_DIGEST_XXH3, isa, UCI_FORM_FUSED, 4096));
    uci_profile_cleanup(&profile);
}

/* Of two that copy alike the one that computes less */
Test(tuner, lighter_digest)
{
    static const struct {
        double copy, digest; /* of CRC-64, in bytes per ns; XXH3 has 10 for both */
        uci_digest_id_t chosen;
    } cases[]             = {{9.6, 25, UCI_DIGEST_CRC64},
                             {9.6, 10.1, UCI_DIGEST_XXH3},
                             {9, 100, UCI_DIGEST_XXH3},
                             {11, 5, UCI_DIGEST_CRC64}};
    uci_digest_isa_t isa  = UCI_DIGEST_ISA_SCALAR;
    uci_profile_t profile = {0};
    uci_plan_t plan       = {0};
    unsigned i;

    cr_assert_eq(uci_settings_read(), UCI_OK);
    isa = uci_digest_isa_best();
    for (i = 0; i < uci_array_size(cases); ++i) {
        uci_profile_init(&profile, "test", UCX);
        fill(uci_profile_add_kernel(&profile, UCI_DIGEST_XXH3, isa, UCI_FORM_FUSED, true), 1, 10);
        fill(uci_profile_add_kernel(&profile, UCI_DIGEST_XXH3, isa, UCI_FORM_DIGEST, true), 1, 10);
        fill(uci_profile_add_kernel(&profile, UCI_DIGEST_CRC64, isa, UCI_FORM_FUSED, true), 1, cases[i].copy);
        fill(uci_profile_add_kernel(&profile, UCI_DIGEST_CRC64, isa, UCI_FORM_DIGEST, true), 1, cases[i].digest);
        uci_tuner_make_plan(&profile, "posix", STREAM | DIRECT, &plan);
        cr_expect_eq(uci_plan_choose(&plan, 1 << 20)->digest->id, cases[i].chosen, "case %u", i);
        cr_expect_eq(uci_plan_choose(&plan, 1 << 20)->form, UCI_FORM_FUSED, "case %u", i);
        uci_profile_cleanup(&profile);
    }
}

Test(tuner, kernel)
{
    uci_digest_isa_t isa;
    uci_profile_t profile;
    uint64_t value;

    cr_assert_eq(uci_settings_read(), UCI_OK);
    isa = uci_digest_isa_best();
    if (isa == UCI_DIGEST_ISA_SCALAR) {
        cr_skip_test("this cpu has one kernel only");
    }
    uci_profile_init(&profile, "test", UCX);
    cr_expect_eq(uci_tuner_best_isa(&profile, UCI_DIGEST_XXH3), isa, "nothing known");
    fill(uci_profile_add_kernel(&profile, UCI_DIGEST_XXH3, isa, UCI_FORM_FUSED, true), 10, 10);
    fill(uci_profile_add_kernel(&profile, UCI_DIGEST_XXH3, isa, UCI_FORM_DIGEST, true), 10, 10);
    fill(uci_profile_add_kernel(&profile, UCI_DIGEST_XXH3, UCI_DIGEST_ISA_SCALAR, UCI_FORM_FUSED, true), 9.9, 10.1);
    fill(uci_profile_add_kernel(&profile, UCI_DIGEST_XXH3, UCI_DIGEST_ISA_SCALAR, UCI_FORM_DIGEST, true), 9.9, 10.1);
    cr_expect_eq(uci_tuner_best_isa(&profile, UCI_DIGEST_XXH3), isa, "1 %% is noise");
    fill(uci_profile_add_kernel(&profile, UCI_DIGEST_XXH3, UCI_DIGEST_ISA_SCALAR, UCI_FORM_FUSED, true), 5, 15);
    cr_expect_eq(uci_tuner_best_isa(&profile, UCI_DIGEST_XXH3), UCI_DIGEST_ISA_SCALAR);

    save(&profile);
    value = uci_digest_table[UCI_DIGEST_XXH3].digest(folder, sizeof(folder));
    uci_tuner_init(UCX);
    cr_expect_not_null(strstr(uci_digest_table[UCI_DIGEST_XXH3].title, "scalar"), "the kernel is in use");
    cr_expect_null(strstr(uci_digest_table[UCI_DIGEST_FNV1A].title, "scalar"));
    cr_expect_eq(uci_digest_table[UCI_DIGEST_XXH3].digest(folder, sizeof(folder)), value);
    uci_profile_cleanup(&profile);
}

/* One kernel may be faster in the cache, and another from memory */
Test(tuner, kernel_by_size)
{
    uci_digest_isa_t isa;
    uci_profile_t profile;
    uci_plan_t plan = {0};

    cr_assert_eq(uci_settings_read(), UCI_OK);
    isa = uci_digest_isa_best();
    if (isa == UCI_DIGEST_ISA_SCALAR) {
        cr_skip_test("this cpu has one kernel only");
    }
    uci_profile_init(&profile, "test", UCX);
    fill(uci_profile_add_kernel(&profile, UCI_DIGEST_XXH3, isa, UCI_FORM_FUSED, true), 1, 10);
    fill(uci_profile_add_kernel(&profile, UCI_DIGEST_XXH3, isa, UCI_FORM_FAR, true), 1, 10);
    fill(uci_profile_add_kernel(&profile, UCI_DIGEST_XXH3, UCI_DIGEST_ISA_SCALAR, UCI_FORM_FUSED, true), 100, 11);
    uci_tuner_make_plan(&profile, "tcp", STREAM, &plan);
    cr_expect_eq(uci_plan_choose(&plan, 64)->isa, isa);
    cr_expect_eq(uci_plan_choose(&plan, 64)->digest, uci_digest_row(UCI_DIGEST_XXH3, isa));
    cr_expect_eq(uci_plan_choose(&plan, 1 << 20)->isa, UCI_DIGEST_ISA_SCALAR);
    cr_expect_eq(uci_plan_choose(&plan, 1 << 20)->digest, uci_digest_row(UCI_DIGEST_XXH3, UCI_DIGEST_ISA_SCALAR));
    cr_expect_eq(uci_plan_choose(&plan, 1 << 20)->form, UCI_FORM_FUSED);
    cr_expect_not_null(strstr(uci_plan_choose(&plan, 1 << 20)->digest->title, "scalar"));

    /* 2 % is something after a long measurement, and nothing after one of milliseconds */
    fill(uci_profile_add_kernel(&profile, UCI_DIGEST_XXH3, UCI_DIGEST_ISA_SCALAR, UCI_FORM_FUSED, true), 1, 10.2);
    uci_tuner_make_plan(&profile, "tcp", STREAM, &plan);
    cr_expect_eq(uci_plan_choose(&plan, 1 << 20)->isa, UCI_DIGEST_ISA_SCALAR);
    snprintf(profile.source, sizeof(profile.source), "%s", UCI_PROFILE_SOURCE_QUICK);
    uci_tuner_make_plan(&profile, "tcp", STREAM, &plan);
    cr_expect_eq(uci_plan_choose(&plan, 1 << 20)->isa, isa);
    uci_profile_cleanup(&profile);
}

/* A profile may come from a machine that lies about its name: no kernel is used that this CPU does not have */
Test(tuner, kernels_of_other_cpus_are_ignored)
{
    uci_profile_t profile;

    uci_profile_init(&profile, "test", UCX);
    fill(uci_profile_add_kernel(&profile, UCI_DIGEST_XXH3, BEST_ISA, UCI_FORM_FUSED, true), 1, 1000);
    fill(uci_profile_add_kernel(&profile, UCI_DIGEST_XXH3, BEST_ISA, UCI_FORM_DIGEST, true), 1, 1000);
    cr_expect_leq(uci_tuner_best_isa(&profile, UCI_DIGEST_XXH3), uci_digest_isa_best());
    uci_profile_cleanup(&profile);
}

Test(tuner, refuses_another_machine)
{
    char path[PATH_MAX];
    uci_profile_t profile;
    char *said;

    uci_profile_init(&profile, "test", UCX);
    strcpy(profile.machine.cpu, "abacus");
    fill(uci_profile_add_path(&profile, "posix", UCI_PATH_STREAM, 4096), 1, 4);
    snprintf(path, sizeof(path), "%s/other.json", folder);
    cr_assert_eq(uci_profile_save(&profile, path), UCI_OK);
    setenv("UCI_PROFILE", path, 1);
    said = start_and_listen();
    cr_expect_not_null(strstr(said, "is not used: it is of cpu 'abacus'"), "%s", said);
    cr_expect_str_eq(uci_tuner_source(), "built in");
    cr_expect_eq(choose("posix", STREAM, 1 << 20).chunk_size, 8192);
    free(said);
    uci_profile_cleanup(&profile);
}

Test(tuner, a_named_profile_that_is_missing)
{
    char *said;

    setenv("UCI_PROFILE", "/no/such/%h.json", 1);
    said = start_and_listen();
    cr_expect_not_null(strstr(said, "there is no profile /no/such/"), "%s", said);
    cr_expect_str_eq(uci_tuner_source(), "built in");
    free(said);
}

Test(tuner, a_broken_profile_is_said_and_replaced_by_calibration)
{
    uci_profile_machine_t machine;
    char path[PATH_MAX];
    FILE *stream;
    char *said;

    uci_profile_machine_init(&machine, UCX);
    cr_assert_eq(uci_tuner_profile_path(&machine, path, sizeof(path)), UCI_OK);
    cr_assert_eq(uci_file_make_folder(path), UCI_OK);
    stream = fopen(path, "w");
    cr_assert_not_null(stream);
    fputs("{\"uci_profile\": 1, \"sou", stream);
    fclose(stream);
    said = start_and_listen();
    cr_expect_not_null(strstr(said, "is not used: line 1"), "%s", said);
    cr_expect_neq(strncmp(uci_tuner_source(), "profile", 7), 0);
    free(said);
}

/* @return the first letter of the source that a process finds which starts now */
static char start_in_child(void)
{
    int status;

    if (fork() == 0) {
        start();
        _exit(uci_tuner_source()[0]);
    }
    cr_assert_gt(wait(&status), 0);
    cr_assert(WIFEXITED(status));
    return (char)WEXITSTATUS(status);
}

/* A calibration is given up after 20 ms, which a busy machine may need for something else */
static void calibrate_in_child(void)
{
    unsigned tries;

    for (tries = 0; (tries < 200) && (start_in_child() != 'c'); ++tries) {
    }
    cr_assert_lt(tries, 200, "no calibration was ever completed");
}

Test(tuner, calibrates_once)
{
    struct stat first, second;
    uci_profile_t profile;
    const char *path;

    calibrate_in_child();
    path = find_cached("calibration-");
    cr_assert_not_null(path);
    cr_assert_str_eq(path + strlen(path) - 5, ".json", "the lock is gone: %s", path);
    cr_assert_eq(uci_profile_load(path, &profile), UCI_OK);
    cr_expect_not_null(uci_profile_find_kernel(&profile, UCI_DIGEST_XXH3, uci_digest_isa_best(), UCI_FORM_FUSED, true));
    cr_expect_not_null(uci_profile_find_kernel(&profile, UCI_DIGEST_NONE, UCI_DIGEST_ISA_SCALAR, UCI_FORM_FUSED, true));
    uci_profile_cleanup(&profile);

    cr_assert_eq(stat(path, &first), 0);
    cr_assert_eq(start_in_child(), 'c');
    cr_assert_eq(stat(path, &second), 0);
    cr_expect_eq(first.st_ino, second.st_ino, "made again");
}

/* An environment without home is none to calibrate in */
Test(tuner, no_home)
{
    unsetenv("XDG_CACHE_HOME");
    unsetenv("HOME");
    start();
    cr_expect_str_eq(uci_tuner_source(), "built in");
}

/* A folder that takes a new file, and no calibration: as on a full disk. Nothing is said of it, job after job */
Test(tuner, a_full_disk_is_not_worth_a_line)
{
    const struct rlimit limit = {.rlim_cur = 4096, .rlim_max = RLIM_INFINITY};
    test_capture_t capture    = test_capture_start();
    unsigned tries;
    char *said;

    cr_assert_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
    for (tries = 0; tries < 20; ++tries) { /* some calibrations take too long, and are not to be written */
        cr_expect_eq(start_in_child(), 'b');
    }
    said = test_capture_stop(&capture);
    cr_expect_str_empty(said);
    cr_expect_null(find_cached("calibration-"), "%s", find_cached("calibration-"));
    free(said);
}

static void make_lock(time_t age)
{
    struct timeval times[2] = {{.tv_sec = time(NULL) - age}, {.tv_sec = time(NULL) - age}};
    uci_profile_machine_t machine;
    char path[2 * PATH_MAX];
    FILE *stream;

    uci_profile_machine_init(&machine, UCX);
    snprintf(path, sizeof(path), "%s/uci/calibration-%s-%08x.json.lock", folder, uci_process_host(),
             uci_profile_machine_key(&machine));
    cr_assert_eq(uci_file_make_folder(path), UCI_OK);
    stream = fopen(path, "w");
    cr_assert_not_null(stream);
    fclose(stream);
    cr_assert_eq(utimes(path, times), 0);
}

Test(tuner, does_not_wait_for_another_process)
{
    uint64_t begin;

    make_lock(1);
    cr_assert_eq(uci_settings_read(), UCI_OK);
    begin = uci_process_time_ns();
    uci_tuner_init(UCX);
    cr_expect_lt(uci_process_time_ns() - begin, 1000000000ul);
    cr_expect_str_eq(uci_tuner_source(), "built in");
    cr_expect_eq(choose("posix", STREAM, 1 << 20).chunk_size, 8192);
}

Test(tuner, takes_away_a_lock_left_behind)
{
    make_lock(100000);
    calibrate_in_child();
}

/* By a process that was killed before the host had the time from the others */
Test(tuner, takes_away_a_lock_of_a_time_to_come)
{
    make_lock(-100000);
    calibrate_in_child();
}

/* All are told to go at the same moment. Nobody fails, and one whole file is left, or none if the machine was too busy
 * to calibrate. */
Test(tuner, many_start_at_once)
{
    const char *variable = getenv("TEST_RUNNERS");
    unsigned runners = (variable != NULL) ? (unsigned)atoi(variable) : RUNNERS, i, calibrated = 0, files = 0;
    int go[2], result[2], status;
    struct dirent *entry;
    uint64_t begin;
    pid_t child;
    char path[64], byte;
    DIR *dir;

    cr_assert_eq(pipe(go), 0);
    cr_assert_eq(pipe(result), 0);
    cr_assert_eq(uci_settings_read(), UCI_OK);
    for (i = 0; i < runners; ++i) {
        child = fork();
        cr_assert_geq(child, 0);
        if (child == 0) {
            close(go[1]);
            (void)!read(go[0], &byte, 1); /* the end of the pipe */
            uci_tuner_init(UCX);
            byte = uci_tuner_source()[0];
            _exit(write(result[1], &byte, 1) != 1);
        }
    }
    begin = uci_process_time_ns();
    close(go[0]);
    close(go[1]);
    for (i = 0; i < runners; ++i) {
        cr_assert_gt(wait(&status), 0);
        cr_expect_eq(status, 0);
        cr_assert_eq(read(result[0], &byte, 1), 1);
        cr_assert((byte == 'c') || (byte == 'b'), "source '%c'", byte);
        calibrated += (byte == 'c');
    }
    cr_log_info("%u processes: %lu ms, %u with the calibration", runners, (uci_process_time_ns() - begin) / 1000000,
                calibrated);
    snprintf(path, sizeof(path), "%s/uci", folder);
    dir = opendir(path);
    while ((entry = readdir(dir)) != NULL) {
        files += (entry->d_name[0] != '.');
    }
    closedir(dir);
    cr_expect_eq(files, (calibrated > 0), "%u files are left by %u", files, calibrated);
    calibrate_in_child();
}

Test(tuner, calibration_keeps_to_its_time)
{
    uint64_t begin;
    uci_profile_t profile;

    uci_digest_init();
    uci_profile_init(&profile, "test", UCX);
    begin = uci_process_time_ns();
    cr_expect_eq(uci_calibrate_quick(1000, &profile), UCI_ERR_BUSY, "1 us is not enough");
    cr_expect_lt(uci_process_time_ns() - begin, 1000000000ul);
    uci_profile_cleanup(&profile);
}

Test(tuner, calibration_measures_what_it_is_asked_for)
{
    static const size_t sizes[]   = {64, 4096};
    uci_calibrate_params_t params = {
            .sizes = sizes, .sizes_count = 2, .rounds = 1, .turn_ns = 1000, .uncached = 1 << 20, .all_isas = true};
    const uci_cost_t *cost;
    uci_profile_t profile;
    unsigned id;

    uci_digest_init();
    uci_profile_init(&profile, "test", UCX);
    cr_assert_eq(uci_calibrate(&params, &profile), UCI_OK);
    for (id = 1; id < UCI_DIGEST_LAST; ++id) {
        cost = uci_profile_find_kernel(&profile, (uci_digest_id_t)id, uci_digest_isa_best(), UCI_FORM_DIGEST, true);
        cr_assert((cost != NULL) || (id >= UCI_DIGEST_CRC32C), "digest %u", id);
        if (cost != NULL) {
            cr_expect_eq(cost->count, 2);
            cr_expect_gt(cost->points[0].ns, 0);
            cr_expect_gt(cost->points[1].ns, 0);
        }
    }
    cr_expect_not_null(uci_profile_find_kernel(&profile, UCI_DIGEST_XXH3, UCI_DIGEST_ISA_SCALAR, UCI_FORM_FAR, false));
    cr_expect_not_null(
            uci_profile_find_kernel(&profile, UCI_DIGEST_NONE, UCI_DIGEST_ISA_SCALAR, UCI_FORM_KERNEL, true));
    uci_profile_cleanup(&profile);
}

/* Finals give each finalist a time; what does the same under two names has the same time */
Test(tuner, calibration_compares_in_finals)
{
    static const size_t sizes[]   = {4096, 65536};
    uci_calibrate_params_t params = {.sizes       = sizes,
                                     .sizes_count = 2,
                                     .rounds      = 3,
                                     .turn_ns     = 1000,
                                     .uncached    = 1 << 20,
                                     .finals      = 5,
                                     .finalists   = 1u << UCI_DIGEST_XXH3};
    const uci_cost_t *fused, *far;
    uci_profile_t profile;
    unsigned i;

    uci_digest_init();
    uci_profile_init(&profile, "test", UCX);
    cr_assert_eq(uci_calibrate(&params, &profile), UCI_OK);
    fused = uci_profile_find_kernel(&profile, UCI_DIGEST_XXH3, uci_digest_isa_best(), UCI_FORM_FUSED, true);
    far   = uci_profile_find_kernel(&profile, UCI_DIGEST_XXH3, uci_digest_isa_best(), UCI_FORM_FAR, true);
    cr_assert_not_null(fused);
    cr_assert_not_null(far);
    for (i = 0; i < 2; ++i) {
        cr_expect_gt(fused->points[i].ns, 0);
        cr_expect_lt(fused->points[i].ns, 1e9);
    }
    cr_expect_eq(fused->points[0].ns, far->points[0].ns, "the same function below 16 KiB");
    cr_expect_neq(fused->points[1].ns, far->points[1].ns);
    uci_profile_cleanup(&profile);
}
