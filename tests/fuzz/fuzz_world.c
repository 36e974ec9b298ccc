/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Worlds of tests/unit/random: workers over a UCX of the test's own, a random program, and the judge that knows what each receive must
 * bring. The input says which world, and what the wire does to which message: what covers more is found by changing that, where test_random
 * draws it.
 *
 *     | seed of world and program, 8 | are endpoints closed and opened again, 1 | faults, 6 each: kind, site and way, number, 2; seed, 2 |
 */
#include <stdlib.h>
#include <string.h>

#include "faults.h"
#include "util/log.h"
#include "world.h"

#define FUZZ_HEAD  9
#define FUZZ_FAULT 6
#define FUZZ_FAULTS \
    7 /* not as many as copies of one thing, or batches of chunks, may come damaged before it is given up */
#define FUZZ_OPS 96 /* longer programs show nothing that shorter ones don't, and slow it down */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static faults_counts_t fuzz_counts;

static void add_fault(scenario_t *scenario, const uint8_t *data)
{
    fault_t fault = {.kind   = (fault_kind_t)(FAULT_NONE + 1 + (data[0] % (FAULT_LAST - 1))),
                     .site   = (site_t)(data[1] % 3),
                     .from   = (data[1] >> 2) % scenario->nodes,
                     .to     = (data[1] >> 5) % scenario->nodes,
                     .number = data[2] | ((data[3] & 3u) << 8),
                     .seed   = draw_mix(data[4], data[5])};

    scenario_note(scenario, &fault);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static bool ready;
    scenario_t scenario;
    const char *text;
    uint64_t seed;
    size_t place;

    if (!ready) {
        uci_log_level = UCI_LOG_FATAL;
        faults_counts = &fuzz_counts;
        world_init();
        ready = true;
    }
    if (size < FUZZ_HEAD) {
        return 0;
    }
    memcpy(&seed, data, sizeof(seed));
    scenario_draw(&scenario, seed, (FAULTS_LAST - 1) & ~((data[sizeof(seed)] & 1) ? 0u : (unsigned)FAULTS_REOPEN));
    scenario.ops_count = uci_min(scenario.ops_count, (size_t)FUZZ_OPS);
    scenario.listed    = true;
    for (place = FUZZ_HEAD; (place + FUZZ_FAULT <= size) && (scenario.faults_count < FUZZ_FAULTS);
         place += FUZZ_FAULT) {
        add_fault(&scenario, data + place);
    }
    if (world_run(&scenario, NULL, &text) != VERDICT_OK) {
        fprintf(stderr, "%s\n", text);
        scenario_print(stderr, &scenario);
        abort();
    }
    scenario_free(&scenario);
    return 0;
}
