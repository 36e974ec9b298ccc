/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * uci_info: what this UCI is, what the machine offers it, and which settings are in force. docs/man/uci_info.1
 */
#include "digest/digest.h"
#include "info.h"
#include "util/machine.h"
#include "util/process.h"
#include "tune/rdma.h"
#include "settings/settings.h"
#include "version.h"
#include "version_line.h"
#include "base/wire.h"

#include <dlfcn.h>
#include <err.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#if defined(__aarch64__)
#include <sys/auxv.h>
#endif

#define UCI_INFO_UCP_LIBRARY  "libucp.so.0"
#define UCI_INFO_BUFFER_SIZE  ((size_t)1 << 20)
#define UCI_INFO_BUFFER_ALIGN 4096
#define UCI_INFO_MEASURE_NS   10000000ul /* for each digest, and for each copy */
#define UCI_INFO_EXIT_USAGE   2
#define UCI_INFO_TRY          "\nTry 'uci_info -h'."

enum {
    UCI_INFO_RELEASE  = 1 << 0, /* in the order of the letters of their options, which parse_options has */
    UCI_INFO_VERSION  = 1 << 1,
    UCI_INFO_CPU      = 1 << 2,
    UCI_INFO_DIGESTS  = 1 << 3,
    UCI_INFO_SETTINGS = 1 << 4,
    UCI_INFO_DOC      = 1 << 5,
    UCI_INFO_HELP     = 1 << 6,
    UCI_INFO_DEVICES  = 1 << 7,
    UCI_INFO_CHECK    = 1 << 8,
    UCI_INFO_JSON     = 1 << 9,
    UCI_INFO_SEAL     = 1 << 10
};

static const char uci_info_help[] =
        "Usage: uci_info [options]\n"
        "Show what UCI is, what it finds on this machine, and its settings.\n"
        "\n"
        "  -v            Show versions: of UCI, of its compiler, of the UCX built with and found now\n"
        "  -D            Show digests, their speed on this machine and what they detect\n"
        "  -C, -cpu      Show the CPU and its instructions that matter to the digests\n"
        "  -d            Show RDMA devices: state, link, GIDs, counters of errors\n"
        "  -s            Show what UCI_SEAL would be done with: libraries, ciphers, their speed here, the choice\n"
        "  -c            Show the settings in force, in the syntax of uci.conf\n"
        "  -f            With -c: show also what each setting means, allows, and where its value is from\n"
        "  --check       Is UCI on for a process started here, how, and for which MPIs? What is not protected, and how\n"
        "                to change that. Exit status: 0 on, 1 off, 3 loaded and not protecting, 4 not known\n"
        "  --json        With --check: as JSON\n"
        "  -h, --help    Show this help\n"
        "  --version     Show version, revision, protocol and the UCX built with, in one line\n"
        "\n"
        "Without options: -v -D.\n"
        "\n"
        "Examples:\n"
        "  mpirun -N 1 uci_info --check   is UCI on, on all nodes?\n"
        "  uci_info -cf > uci.conf.new && mv uci.conf.new ~/.uci.conf\n"
        "                                 start a configuration file with today's settings\n"
        "  mpirun -N 1 uci_info -c | sort | uniq -c\n"
        "                                 do all nodes use the same settings?\n"
        "  uci_info -D | grep -v '#' | sort -rnk3\n"
        "                                 which digest is fastest here?\n"
        "  mpirun -N 1 uci_info -d | grep '# wire' | grep -v ': 0 '\n"
        "                                 which ports have seen damaged signals or packets?\n";

static void uci_info_print_ucx(void)
{
    void *library = dlopen(UCI_INFO_UCP_LIBRARY, RTLD_LAZY | RTLD_LOCAL);
    const char *(*get_version_string)(void);
    Dl_info info;

    if (library == NULL) {
        printf("ucx found: none (%s)\n", dlerror());
        return;
    }

    get_version_string = (const char *(*)(void))dlsym(library, "ucp_get_version_string");
    if (get_version_string == NULL) {
        printf("ucx found: unknown (%s)\n", dlerror());
    } else {
        printf("ucx found: %s\n", get_version_string());
        if (dladdr((void *)get_version_string, &info) != 0) {
            printf("ucx library: %s\n", info.dli_fname);
        }
    }
    /* It stays loaded: unloading UCX gains nothing here. */
}

static void uci_info_print_version(void)
{
    printf("version: %s\n", UCI_VERSION);
    printf("revision: %s\n", UCI_REVISION);
    printf("protocol: %d\n", UCI_PROTOCOL_VERSION);
#if defined(__clang__)
    printf("compiler: %s\n", __VERSION__);
#else
    printf("compiler: gcc %s\n", __VERSION__);
#endif
    printf("ucx built with: %s\n", UCI_INFO_UCX_BUILD_VERSION);
    uci_info_print_ucx();
}

static void uci_info_print_feature(const char *name, bool is_there)
{
    printf("%s: %s\n", name, is_there ? "yes" : "no");
}

static void uci_info_print_cpu(void)
{
    printf("cpu: %s\n", uci_machine_cpu());
    printf("cores: %u\n", uci_machine_cores());
    printf("cores usable here: %u\n", uci_machine_cores_usable());
#if defined(__x86_64__)
    uci_info_print_feature("sse4.2", __builtin_cpu_supports("sse4.2"));
    uci_info_print_feature("pclmul", __builtin_cpu_supports("pclmul"));
    uci_info_print_feature("avx2", __builtin_cpu_supports("avx2"));
    uci_info_print_feature("avx512 (f, dq, bw, vl)",
                           __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
                                   __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl"));
    uci_info_print_feature("vpclmulqdq", __builtin_cpu_supports("vpclmulqdq"));
#elif defined(__aarch64__)
    uci_info_print_feature("crc32", getauxval(AT_HWCAP) & HWCAP_CRC32);
    uci_info_print_feature("pmull", getauxval(AT_HWCAP) & HWCAP_PMULL);
    uci_info_print_feature("sve", getauxval(AT_HWCAP) & HWCAP_SVE);
#endif
}

/* @return the best speed in GB/s of digesting, or, with @a dst, of copying, one buffer. */
static double uci_info_measure(const uci_digest_ops_t *digest, void *dst, const void *src)
{
    uint64_t begin = uci_process_time_ns(), best = UINT64_MAX, start, now;
    volatile uint64_t sink; /* the result counts as used */

    do {
        start = uci_process_time_ns();
        sink = (dst == NULL) ? digest->digest(src, UCI_INFO_BUFFER_SIZE) : digest->copy(dst, src, UCI_INFO_BUFFER_SIZE);
        now  = uci_process_time_ns();
        best = uci_min(best, now - start);
    } while (now - begin < UCI_INFO_MEASURE_NS);

    (void)sink;
    return (double)UCI_INFO_BUFFER_SIZE / (double)uci_max(best, 1ul);
}

static void uci_info_print_digest(const uci_digest_ops_t *digest, void *dst, const void *src)
{
    char speed[32] = "-";

    if (digest->id != UCI_DIGEST_NONE) { /* it reads nothing, which is no speed */
        snprintf(speed, sizeof(speed), "%.1f", uci_info_measure(digest, NULL, src));
    }
    printf("%-9s %5u %12s %10.1f  %s\n", digest->name, digest->width, speed, uci_info_measure(digest, dst, src),
           digest->title);
    printf("#         %s\n", digest->guarantee);
}

static void *uci_info_new_buffer(int byte)
{
    void *buffer = aligned_alloc(UCI_INFO_BUFFER_ALIGN, UCI_INFO_BUFFER_SIZE);

    if (buffer == NULL) {
        errx(EXIT_FAILURE, "out of memory");
    }
    return memset(buffer, byte, UCI_INFO_BUFFER_SIZE);
}

static void uci_info_print_digests(void)
{
    void *src = uci_info_new_buffer(0x5a), *dst = uci_info_new_buffer(0);
    unsigned id;

    uci_digest_init();
    printf("# one core, 1 MiB, best case; copy: digest fused into a copy\n");
    printf("# %-7s %5s %12s %10s  %s\n", "name", "bits", "digest GB/s", "copy GB/s", "algorithm, kernel");
    for (id = 0; id < UCI_DIGEST_LAST; ++id) {
        if (uci_digest_by_id(id) != NULL) {
            uci_info_print_digest(uci_digest_by_id(id), dst, src);
        }
    }

    free(dst);
    free(src);
}

static int uci_info_print_settings(bool is_documented)
{
    uci_status_t status = uci_settings_read(); /* has logged what is wrong */

    if (is_documented) {
        printf("# UCI configuration file: see uci.conf(5)\n\n");
    }
    uci_settings_print(stdout, UCI_SETTINGS_PRINT_VALUE | (is_documented ? UCI_SETTINGS_PRINT_DOC : 0));
    return (status == UCI_OK) ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* @return set of what to show. */
static unsigned uci_info_parse_options(int argc, char **argv)
{
    static const struct option long_options[] = {{"cpu", no_argument, NULL, 'C'},     {"help", no_argument, NULL, 'h'},
                                                 {"version", no_argument, NULL, 'V'}, {"check", no_argument, NULL, 'K'},
                                                 {"json", no_argument, NULL, 'J'},    {0}};
    static const char letters[]               = "VvCDcfhdKJs"; /* as the bits of what they show */
    unsigned show                             = 0;
    const char *letter;
    int option;

    while ((option = getopt_long_only(argc, argv, "vDCcdfhs", long_options, NULL)) != -1) {
        letter = strchr(letters, option);
        if (letter == NULL) { /* getopt has said what is wrong */
            fprintf(stderr, "Try 'uci_info -h'.\n");
            exit(UCI_INFO_EXIT_USAGE);
        }
        show |= 1u << (letter - letters);
    }

    if (optind < argc) {
        errx(UCI_INFO_EXIT_USAGE, "unexpected argument: %s" UCI_INFO_TRY, argv[optind]);
    }
    if ((show & UCI_INFO_DOC) && !(show & (UCI_INFO_SETTINGS | UCI_INFO_HELP))) {
        errx(UCI_INFO_EXIT_USAGE, "-f is for use with -c" UCI_INFO_TRY);
    }
    if ((show & UCI_INFO_JSON) && (show != (UCI_INFO_JSON | UCI_INFO_CHECK))) {
        errx(UCI_INFO_EXIT_USAGE, "--json is for use with --check, alone" UCI_INFO_TRY);
    }
    return show;
}

static int uci_info_show(unsigned show)
{
    int ret = EXIT_SUCCESS;

    if (show & UCI_INFO_HELP) {
        fputs(uci_info_help, stdout);
        return EXIT_SUCCESS;
    }
    if (show & UCI_INFO_CHECK) {
        return uci_info_check(show & UCI_INFO_JSON);
    }
    if (show & UCI_INFO_RELEASE) {
        printf("uci_info (UCI) %s\n", UCI_VERSION_LINE);
    }
    if (show & UCI_INFO_VERSION) {
        uci_info_print_version();
    }
    if (show & UCI_INFO_CPU) {
        uci_info_print_cpu();
    }
    if (show & UCI_INFO_DEVICES) {
        uci_info_print_devices(UCI_RDMA_SYSFS);
    }
    if (show & UCI_INFO_DIGESTS) {
        uci_info_print_digests();
    }
    if (show & UCI_INFO_SEAL) {
        ret = (uci_settings_read() == UCI_OK) ? uci_info_print_seal() : EXIT_FAILURE; /* it has logged what is wrong */
    }
    if ((show & UCI_INFO_SETTINGS) && (uci_info_print_settings(show & UCI_INFO_DOC) != EXIT_SUCCESS)) {
        ret = EXIT_FAILURE;
    }
    return ret;
}

int main(int argc, char **argv)
{
    unsigned show = uci_info_parse_options(argc, argv);
    int ret       = uci_info_show((show != 0) ? show : UCI_INFO_VERSION | UCI_INFO_DIGESTS);

    if (show == 0) {
        printf("# 'uci_info -c' shows the settings, 'uci_info -h' what else there is\n");
    }
    /* a full disk must not look like success, nor, with --check, like "off" */
    if ((fflush(stdout) != 0) || ferror(stdout)) {
        err(UCI_INFO_EXIT_USAGE, "cannot write");
    }
    return ret;
}
