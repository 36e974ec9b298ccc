/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Measure what digests and copies cost on this CPU: shortly when a job starts on a host for the first time, at length by
 * uci_tune.
 */
#ifndef UCI_CALIBRATE_H_
#define UCI_CALIBRATE_H_

#include "profile.h"

#define UCI_CALIBRATE_ROUNDS_MAX 208

typedef struct uci_calibrate_params {
    const size_t *sizes; /**< bytes, ascending */
    unsigned sizes_count;
    unsigned rounds;      /**< contenders take turns so often, up to UCI_CALIBRATE_ROUNDS_MAX (half beyond 16 MiB); the
                                lower quartile counts: neither a disturbed turn nor a lucky one */
    uint64_t turn_ns;     /**< length of a turn, at least; one call or more */
    uint64_t deadline_ns; /**< uci_process_time_ns() at which to give up; 0: never */
    size_t uncached;      /**< bytes of memory to walk through, larger than the caches; 0: measure cached only */
    bool all_isas;        /**< measure kernels of all instruction sets, not of the two widest alone */
    uint32_t digests;     /**< bits 1 << uci_digest_id_t of those to measure; 0: all */
    unsigned finals; /**< after the rounds of a size, so many more between those that are close to the best way to copy
                                with one of the digests `finalists`; 0: none. What counts then is the median of the ratios
                                to one of them in the same round, because all else that differs (who else is at work on the
                                machine) is the same for both. */
    uci_profile_t
            *judgement; /**< gets the costs by every other round, which then do not count for the profile: what a choice
                                was made by cannot judge it, and what was measured at another time cannot either. Or NULL */
    const bool *judged_only; /**< sizes that the profile does not get; or NULL: it gets all */
    uint32_t finalists;      /**< bits of digests */
    void (*progress)(void *arg, unsigned done, unsigned total); /**< called before each size, or NULL */
    void *arg;
} uci_calibrate_params_t;

/**
 * Add the costs of all digests, kernels and forms to @a profile. Allocates twice the largest size (and twice
 * @a uncached), runs in this thread alone.
 * @return UCI_OK; UCI_ERR_BUSY (not logged) if the deadline came first: the profile is then incomplete and not to be
 *         used; UCI_ERR_NO_MEMORY (logged).
 */
uci_status_t uci_calibrate(const uci_calibrate_params_t *params, uci_profile_t *profile);

/** What is measured when a job starts: about 10 ms, up to @a budget_ns. Same results as uci_calibrate(). */
uci_status_t uci_calibrate_quick(uint64_t budget_ns, uci_profile_t *profile);

#endif
