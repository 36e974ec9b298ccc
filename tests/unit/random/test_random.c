/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Random worlds, thousands in a second: see world.h, oracle.h, faults.h. Each follows from one number, and is run again by it.
 *
 *     test_random                        the first thousands of worlds, as CI does
 *     test_random --faults-total 1e7     until there have been so many faults
 *     test_random --world 0x123 -v       one world, told
 *
 * --help lists the options.
 */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <malloc.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cpu_limit.h"
#include "faults.h"
#include "protocol.h"
#include "shrink.h"
#include "world.h"

#define WORLD_S       20 /* of processor time, after which a world hangs */
#define PROCESSES_MAX 64
#ifdef __SANITIZE_ADDRESS__
#define WORLDS 1000u
#else
#define WORLDS 5000u
#endif

/* One process that runs worlds */
typedef struct runner {
    uint64_t worlds;
    uint64_t seed; /* of the world it is in */
    int verdict;
    char text[512];
    faults_counts_t counts;
    bool stop;
} runner_t;

static const struct option long_options[] = {{"faults", required_argument, NULL, 'f'},
                                             {"faults-total", required_argument, NULL, 'n'},
                                             {"worlds", required_argument, NULL, 'm'},
                                             {"seconds", required_argument, NULL, 's'},
                                             {"seed", required_argument, NULL, 'r'},
                                             {"world", required_argument, NULL, 'w'},
                                             {"processes", required_argument, NULL, 'j'},
                                             {"failures", required_argument, NULL, 'x'},
                                             {"tries", required_argument, NULL, 't'},
                                             {"twice", no_argument, NULL, '2'},
                                             {"verbose", no_argument, NULL, 'v'},
                                             {"cells", no_argument, NULL, 'c'},
                                             {"seal", required_argument, NULL, 'k'},
                                             {"help", no_argument, NULL, 'h'},
                                             {NULL, 0, NULL, 0}};

static const char usage[] =
        "usage: test_random [options]\n"
        "  -f, --faults CLASSES     content,stale,memory,reorder,duplicate,drop,reopen (see scenario.h); wire: all but reopen; reliable:\n"
        "                           content,memory; all                                                    [%s]\n"
        "  -n, --faults-total N     until there have been so many faults\n"
        "  -m, --worlds N           until there have been so many worlds; the first ones are always the same  [%u]\n"
        "  -s, --seconds N          for so long\n"
        "  -r, --seed N             of the first world; the others follow from it                             [1]\n"
        "  -j, --processes N        at a time                                                                 [1]\n"
        "  -x, --failures N         stop after so many worlds that failed                                     [1]\n"
        "  -t, --tries N            to make a world that failed smaller; 0: neither that nor told            [3000]\n"
        "  -w, --world SEED         this world only; smaller, and told, if it fails\n"
        "  -2, --twice              each world twice, to see whether all of it follows from its seed\n"
        "  -k, --seal MODE          sign, encrypt: workers seal all that they say (UCI_SEAL, with a key of the test's own)\n"
        "  -c, --cells              fail if a cell of the conversations' table is not reached\n"
        "  -v, --verbose            tell the world as it is; or which states were reached by which messages\n";

static const char *classes_text = "all";
static unsigned classes;
static uint64_t seed = 1, faults_total, worlds_total, world_seed;
static double seconds;
static unsigned processes = 1, failures_max = 1, tries_max = 3000;
static bool verbose, one_world, twice, all_cells;
static uint64_t worlds_each; /* for each process */
static const char *program;
static runner_t *runners;

static double now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_REALTIME, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

/* ------------------------------------------------------------- one that fails */

static void print_command(uint64_t world)
{
    printf("again: %s --faults %s --world 0x%016" PRIx64 "\n", program, classes_text, world);
}

/* @return whether it fails */
static bool investigate(uint64_t world)
{
    scenario_t scenario, noted;
    unsigned tries;
    int outcome;

    scenario_draw(&scenario, world, classes);
    outcome = shrink_try(&scenario, verbose ? stdout : NULL, &noted);
    if (outcome == VERDICT_OK) {
        printf("world 0x%016" PRIx64 ": ok\n", world);
        scenario_free(&noted);
        scenario_free(&scenario);
        return false;
    }
    printf("\n=== %s\n", shrink_outcome(outcome));
    print_command(world);
    if ((noted.faults_count > 0) || (outcome < VERDICT_LAST)) {
        scenario.listed       = true;
        scenario.faults       = noted.faults;
        scenario.faults_count = noted.faults_count;
        if (shrink_try(&scenario, NULL, NULL) != outcome) {
            printf("with a list of its faults it is another world\n");
            scenario.listed = false;
        }
    }
    tries = shrink_run(&scenario, outcome, tries_max);
    printf("after %u tries there remain %zu operations and %zu faults:\n", tries, scenario.ops_count,
           scenario.faults_count);
    scenario_print(stdout, &scenario);
    printf("and this is what happens:\n");
    fflush(stdout);
    shrink_try(&scenario, stdout, NULL);
    printf("\n");
    scenario_free(&scenario);
    return true;
}

/* ------------------------------------------------------------------ many worlds */

/* The same once more must be the same */
static void run_again(runner_t *runner)
{
    uint64_t trace = runner->counts.trace;
    scenario_t scenario;
    const char *text;

    scenario_draw(&scenario, runner->seed, classes);
    runner->counts.trace = 0;
    runner->verdict      = (int)world_run(&scenario, NULL, &text);
    if ((runner->verdict != VERDICT_OK) || (runner->counts.trace != trace)) {
        snprintf(runner->text, sizeof(runner->text), "it is another world the second time");
        runner->verdict = VERDICT_LAST;
        _exit(1);
    }
    scenario_free(&scenario);
}

static void count_conversation(uci_conversation_state_t state, uci_conversation_event_t event)
{
    ++faults_counts->conversations[state][event];
}

static void run_worlds(runner_t *runner, unsigned number)
{
    scenario_t scenario;
    const char *text;

    faults_counts          = &runner->counts;
    uci_conversation_watch = count_conversation;
    signal(SIGPROF, SIG_DFL);
    while (!runner->stop && (runner->worlds < worlds_each)) {
        runner->seed = draw_mix(seed, runner->worlds++ * PROCESSES_MAX + number);
        cpu_limit(WORLD_S);
        scenario_draw(&scenario, runner->seed, classes);
        runner->counts.trace = 0;
        runner->verdict      = (int)world_run(&scenario, NULL, &text);
        if (runner->verdict != VERDICT_OK) {
            snprintf(runner->text, sizeof(runner->text), "%s", text);
            _exit(1);
        }
        scenario_free(&scenario);
        if (twice) {
            run_again(runner);
        }
    }
    exit(0); /* a sanitizer looks for leaks */
}

static pid_t start(unsigned number)
{
    pid_t child;

    fflush(NULL);
    child = fork();
    if (child == 0) {
        run_worlds(&runners[number], number);
    }
    return child;
}

static void add_up(faults_counts_t *sum, uint64_t *worlds_p)
{
    const uint64_t *from;
    uint64_t *to;
    unsigned i;
    size_t k;

    memset(sum, 0, sizeof(*sum));
    *worlds_p = 0;
    for (i = 0; i < processes; ++i) {
        *worlds_p += runners[i].worlds;
        from = (const uint64_t *)&runners[i].counts;
        to   = (uint64_t *)sum;
        for (k = 0; k < sizeof(*sum) / sizeof(*to); ++k) {
            to[k] += from[k];
        }
    }
}

static void print_reached(const faults_counts_t *counts)
{
    unsigned state, type;

    printf("\nreached, by state of what it is about and by message:\n");
    for (state = 0; state < PROTOCOL_STATES; ++state) {
        for (type = 0; type < PROTOCOL_TYPES; ++type) {
            if (counts->reached[state][type] > 0) {
                printf("  %-18s %-12s %12" PRIu64 "\n", protocol_state_name(state), protocol_type_name(type),
                       counts->reached[state][type]);
            }
        }
    }
}

/* A row for each state, a column for each event; x: can't be, by the table. @return cells that were not reached */
static unsigned print_conversations(const faults_counts_t *counts)
{
    unsigned state, event, missing = 0;
    uint64_t count;

    printf("conversations, by state and event:\n  %-18s", "");
    for (event = 0; event < UCI_CONVERSATION_EVENTS; ++event) {
        printf(" %11s", uci_conversation_events[event]);
    }
    for (state = 0; state < UCI_CONVERSATION_STATES; ++state) {
        printf("\n  %-18s", uci_conversation_states[state]);
        for (event = 0; event < UCI_CONVERSATION_EVENTS; ++event) {
            count = counts->conversations[state][event];
            if (uci_conversation_is_never(state, event)) {
                printf(" %11s", (count == 0) ? "x" : "NEVER");
            } else {
                printf(" %11" PRIu64, count);
                missing += (count == 0);
            }
        }
    }
    printf("\n  %u cells that can be reached were not\n", missing);
    return missing;
}

/* @return whether what was wanted was reached */
static bool print_summary(double duration, unsigned failures)
{
    faults_counts_t sum;
    uint64_t worlds;
    unsigned i;

    add_up(&sum, &worlds);
    printf("%" PRIu64 " worlds, %" PRIu64 " turns, %" PRIu64 " messages, %" PRIu64
           " faults in %.1f s (%.0f a second), %u failed\n",
           worlds, sum.turns, sum.messages, sum.faults, duration, (double)sum.faults / duration, failures);
    for (i = 1; i < FAULT_LAST; ++i) {
        if (sum.by_kind[i] > 0) {
            printf("  %-22s %12" PRIu64 "\n", fault_names[i], sum.by_kind[i]);
        }
    }
    if (verbose) {
        print_reached(&sum);
    }
    return !(verbose || all_cells) || (print_conversations(&sum) == 0) || !all_cells;
}

static bool is_enough(double started, unsigned failures)
{
    faults_counts_t sum;
    uint64_t worlds;

    if (failures >= failures_max) {
        return true;
    }
    if (seconds > 0) {
        return now() - started >= seconds;
    }
    add_up(&sum, &worlds);
    return (faults_total > 0) && (sum.faults >= faults_total);
}

static void report(const runner_t *runner, int status)
{
    printf("world 0x%016" PRIx64 ": %s\n", runner->seed,
           WIFEXITED(status) ? (runner->verdict != 0) ? runner->text : "it ended the process"
                             : strsignal(WTERMSIG(status)));
    if (tries_max == 0) {
        print_command(runner->seed);
        return;
    }
    fflush(stdout);
    investigate(runner->seed);
    fflush(stdout);
}

static unsigned run_many(void)
{
    pid_t pids[PROCESSES_MAX], pid;
    double started    = now();
    unsigned failures = 0, running = processes, i;
    int status;

    for (i = 0; i < processes; ++i) {
        pids[i] = start(i);
    }
    while (!is_enough(started, failures) && (running > 0)) {
        usleep(2000);
        while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
            for (i = 0; (i < processes) && (pids[i] != pid); ++i) {
            }
            pids[i] = 0;
            --running;
            if (status != 0) {
                ++failures;
                report(&runners[i], status);
                pids[i] = (failures < failures_max) ? start(i) : 0;
                running += (pids[i] > 0);
            }
        }
    }
    for (i = 0; i < processes; ++i) {
        runners[i].stop = true;
    }
    for (i = 0; i < processes; ++i) {
        if ((pids[i] > 0) && (waitpid(pids[i], &status, 0) == pids[i]) && (status != 0)) {
            ++failures;
            report(&runners[i], status);
        }
    }
    return failures + !print_summary(now() - started, failures);
}

/* --------------------------------------------------------------------- options */

static char key_path[] = "/tmp/uci-test-random.XXXXXX";
static pid_t key_owner;

static void remove_key(void)
{
    if (getpid() == key_owner) {
        unlink(key_path);
    }
}

static void seal(const char *mode)
{
    static const char key[] = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f\n";
    int fd                  = mkstemp(key_path);

    if ((fd < 0) || (write(fd, key, sizeof(key) - 1) != (ssize_t)sizeof(key) - 1)) {
        fprintf(stderr, "%s: %m\n", key_path);
        exit(2);
    }
    close(fd);
    key_owner = getpid();
    atexit(remove_key);
    setenv("UCI_SEAL", mode, 1);
    setenv("UCI_SEAL_SCOPE", "all", 1);
    setenv("UCI_KEY_FILE", key_path, 1);
}

static void read_options(int argc, char **argv)
{
    int option;

    while ((option = getopt_long(argc, argv, "f:n:m:s:r:w:j:x:t:k:2cvh", long_options, NULL)) != -1) {
        switch (option) {
        case 'f':
            classes_text = optarg;
            break;
        case 'n':
            faults_total = (uint64_t)strtod(optarg, NULL);
            break;
        case 'm':
            worlds_total = (uint64_t)strtod(optarg, NULL);
            break;
        case 's':
            seconds = strtod(optarg, NULL);
            break;
        case 'r':
            seed = strtoull(optarg, NULL, 0);
            break;
        case 'w':
            world_seed = strtoull(optarg, NULL, 0);
            one_world  = true;
            break;
        case 'j':
            processes = (unsigned)strtoul(optarg, NULL, 0);
            processes = uci_max(1u, uci_min(processes, (unsigned)PROCESSES_MAX));
            break;
        case 'x':
            failures_max = (unsigned)strtoul(optarg, NULL, 0);
            break;
        case 't':
            tries_max = (unsigned)strtoul(optarg, NULL, 0);
            break;
        case '2':
            twice = true;
            break;
        case 'k':
            seal(optarg);
            break;
        case 'c':
            all_cells = true;
            break;
        case 'v':
            verbose = true;
            break;
        default:
            printf(usage, classes_text, WORLDS);
            exit(option == 'h' ? 0 : 2);
        }
    }
    classes = faults_parse(classes_text);
    if (classes == 0) {
        fprintf(stderr, "%s: no such classes of faults\n", classes_text);
        exit(2);
    }
}

int main(int argc, char **argv)
{
    program = argv[0];
    read_options(argc, argv);
    mallopt(M_MMAP_THRESHOLD, 1 << 28); /* pages come and go too slowly */
    mallopt(M_TRIM_THRESHOLD, 1 << 28);
    world_init();
    if ((worlds_total == 0) && (faults_total == 0) && (seconds <= 0)) {
        worlds_total = WORLDS;
    }
    worlds_each = (worlds_total > 0) ? uci_div_up(worlds_total, processes) : UINT64_MAX;
    if (one_world) {
        return investigate(world_seed) ? 1 : 0;
    }
    runners = mmap(NULL, processes * sizeof(*runners), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return (run_many() > 0) ? 1 : 0;
}
