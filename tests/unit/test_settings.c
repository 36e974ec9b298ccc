/**
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "capture.h"
#include "locales.h"
#include "settings/settings.h"

#include <pthread.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char directory[] = "/tmp/uci-test-settings-XXXXXX";
static char conf_path[64];

static const char *const names[] = {
        "UCI_MODE",         "UCI_DIGEST",         "UCI_CHUNK_SIZE", "UCI_EAGER_MAX",     "UCI_LOG_SIZE",
        "UCI_LOG_LEVEL",    "UCI_ON_ERROR",       "UCI_ON_CHANGED", "UCI_FAULT",         "UCI_STATS",
        "UCI_EVENTS",       "UCI_MERKLE_ARITY",   "UCI_CAPTURE",    "UCI_CHECK_SOURCES", "UCI_ON_MISMATCH",
        "UCI_CARRIER",      "UCI_PATH",           "UCI_PROFILE",    "UCI_REQUIRE",       "UCI_BANNER",
        "UCI_CONNECT_WAIT", "UCI_LIVE",           "UCI_SYSLOG",     "UCI_TWINS",         "UCI_TWINS_MODE",
        "UCI_TWINS_WAIT",   "UCI_TWINS_LOG",      "UCI_TWINS_TIME", "UCI_TWINS_REPORT",  "UCI_SIGNATURES",
        "UCI_ON_SIGNATURE", "UCI_SIGNATURE_WAIT", "UCI_SEAL",       "UCI_SEAL_SCOPE",    "UCI_KEY_FILE",
        "UCI_SEAL_CIPHER",  "UCI_SEAL_LIBRARY",   "UCI_ALLREDUCE",  "UCI_CALLS",         "UCI_CHECK_CALLS",
        "UCI_UNBUFFERED"};

/* No setting of the machine or of the user who runs the tests. */
static void set_up(void)
{
    size_t i = 0;

    while (environ[i] != NULL) {
        char name[256];

        snprintf(name, sizeof(name), "%.*s", (int)strcspn(environ[i], "="), environ[i]);
        if (strncmp(name, "UCI_", 4) == 0) {
            unsetenv(name);
        } else {
            ++i;
        }
    }
    cr_assert(mkdtemp(directory) != NULL);
    snprintf(conf_path, sizeof(conf_path), "%s/.uci.conf", directory);
    setenv("HOME", directory, 1);
    setenv("UCI_CONFIG_FILE", "", 1);
}

static void tear_down(void)
{
    unlink(conf_path);
    rmdir(directory);
}

TestSuite(settings, .init = set_up, .fini = tear_down);

static void write_conf(const char *text)
{
    FILE *stream = fopen(conf_path, "w");

    cr_assert(stream != NULL);
    fputs(text, stream);
    fclose(stream);
    setenv("UCI_CONFIG_FILE", conf_path, 1);
}

/* @return what reading the settings printed, to be freed. */
static char *read_settings(uci_status_t expected)
{
    test_capture_t capture = test_capture_start();
    uci_status_t status    = uci_settings_read();
    char *text             = test_capture_stop(&capture);

    cr_assert(status == expected, "status %d: %s", status, text);
    return text;
}

static void read_silently(void)
{
    char *text = read_settings(UCI_OK);

    cr_expect(*text == '\0', "%s", text);
    free(text);
}

static unsigned lines(const char *text)
{
    unsigned count = 0;

    for (; *text != '\0'; ++text) {
        count += (*text == '\n');
    }
    return count;
}

static void expect_text(const char *text, const char *expected)
{
    cr_expect(strstr(text, expected) != NULL, "'%s' lacks '%s'", text, expected);
}

static char *print(unsigned flags)
{
    char *text = NULL;
    size_t length;
    FILE *stream = open_memstream(&text, &length);

    uci_settings_print(stream, flags);
    fclose(stream);
    return text;
}

Test(settings, defaults)
{
    read_silently();
    cr_expect(uci_settings.mode == UCI_MODE_REPAIR);
    cr_expect(uci_settings.digest == &uci_digest_auto);
    cr_expect(uci_settings.chunk_size == UCI_SETTING_AUTO);
    cr_expect(uci_settings.eager_max == UCI_SETTING_AUTO);
    cr_expect(uci_settings.log_size == 64u << 20);
    cr_expect(uci_settings.log_level == UCI_LOG_WARN);
    cr_expect(uci_settings.on_error == UCI_ON_ERROR_ABORT);
    cr_expect(uci_settings.on_changed == UCI_ON_CHANGED_WARN);
    cr_expect(uci_settings.fault.rate == 0);
    cr_expect(*uci_settings.stats == '\0');
    cr_expect(*uci_settings.events == '\0');
    cr_expect(uci_settings.merkle_arity == 16);
    cr_expect_str_eq(uci_settings.profile, "auto");
    cr_expect_str_eq(uci_settings.capture, "");
    cr_expect(!uci_settings.check_sources);
    cr_expect(uci_settings.on_mismatch == UCI_ON_MISMATCH_CONTINUE);
    cr_expect(uci_settings.path == UCI_PATH_AUTO);
    cr_expect_str_eq(uci_settings.live, "auto");
    cr_expect(!uci_settings.syslog);
    cr_expect((uci_settings.twins.folder == NULL) && (uci_settings.twins.of == 0));
    cr_expect(uci_settings.twins_mode == UCI_TWINS_COMPARE);
    cr_expect(uci_settings.twins_wait == 60);
    cr_expect(uci_settings.twins_log == 64u << 20);
    cr_expect(!uci_settings.twins_time);
    cr_expect_str_eq(uci_settings.twins_report, "");
    cr_expect((uci_settings.seal == UCI_SEAL_OFF) && (uci_settings.seal_scope == UCI_SEAL_SCOPE_NET));
    cr_expect((uci_settings.seal_cipher == UCI_SEAL_CIPHER_AUTO) &&
              (uci_settings.seal_library == UCI_SEAL_LIBRARY_AUTO));
    cr_expect_str_eq(uci_settings.key_file, "");
}

Test(settings, twins)
{
    setenv("UCI_TWINS", "/scratch/a, b,2/3", 1);
    setenv("UCI_TWINS_MODE", "correct", 1);
    setenv("UCI_TWINS_WAIT", "5", 1);
    setenv("UCI_TWINS_LOG", "1m", 1);
    setenv("UCI_TWINS_TIME", "on", 1);
    setenv("UCI_TWINS_REPORT", "/tmp/twins.%h.%p.json", 1);
    read_silently();
    cr_expect_str_eq(uci_settings.twins.folder, "/scratch/a, b");
    cr_expect((uci_settings.twins.twin == 2) && (uci_settings.twins.of == 3));
    cr_expect(uci_settings.twins_mode == UCI_TWINS_CORRECT);
    cr_expect((uci_settings.twins_wait == 5) && (uci_settings.twins_log == 1u << 20) && uci_settings.twins_time);
    cr_expect_str_eq(uci_settings.twins_report, "/tmp/twins.%h.%p.json");
}

Test(settings, two_twins_do_not_vote)
{
    char *text;

    setenv("UCI_TWINS", "/scratch,1/2", 1);
    setenv("UCI_TWINS_MODE", "correct", 1);
    text = read_settings(UCI_ERR_INVALID_PARAM);
    expect_text(text, "UCI_TWINS_MODE=correct needs three twins, which can vote, and UCI_TWINS says 1/2");
    free(text);
}

Test(settings, a_mode_without_twins_means_nothing)
{
    setenv("UCI_TWINS_MODE", "correct", 1);
    read_silently();
    cr_expect(uci_settings.twins.of == 0);
}

Test(settings, environment)
{
    setenv("UCI_MODE", "Detect", 1);
    setenv("UCI_DIGEST", "crc32c", 1);
    setenv("UCI_CHUNK_SIZE", "64K", 1);
    setenv("UCI_EAGER_MAX", "auto", 1);
    setenv("UCI_LOG_SIZE", "1g", 1);
    setenv("UCI_LOG_LEVEL", "info", 1);
    setenv("UCI_ON_ERROR", "log", 1);
    setenv("UCI_FAULT", "rate=0.25,kind=zero,seed=9", 1);
    setenv("UCI_STATS", "/tmp/%h-%r.json", 1);
    setenv("UCI_EVENTS", "events", 1);
    setenv("UCI_MERKLE_ARITY", "2", 1);
    setenv("UCI_CAPTURE", "/tmp/%h/capture", 1);
    setenv("UCI_CHECK_SOURCES", "1", 1);
    setenv("UCI_ON_MISMATCH", "pause", 1);
    read_silently();
    cr_expect(uci_settings.mode == UCI_MODE_DETECT);
    cr_expect(uci_settings.digest->id == UCI_DIGEST_CRC32C);
    cr_expect(uci_settings.chunk_size == 65536);
    cr_expect(uci_settings.eager_max == UCI_SETTING_AUTO);
    cr_expect(uci_settings.log_size == 1u << 30);
    cr_expect(uci_settings.log_level == UCI_LOG_INFO);
    cr_expect(uci_log_level == UCI_LOG_INFO);
    cr_expect(uci_settings.on_error == UCI_ON_ERROR_LOG);
    cr_expect((uci_settings.fault.rate == 0.25) && (uci_settings.fault.kinds == 1u << UCI_FAULT_ZERO));
    cr_expect(uci_settings.fault.seed == 9);
    cr_expect(strcmp(uci_settings.stats, "/tmp/%h-%r.json") == 0);
    cr_expect(strcmp(uci_settings.events, "events") == 0);
    cr_expect(uci_settings.merkle_arity == 2);
    cr_expect(strcmp(uci_settings.capture, "/tmp/%h/capture") == 0);
    cr_expect(uci_settings.check_sources);
    cr_expect(uci_settings.on_mismatch == UCI_ON_MISMATCH_PAUSE);
}

Test(settings, file_and_environment_wins)
{
    write_conf("# a comment\n"
               "\n"
               "  UCI_MODE = detect  \r\n"
               "UCI_EAGER_MAX=1k\n"
               "\t# UCI_DIGEST=none\n"
               "UCI_STATS=/tmp/a #b.json\n"
               "UCI_EVENTS=\n"
               "UCI_EAGER_MAX=2k\n"
               "UCI_ON_ERROR=log"); /* no newline at the end */
    setenv("UCI_ON_ERROR", "error", 1);
    read_silently();
    cr_expect(uci_settings.mode == UCI_MODE_DETECT);
    cr_expect(uci_settings.eager_max == 2048, "the last line wins");
    cr_expect(uci_settings.digest->id == UCI_DIGEST_XXH3);
    cr_expect(strcmp(uci_settings.stats, "/tmp/a #b.json") == 0);
    cr_expect(*uci_settings.events == '\0');
    cr_expect(uci_settings.on_error == UCI_ON_ERROR_ERROR);
}

Test(settings, a_byte_order_mark_is_no_part_of_a_name)
{
    write_conf("\xef\xbb\xbfUCI_MODE=detect\n");
    read_silently();
    cr_expect(uci_settings.mode == UCI_MODE_DETECT);
}

Test(settings, an_empty_variable_overrides_the_file)
{
    write_conf("UCI_FAULT=rate=1\n");
    setenv("UCI_FAULT", "", 1);
    read_silently();
    cr_expect(uci_settings.fault.rate == 0);
}

Test(settings, file_in_the_home_directory)
{
    write_conf("UCI_MODE=off\n");
    unsetenv("UCI_CONFIG_FILE");
    read_silently();
    cr_expect(uci_settings.mode == UCI_MODE_OFF);
}

Test(settings, empty_file_name_means_no_file)
{
    write_conf("UCI_MODE=off\n");
    setenv("UCI_CONFIG_FILE", "", 1);
    read_silently();
    cr_expect(uci_settings.mode == UCI_MODE_REPAIR);
}

Test(settings, a_named_file_must_exist)
{
    char *text;

    setenv("UCI_CONFIG_FILE", "/nonexistent/uci.conf", 1);
    text = read_settings(UCI_ERR_IO);
    expect_text(text, "cannot read /nonexistent/uci.conf, named by UCI_CONFIG_FILE: No such file or directory");
    cr_expect(uci_settings.mode == UCI_MODE_REPAIR);
    free(text);
}

Test(settings, a_directory_is_no_file)
{
    char *text;

    setenv("UCI_CONFIG_FILE", directory, 1);
    text = read_settings(UCI_ERR_IO);
    expect_text(text, "Is a directory");
    free(text);
}

/* None of these may hold the program up, or be read to its end: it has none */
static void expect_irregular(const char *path)
{
    char *text;

    setenv("UCI_CONFIG_FILE", path, 1);
    text = read_settings(UCI_ERR_IO);
    expect_text(text, "it is not a regular file");
    cr_expect(lines(text) == 1, "%s", text);
    cr_expect(uci_settings.mode == UCI_MODE_REPAIR);
    free(text);
}

Test(settings, no_file_is_zero, .timeout = 10)
{
    expect_irregular("/dev/zero");
}

Test(settings, no_file_is_random, .timeout = 10)
{
    expect_irregular("/dev/random");
}

Test(settings, no_file_is_a_pipe_without_a_writer, .timeout = 10)
{
    cr_assert(mkfifo(conf_path, 0600) == 0);
    expect_irregular(conf_path);
}

Test(settings, so_is_that_of_the_home_directory, .timeout = 10)
{
    char *text;

    unsetenv("UCI_CONFIG_FILE");
    cr_assert(mkfifo(conf_path, 0600) == 0);
    text = read_settings(UCI_ERR_IO);
    expect_text(text, "it is not a regular file");
    free(text);
}

Test(settings, the_null_device_is_an_empty_file)
{
    setenv("UCI_CONFIG_FILE", "/dev/null", 1);
    read_silently();
}

/* A program, a picture: not an error for each of its lines */
Test(settings, what_is_no_configuration_is_not_read_to_its_end)
{
    char junk[4001], *text;
    size_t i;

    for (i = 0; i < sizeof(junk) - 1; ++i) {
        junk[i] = (i % 4 == 3) ? '\n' : 'x';
    }
    junk[sizeof(junk) - 1] = '\0';
    write_conf(junk);
    text = read_settings(UCI_ERR_INVALID_PARAM);
    expect_text(text, "is not read further than line 10");
    cr_expect(lines(text) == 11, "%s", text);
    free(text);
}

Test(settings, a_file_may_be_too_large)
{
    char *text;

    write_conf("UCI_MODE=detect\n");
    cr_assert(truncate(conf_path, 1l << 40) == 0);
    text = read_settings(UCI_ERR_IO);
    expect_text(text, "it is too large");
    cr_expect(uci_settings.mode == UCI_MODE_REPAIR);
    free(text);
}

Test(settings, bad_values_are_explained)
{
    static const struct {
        const char *name, *value, *allowed;
    } cases[] = {
            {"UCI_MODE", "fast", "[off|detect|repair]"},
            {"UCI_MODE", "", "[off|detect|repair]"},
            {"UCI_DIGEST", "md5", "xxh3"},
            {"UCI_CHUNK_SIZE", "255", "256 to 16m"},
            {"UCI_CHUNK_SIZE", "17m", "256 to 16m"},
            {"UCI_EAGER_MAX", "32769", "0 to 32k"},
            {"UCI_EAGER_MAX", "8q", "0 to 32k"},
            {"UCI_LOG_SIZE", "auto", "1024g"},
            {"UCI_LOG_LEVEL", "loud", "debug"},
            {"UCI_ON_ERROR", "ignore", "[abort|error|log]"},
            {"UCI_ON_CHANGED", "log", "[warn|abort]"},
            {"UCI_FAULT", "rate=2", "a probability from 0 to 1"},
            {"UCI_STATS", "/tmp/%q", "%h, %p, %r"},
            {"UCI_EVENTS", "x%", "%h, %p, %r"},
            {"UCI_CALLS", "x%q", "%h, %p, %r"},
            {"UCI_CHECK_CALLS", "2", "[off|on], or 0 or 1"},
            {"UCI_UNBUFFERED", "2", "[off|on], or 0 or 1"},
            {"UCI_MERKLE_ARITY", "1", "2 to 256"},
            {"UCI_MERKLE_ARITY", "257", "2 to 256"},
            {"UCI_MERKLE_ARITY", "-2", "2 to 256"},
            {"UCI_MERKLE_ARITY", "16k", "2 to 256"},
            {"UCI_LIVE", "", "the name of a folder"},
            {"UCI_LIVE", "/tmp/%x", "the name of a folder"},
            {"UCI_REQUIRE", "2", "[off|on], or 0 or 1"},
            {"UCI_BANNER", "", "[off|on], or 0 or 1"},
            {"UCI_SYSLOG", "maybe", "[off|on], or 0 or 1"},
            {"UCI_CHECK_SOURCES", "2", "[off|on], or 0 or 1"},
            {"UCI_TWINS", "/scratch", "expected FOLDER,K/N"},
            {"UCI_TWINS", "/scratch,1", "expected FOLDER,K/N"},
            {"UCI_TWINS", "/scratch,-1/2", "expected FOLDER,K/N"},
            {"UCI_TWINS", "/scratch,1/2 ", "expected FOLDER,K/N"},
            {"UCI_TWINS", "/scratch,0/1", "there are 2 or 3 twins, not 1"},
            {"UCI_TWINS", "/scratch,0/4", "there are 2 or 3 twins, not 4"},
            {"UCI_TWINS", "/scratch,2/2", "the last of 2 is 1/2"},
            {"UCI_TWINS", ",0/2", "no folder is named"},
            {"UCI_TWINS_MODE", "vote", "[compare|correct]"},
            {"UCI_TWINS_WAIT", "0", "1 to 86400 seconds"},
            {"UCI_TWINS_WAIT", "1h", "1 to 86400 seconds"},
            {"UCI_TWINS_LOG", "63k", "64k to 1024g"},
            {"UCI_TWINS_TIME", "2", "[off|on], or 0 or 1"},
            {"UCI_TWINS_REPORT", "%x", "%h, %p, %r"},
            {"UCI_SEAL", "on", "[off|sign|encrypt]"},
            {"UCI_SEAL_SCOPE", "node", "[net|all]"},
            {"UCI_KEY_FILE", "/tmp/%k", "%h, %p, %r"},
            {"UCI_SEAL_CIPHER", "aes", "[auto|aes128|aes256|chacha20]"},
            {"UCI_SEAL_LIBRARY", "gnutls", "[auto|openssl|ipsec-mb]"},
    };
    char expected[128];
    int status;
    size_t i;
    pid_t pid;

    for (i = 0; i < uci_array_size(cases); ++i) {
        pid = fork(); /* settings are read once in a process */
        if (pid == 0) {
            char *text;

            setenv(cases[i].name, cases[i].value, 1);
            text = read_settings(UCI_ERR_INVALID_PARAM);
            snprintf(expected, sizeof(expected), "UCI ERROR %s=%s in the environment is not valid: ", cases[i].name,
                     cases[i].value);
            _exit((strstr(text, expected) != NULL) && (strstr(text, cases[i].allowed) != NULL) && (lines(text) == 1)
                          ? 0
                          : 1);
        }
        cr_assert(waitpid(pid, &status, 0) == pid);
        cr_expect(WIFEXITED(status) && (WEXITSTATUS(status) == 0), "%s=%s", cases[i].name, cases[i].value);
    }
}

Test(settings, every_bad_value_is_reported_and_replaced)
{
    char *text, expected[128];

    write_conf("UCI_MODE=detect\nUCI_EAGER_MAX=1m\n");
    setenv("UCI_DIGEST", "md5", 1);
    text = read_settings(UCI_ERR_INVALID_PARAM);
    snprintf(expected, sizeof(expected), "UCI_EAGER_MAX=1m at %s:2 is not valid: expected auto, or 0 to 32k",
             conf_path);
    expect_text(text, expected);
    expect_text(text, "UCI_DIGEST=md5 in the environment");
    cr_expect(lines(text) == 2, "%s", text);
    cr_expect(uci_settings.mode == UCI_MODE_DETECT);
    cr_expect(uci_settings.eager_max == UCI_SETTING_AUTO);
    cr_expect(uci_settings.digest->id == UCI_DIGEST_XXH3);
    free(text);
}

Test(settings, a_bad_value_in_the_file_does_not_matter_if_overridden)
{
    write_conf("UCI_MODE=fast\n");
    setenv("UCI_MODE", "off", 1);
    read_silently();
}

Test(settings, a_line_must_be_an_assignment)
{
    char *text, expected[128];

    write_conf("\nUCI_MODE off\n");
    text = read_settings(UCI_ERR_INVALID_PARAM);
    snprintf(expected, sizeof(expected), "'UCI_MODE off' at %s:2 is not valid: expected NAME=value", conf_path);
    expect_text(text, expected);
    free(text);
}

Test(settings, unknown_names_are_one_warning)
{
    char *text, expected[128];

    write_conf("UCI_MODE=off\nUCI_DIGSET=none\nEAGER_MAX=1\nUCI_CONFIG_FILE=x\n");
    setenv("UCI_MDOE", "off", 1);
    setenv("UCI_merkle_arity", "3", 1);
    setenv("UCI_A_NAME_OF_MORE_THAN_SIXTY_FOUR_CHARACTERS_THAT_NOBODY_WOULD_EVER_USE_FOR_A_SETTING", "", 1);
    setenv("UCIMODE", "off", 1); /* none of ours */
    text = read_settings(UCI_OK);

    cr_expect(lines(text) == 1, "%s", text);
    expect_text(text, "UCI WARN  unknown settings: ");
    expect_text(text, "UCI_MDOE in the environment (nearest: UCI_MODE)");
    expect_text(text, "UCI_merkle_arity in the environment (nearest: UCI_MERKLE_ARITY)");
    expect_text(text, "UCI_A_NAME_OF_MORE_THAN_");
    snprintf(expected, sizeof(expected), "UCI_DIGSET at %s:2 (nearest: UCI_DIGEST)", conf_path);
    expect_text(text, expected);
    snprintf(expected, sizeof(expected), "EAGER_MAX at %s:3 (nearest: UCI_EAGER_MAX)", conf_path);
    expect_text(text, expected);
    cr_expect(strstr(text, "UCIMODE") == NULL);
    cr_expect(uci_settings.mode == UCI_MODE_OFF);
    free(text);
}

Test(settings, the_level_holds_for_the_warning)
{
    write_conf("UCI_MDOE=off\nUCI_LOG_LEVEL=error\n");
    read_silently();
}

Test(settings, read_once)
{
    char *text;

    setenv("UCI_MODE", "fast", 1);
    free(read_settings(UCI_ERR_INVALID_PARAM));
    setenv("UCI_MODE", "off", 1);
    text = read_settings(UCI_ERR_INVALID_PARAM);
    cr_expect(*text == '\0', "logged twice");
    cr_expect(uci_settings.mode == UCI_MODE_REPAIR);
    free(text);
}

static void *read_in_thread(void *arg)
{
    *(uci_status_t *)arg = uci_settings_read();
    return NULL;
}

Test(settings, threads_may_meet)
{
    test_capture_t capture = test_capture_start();
    uci_status_t statuses[8];
    pthread_t threads[8];
    char *text;
    size_t i;

    setenv("UCI_MODE", "fast", 1);
    for (i = 0; i < uci_array_size(threads); ++i) {
        cr_assert(pthread_create(&threads[i], NULL, read_in_thread, &statuses[i]) == 0);
    }
    for (i = 0; i < uci_array_size(threads); ++i) {
        pthread_join(threads[i], NULL);
        cr_expect(statuses[i] == UCI_ERR_INVALID_PARAM);
    }
    text = test_capture_stop(&capture);
    cr_expect(lines(text) == 1, "%s", text);
    free(text);
}

/* What is printed is a uci.conf that gives the same settings. */
static void check_round_trip(unsigned flags)
{
    static const char *const settings[][2] = {
            {"UCI_FAULT",
             "rate=0.001,kind=bitflip+burst+zero+stale+swap+truncate,target=payload+header+tree+ack+repair,"
             "seed=1,count=3,min=1024,peer=2"},
            {"UCI_CHUNK_SIZE", "300"},
            {"UCI_EAGER_MAX", "0"},
            {"UCI_LOG_SIZE", "2g"},
            {"UCI_STATS", "/tmp/%h.json"},
            {"UCI_MODE", "detect"},
            {"UCI_DIGEST", "crc64"},
            {"UCI_MERKLE_ARITY", "4"},
            {"UCI_PROFILE", "/tmp/%h.json"},
            {"UCI_CARRIER", "am"},
            {"UCI_PATH", "stream"},
            {"UCI_LIVE", "/tmp/%h"},
            {"UCI_SYSLOG", "on"},
            {"UCI_CHECK_SOURCES", "on"},
            {"UCI_CALLS", "/tmp/%h"},
            {"UCI_CHECK_CALLS", "on"},
            {"UCI_UNBUFFERED", "on"},
            {"UCI_TWINS", "/tmp/a,b,1/3"},
            {"UCI_TWINS_MODE", "correct"},
            {"UCI_TWINS_WAIT", "7"},
            {"UCI_TWINS_LOG", "1m"},
            {"UCI_TWINS_TIME", "on"},
            {"UCI_TWINS_REPORT", "/tmp/%h.%p.json"},
            {"UCI_SEAL", "encrypt"},
            {"UCI_SEAL_SCOPE", "all"},
            {"UCI_KEY_FILE", "/tmp/%h.key"},
            {"UCI_SEAL_CIPHER", "chacha20"},
            {"UCI_SEAL_LIBRARY", "ipsec-mb"},
            {"UCI_LOG_LEVEL", "info"}};
    char expected[256], *text;
    int status;
    size_t i;
    pid_t pid;

    pid = fork(); /* settings are read once in a process */
    if (pid == 0) {
        for (i = 0; i < uci_array_size(settings); ++i) {
            setenv(settings[i][0], settings[i][1], 1);
        }
        read_silently();
        write_conf(print(flags));
        _exit(0);
    }
    cr_assert(waitpid(pid, &status, 0) == pid);
    cr_assert(status == 0);

    setenv("UCI_CONFIG_FILE", conf_path, 1);
    read_silently();
    text = print(UCI_SETTINGS_PRINT_VALUE);
    for (i = 0; i < uci_array_size(settings); ++i) {
        snprintf(expected, sizeof(expected), "%s=%s\n", settings[i][0], settings[i][1]);
        expect_text(text, expected);
    }
    free(text);
}

Test(settings, printed_values_read_back)
{
    check_round_trip(UCI_SETTINGS_PRINT_VALUE);
}

Test(settings, printed_documentation_reads_back)
{
    check_round_trip(UCI_SETTINGS_PRINT_VALUE | UCI_SETTINGS_PRINT_DOC);
}

Test(settings, values_are_one_line_each)
{
    char *text, expected[64];
    size_t i;

    read_silently();
    text = print(UCI_SETTINGS_PRINT_VALUE);
    cr_expect(lines(text) == uci_array_size(names), "%s", text);
    for (i = 0; i < uci_array_size(names); ++i) {
        snprintf(expected, sizeof(expected), "%s=", names[i]);
        expect_text(text, expected);
    }
    expect_text(text, "UCI_CHUNK_SIZE=auto\n");
    expect_text(text, "UCI_EAGER_MAX=auto\n");
    expect_text(text, "UCI_LOG_SIZE=64m\n");
    expect_text(text, "UCI_FAULT=\n");
    free(text);
}

Test(settings, documentation_is_complete)
{
    char *text, *save, *line;
    unsigned id, syntax = 0;

    write_conf("\n\nUCI_MODE=off\n");
    setenv("UCI_ON_ERROR", "log", 1);
    read_silently();
    text = print(UCI_SETTINGS_PRINT_VALUE | UCI_SETTINGS_PRINT_DOC);

    expect_text(text, "# set by:    default\n");
    expect_text(text, "# set by:    environment\n");
    expect_text(text, "/.uci.conf:3\n");
    for (id = 0; id < UCI_DIGEST_LAST; ++id) { /* UCI_DIGEST's syntax lists them all */
        expect_text(text, uci_digest_table[id].name);
    }
    for (line = strtok_r(text, "\n", &save); line != NULL; line = strtok_r(NULL, "\n", &save)) {
        syntax += (strncmp(line, "# syntax:    ", 13) == 0);
        cr_expect(strlen(line) <= 100, "%s", line);
        cr_expect((*line == '#') || (strncmp(line, "UCI_", 4) == 0), "%s", line);
    }
    cr_expect(syntax == uci_array_size(names));
    free(text);
}

/* Nobody shall believe that messages are sealed which pass by */
Test(settings, sealing_needs_a_mode)
{
    char *text;

    setenv("UCI_SEAL", "sign", 1);
    setenv("UCI_MODE", "off", 1);
    text = read_settings(UCI_ERR_INVALID_PARAM);
    expect_text(text, "UCI_SEAL=sign needs UCI_MODE=repair or detect");
    free(text);
}

Test(settings, switches_are_on_or_off)
{
    setenv("UCI_REQUIRE", "1", 1);
    setenv("UCI_BANNER", "No", 1);
    setenv("UCI_CHECK_SOURCES", "ON", 1);
    setenv("UCI_SYSLOG", "y", 1);
    read_silently();
    cr_expect(uci_settings.require);
    cr_expect(!uci_settings.banner);
    cr_expect(uci_settings.check_sources);
    cr_expect(uci_settings.syslog);
}

Test(settings, switches_are_printed_as_off_or_on)
{
    char *text;

    setenv("UCI_REQUIRE", "0", 1);
    setenv("UCI_BANNER", "1", 1);
    setenv("UCI_CHECK_SOURCES", "1", 1);
    setenv("UCI_SYSLOG", "n", 1);
    read_silently();
    text = print(UCI_SETTINGS_PRINT_VALUE);
    expect_text(text, "UCI_REQUIRE=off\n");
    expect_text(text, "UCI_BANNER=on\n");
    expect_text(text, "UCI_CHECK_SOURCES=on\n");
    expect_text(text, "UCI_SYSLOG=off\n");
    free(text);
}

Test(settings, the_beginning_of_a_name_is_near_to_it)
{
    char *text;

    setenv("UCI_CHUNK", "8k", 1);
    setenv("UCI_EAGER", "8k", 1);
    setenv("UCI_MERKLE", "8", 1);
    text = read_settings(UCI_OK);
    expect_text(text, "UCI_CHUNK in the environment (nearest: UCI_CHUNK_SIZE)");
    expect_text(text, "UCI_EAGER in the environment (nearest: UCI_EAGER_MAX)");
    expect_text(text, "UCI_MERKLE in the environment (nearest: UCI_MERKLE_ARITY)");
    free(text);
}

/* Words are what they are, whatever the program's language */
Test(settings, words_in_a_turkish_locale)
{
    turkish_locale_set();
    setenv("UCI_MODE", "REPAIR", 1);
    setenv("UCI_PATH", "DIRECT", 1);
    setenv("UCI_FAULT", "RATE=0.5,KIND=BITFLIP+Truncate,MIN=1K", 1);
    setenv("UCI_DIGEST", "XXH3", 1);
    setenv("UCI_CHUNK_SIZE", "AUTO", 1);
    read_silently();
    cr_expect_eq(uci_settings.mode, UCI_MODE_REPAIR);
    cr_expect_eq(uci_settings.path, UCI_PATH_DIRECT);
    cr_expect_eq(uci_settings.fault.kinds, (1u << UCI_FAULT_BITFLIP) | (1u << UCI_FAULT_TRUNCATE));
    cr_expect_eq(uci_settings.fault.min, 1024);
}
