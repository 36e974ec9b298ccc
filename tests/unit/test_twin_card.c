/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * What processes of twins tell each other about themselves, and what must be the same.
 */
#include "capture.h"
#include "digest/digest.h"
#include "util/process.h"
#include "twin/twin_card.h"
#include "twin_settings.h"

#include <inttypes.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static uint8_t address[] = {0x00, 0x1f, 0xff, 0xa0};

static void read_settings(void)
{
    test_twin_settings("/tmp/twins,1/3", "5", "8");
}

TestSuite(twin_card, .init = read_settings);

static void fill(uci_twin_card_t *card)
{
    cr_assert_eq(uci_twin_card_fill(card), UCI_OK);
    card->address        = address;
    card->address_length = sizeof(address);
}

static char *format(const uci_twin_card_t *card, size_t *length_p)
{
    char *text;

    cr_assert_eq(uci_twin_card_format(card, &text, length_p), UCI_OK);
    cr_assert_eq(strlen(text), *length_p);
    return text;
}

static void parse(char *text, uci_twin_card_t *card_p)
{
    const char *reason;

    cr_assert_eq(uci_twin_card_parse(text, strlen(text), card_p, &reason), UCI_OK, "%s", reason);
}

Test(twin_card, says_who_this_is)
{
    uci_twin_card_t card;

    fill(&card);
    cr_expect((card.twin == 1) && (card.of == 3) && (card.rank == 5) && (card.ranks == 8) && (card.pid == getpid()));
    cr_expect_str_eq(card.host, uci_process_host());
    cr_expect_str_eq(card.digest, "xxh3"); /* not auto: see UCI_TWINS_CHUNK */
    cr_expect((card.chunk == UCI_TWINS_CHUNK) && (card.mode == UCI_TWINS_COMPARE) &&
              (card.protocol == UCI_TWIN_PROTOCOL));
    cr_expect(strstr(card.program, "test_twin_card") != NULL, "%s", card.program);
    cr_expect((card.program_id != 0) && (card.start != 0));
}

Test(twin_card, needs_a_rank)
{
    test_capture_t capture;
    uci_twin_card_t card;
    char *text;

    unsetenv("PMI_RANK");
    unsetenv("SLURM_PROCID");
    capture = test_capture_start();
    cr_expect_eq(uci_twin_card_fill(&card), UCI_ERR_UNSUPPORTED);
    text = test_capture_stop(&capture);
    cr_expect(strstr(text, "UCI_TWINS needs to know which rank this process is") != NULL, "%s", text);
    free(text);
}

/* Its arguments are those of a program that has been started with them: this one, again */
static void run_again(const char *first, const char *second, uci_twin_card_t *card_p)
{
    char path[4096], *text;
    ssize_t length;
    int pipe_fds[2];
    pid_t pid;

    length = readlink("/proc/self/exe", path, sizeof(path) - 1);
    cr_assert(length > 0);
    path[length] = '\0';
    cr_assert_eq(pipe(pipe_fds), 0);
    pid = fork();
    if (pid == 0) {
        dup2(pipe_fds[1], STDOUT_FILENO);
        setenv("TEST_TWIN_CARD_PRINT", "1", 1);
        execl(path, "any name", first, second, (char *)NULL);
        _exit(1);
    }
    close(pipe_fds[1]);
    text   = calloc(1, UCI_TWIN_CARD_MAX);
    length = 0;
    while (length < (ssize_t)UCI_TWIN_CARD_MAX - 1) {
        ssize_t count = read(pipe_fds[0], text + length, UCI_TWIN_CARD_MAX - 1 - (size_t)length);

        if (count <= 0) {
            break;
        }
        length += count;
    }
    close(pipe_fds[0]);
    waitpid(pid, NULL, 0);
    parse(text, card_p);
    free(text);
}

/* Before Criterion's main() */
__attribute__((constructor)) static void print_card(void)
{
    uci_twin_card_t card;
    size_t length;
    char *text;

    if (getenv("TEST_TWIN_CARD_PRINT") == NULL) {
        return;
    }
    if ((uci_settings_read() != UCI_OK) || (uci_twin_card_fill(&card) != UCI_OK) ||
        (uci_twin_card_format(&card, &text, &length) != UCI_OK)) {
        _exit(1);
    }
    printf("%s", text);
    fflush(stdout);
    _exit(0);
}

Test(twin_card, arguments)
{
    uci_twin_card_t one, same, other, joined;
    char text[512];

    run_again("in.lj", "-v x 1", &one);
    run_again("in.lj", "-v x 1", &same);
    run_again("in.lj", "-v x 2", &other);
    run_again("in.lj -v", "x 1", &joined);
    cr_expect_str_eq(one.arguments, "in.lj -v x 1");
    cr_expect(!uci_twin_card_differs(&one, &same, text, sizeof(text)));
    cr_expect(uci_twin_card_differs(&one, &other, text, sizeof(text)));
    cr_expect(strstr(text, "the program has different arguments: in.lj -v x 1 in twin 1") != NULL, "%s", text);
    cr_expect_str_eq(one.arguments, joined.arguments);
    cr_expect(uci_twin_card_differs(&one, &joined, text, sizeof(text)), "an argument with a blank is not two");
}

Test(twin_card, is_read_as_it_was_written)
{
    char *text, *again, copy[8192];
    uci_twin_card_t card, read;
    size_t length;

    fill(&card);
    card.chunk = 65536;
    card.mode  = UCI_TWINS_CORRECT;
    strcpy(card.job, "slurm:17 of \"me\"");
    text = format(&card, &length);
    cr_assert(length < sizeof(copy));
    strcpy(copy, text);
    parse(text, &read);
    cr_assert_eq(read.address_length, sizeof(address));
    cr_expect_arr_eq(read.address, address, sizeof(address));
    again = format(&read, &length);
    cr_expect_str_eq(again, copy);
    uci_twin_card_cleanup(&read);
    cr_expect_null(read.address);
    free(again);
    free(text);
}

Test(twin_card, text_stays_a_line)
{
    uci_twin_card_t card, read;
    size_t length;
    char *text;

    setenv("SLURM_JOB_ID", "a\nrank 7\x1b[31m", 1);
    fill(&card);
    text = format(&card, &length);
    parse(text, &read);
    cr_expect_str_eq(read.job, "slurm:a?rank 7?[31m");
    cr_expect_eq(read.rank, 5);
    uci_twin_card_cleanup(&read);
    free(text);
}

static void expect_refused(const char *original, size_t length, const char *reason)
{
    uci_twin_card_t card;
    const char *said;
    char *text = malloc(length + 1);

    memcpy(text, original, length);
    text[length] = '\0';
    cr_expect_eq(uci_twin_card_parse(text, length, &card, &said), UCI_ERR_INVALID_PARAM);
    cr_expect(strstr(said, reason) != NULL, "'%s', not '%s'", said, reason);
    free(text);
}

Test(twin_card, any_damage_is_seen)
{
    uci_twin_card_t card;
    size_t length, i;
    char *text;

    fill(&card);
    text = format(&card, &length);
    for (i = 0; i < length; ++i) {
        expect_refused(text, i, ""); /* cut off */
        text[i] = (char)(text[i] ^ 1);
        expect_refused(text, length, "it is ");
        text[i] = (char)(text[i] ^ 1);
    }
    free(text);
}

/* The text with one replacement, and an end that belongs to it */
static char *change(const char *text, const char *what, const char *with)
{
    const char *place = strstr(text, what), *end = strstr(text, "\nend ");
    char *changed = NULL;
    size_t length;
    FILE *stream = open_memstream(&changed, &length);

    cr_assert(place != NULL, "no '%s'", what);
    fprintf(stream, "%.*s%s%.*s", (int)(place - text), text, with, (int)(end + 1 - place - strlen(what)),
            place + strlen(what));
    fflush(stream);
    fprintf(stream, "end %016" PRIx64 "\n", uci_digest_table[UCI_DIGEST_XXH3].digest(changed, length));
    fclose(stream);
    return changed;
}

Test(twin_card, what_is_not_valid_is_refused)
{
    static const struct {
        const char *what, *with, *reason;
    } cases[] = {{"uci-twin 1", "uci-twin 2", "another version"},
                 {"\nrank 5\n", "\n", "a line is missing"},
                 {"\nrank 5\n", "\nrank 5\nrank 5\n", "there twice"},
                 {"\nrank 5\n", "\nrank\n", "no value"},
                 {"\nrank 5\n", "\nrank -5\n", "not valid"},
                 {"\nrank 5\n", "\nrank 4294967301\n", "not valid"},
                 {"\nrank 5\n", "\nrank 99999999999999999999999\n", "not valid"},
                 {"\nrank 5\n", "\nrank 8\n", "there is not"},
                 {"\ntwin 1\n", "\ntwin 3\n", "not valid"},
                 {"\nof 3\n", "\nof 4\n", "not valid"},
                 {"\nmode 0\n", "\nmode 2\n", "not valid"},
                 {"\ndigest xxh3\n", "\ndigest \x1b[31m\n", "not valid"},
                 {"\naddress 001fffa0\n", "\naddress 001fffa\n", "not valid"},
                 {"\naddress 001fffa0\n", "\naddress 001fffa0 \n", "not valid"},
                 {"\naddress 001fffa0\n", "\naddress 001FFFA0\n", "not valid"}};
    char *text, *changed;
    uci_twin_card_t card;
    size_t length, i;

    fill(&card);
    card.pid = 0;
    text     = format(&card, &length);
    expect_refused(text, length, "not valid");
    free(text);
    card.pid = getpid();
    text     = format(&card, &length);
    for (i = 0; i < uci_array_size(cases); ++i) {
        changed = change(text, cases[i].what, cases[i].with);
        expect_refused(changed, strlen(changed), cases[i].reason);
        free(changed);
    }
    free(text);
}

Test(twin_card, what_is_not_known_is_passed_over)
{
    uci_twin_card_t card, read;
    char *text, *changed;
    size_t length;

    fill(&card);
    text    = format(&card, &length);
    changed = change(text, "\nrank 5\n", "\nrank 5\nmoon full\n\n");
    parse(changed, &read);
    cr_expect_eq(read.rank, 5);
    uci_twin_card_cleanup(&read);
    free(changed);
    free(text);
}

Test(twin_card, what_must_be_the_same)
{
    uci_twin_card_t ours, theirs;
    char text[512];

#define EXPECT_DIFFERS(_change, _said) \
    do { \
        theirs      = ours; \
        theirs.twin = 2; \
        theirs.pid  = 77; \
        _change; \
        cr_expect(uci_twin_card_differs(&ours, &theirs, text, sizeof(text))); \
        cr_expect(strstr(text, _said) != NULL, "'%s' lacks '%s'", text, _said); \
    } while (0)

    fill(&ours);
    strcpy(ours.host, "node1");
    ours.pid = 66;
    theirs   = ours;
    cr_expect(!uci_twin_card_differs(&ours, &theirs, text, sizeof(text)));
    strcpy(theirs.host, "node2");
    strcpy(theirs.program, "/another/place/of/the/same");
    strcpy(theirs.job, "slurm:2");
    cr_expect(!uci_twin_card_differs(&ours, &theirs, text, sizeof(text)), "%s", text);

    EXPECT_DIFFERS(theirs.ranks = 16,
                   "they have different numbers of ranks: 8 in twin 1 (node1:66), 16 in twin 2 (node1:77)");
    EXPECT_DIFFERS(theirs.program_id ^= 1, "the file of the program has another content");
    EXPECT_DIFFERS(strcpy(theirs.program, "/bin/other"); theirs.program_id ^= 1, "they run different programs: /");
    EXPECT_DIFFERS(strcpy(theirs.program, "/bin/other"); theirs.program_id = 0, "/bin/other in twin 2 (node1:77)");
    EXPECT_DIFFERS(theirs.of = 2, "UCI_TWINS says different numbers of twins: 3 in twin 1");
    EXPECT_DIFFERS(theirs.mode = UCI_TWINS_CORRECT, "UCI_TWINS_MODE: compare in twin 1");
    EXPECT_DIFFERS(strcpy(theirs.digest, "crc64"), "UCI_DIGEST: xxh3 in twin 1");
    EXPECT_DIFFERS(theirs.chunk = 4096, "UCI_CHUNK_SIZE: 32768 in twin 1 (node1:66), 4096 in twin 2");
    EXPECT_DIFFERS(strcpy(theirs.version, "9.9 (abc)"), "different versions of UCI");
    EXPECT_DIFFERS(theirs.protocol += 1, "different versions of UCI");
#undef EXPECT_DIFFERS
}
