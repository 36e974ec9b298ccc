/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * What suits this machine: digest, kernel, form of copying, eager limit, chunk size and path, by transport and size.
 *
 * Sources, first wins: a variable that forces a value (UCI_DIGEST, UCI_EAGER_MAX, UCI_CHUNK_SIZE, UCI_PATH); a profile of this
 * machine (UCI_PROFILE); a quick calibration, made once a host and kept in the user's cache folder; what is built in.
 *
 * Processes never wait for each other: the first one of a host that finds no profile calibrates (at most
 * UCI_TUNER_BUDGET_NS), the others go on with what is built in.
 */
#ifndef UCI_TUNER_H_
#define UCI_TUNER_H_

#include "profile.h"

#ifndef UCI_TUNER_BUDGET_NS                  /* an emulator is given more, and sanitizers */
#define UCI_TUNER_BUDGET_NS (20 * 1000000ul) /**< for the calibration at start */
#endif

/** What to do with a message */
typedef struct uci_choice {
    const uci_digest_ops_t *digest; /**< with the kernel that is the fastest for this size */
    uci_digest_isa_t isa;           /**< the kernel's */
    uci_form_t form;                /**< for uci_digest_copy_as() into the user's buffer: FUSED, SEPARATE or FAR */
    uci_path_t path;                /**< of a rendezvous; messages up to the eager limit may be too small for one */
    uci_path_t both;                /**< the same while both sides send, README.md */
    uint32_t chunk_size;            /**< bytes */
} uci_choice_t;

#define UCI_PLAN_CLASSES 65

/** Beside the UCI_PATH_BIT()s of a plan: the peer is on another host, and the link to it of at most UCI_TUNER_SLOW_LINK */
#define UCI_PLAN_SLOW_LINK (1u << 31)

/** Mbit/s that active messages over tcp keep busy with a processor to spare. They reach 28,000, but on a slow processor 13,000. */
#define UCI_TUNER_SLOW_LINK 10000

/** Messages up to this size take the same path whether both sides send or one: the sender fills them into slots at once, as many as one
 *  message has (UCI_DIRECT_WINDOW). A number that tests lower. */
#define UCI_TUNER_BOTH_MIN (256ul << 10)
extern uint64_t uci_tuner_both_min;

/** Choices by size for one list of transports */
typedef struct uci_plan {
    uint32_t eager_max;                     /**< bytes: larger messages are worth a rendezvous */
    uint32_t fragment;                      /**< chunk that UCX carries as one fragment of an active message */
    uci_choice_t choices[UCI_PLAN_CLASSES]; /**< by uci_plan_class() */
    uint32_t paths;                         /**< UCI_PATH_BIT()s there were to choose from */
    char transports[UCI_PROFILE_TRANSPORTS_MAX];
    struct uci_plan *next;
} uci_plan_t;

/** Class of a size, two for each power of two: 2k-1 holds 2^(k-1)+1 .. 3/4 * 2^k bytes, 2k the rest up to 2^k, 0 holds 0 and 1, the
 *  last one all larger sizes. (With one for each, a size between them lost 6 %: 24 KiB are one chunk or two.) */
UCI_INLINE unsigned uci_plan_class(uint64_t size)
{
    unsigned power = (size <= 1) ? 0 : 64 - (unsigned)__builtin_clzll(size - 1);

    return (2 * power >= UCI_PLAN_CLASSES) ? UCI_PLAN_CLASSES - 1u
                                           : 2 * power - ((size > 1) && (size <= (3ul << power) / 4));
}

/** The largest size of a class, but of the last one. */
UCI_INLINE uint64_t uci_plan_class_size(unsigned number)
{
    return (number % 2 == 0) ? 1ul << (number / 2) : (3ul << ((number + 1) / 2)) / 4;
}

UCI_INLINE const uci_choice_t *uci_plan_choose(const uci_plan_t *plan, uint64_t size)
{
    return &plan->choices[uci_plan_class(size)];
}

/** The way a message of this size takes: UCI_PATH_EAGER up to the eager limit. */
UCI_INLINE uci_path_t uci_plan_path(const uci_plan_t *plan, uint64_t size)
{
    return (size <= plan->eager_max) ? UCI_PATH_EAGER : uci_plan_choose(plan, size)->path;
}

/**
 * Find a profile, or calibrate, and use the kernels that are fastest here. To be called before the process's first worker
 * is used; uci_settings must have been read. Thread safe, does its work once. What goes wrong is a warning, and the
 * built-in choices are used.
 * @param ucx_version  version of UCX, which profiles are made for.
 */
void uci_tuner_init(const char *ucx_version);

/**
 * The plan for a peer. Thread safe; plans live as long as the process.
 * @param transports  as UCX lists them for the endpoint ("posix cma").
 * @param paths       UCI_PATH_BIT()s of what both sides can do; UCI_PATH_STREAM is always one of them. UCI_PLAN_SLOW_LINK
 *                    beside them if it is so.
 * @return the plan; if there is no memory, one with the built-in choices.
 */
const uci_plan_t *uci_tuner_plan(const char *transports, uint32_t paths);

/** Is there a connection of adapters that read by themselves: "rc_verbs", "rc_mlx5", "dc_mlx5"? Not datagrams (ud), whose gets
 *  UCX emulates. */
bool uci_tuner_is_rdma(const char *transports);

/** @return the largest eager limit of any transports: what receivers prepare for. 0 to 32k. */
uint32_t uci_tuner_eager_max(void);

/** @return true if transports differ in their eager limits, so that a peer's plan may have less than that. */
bool uci_tuner_eager_differs(void);

/** @return where the choices are from, for people: "built in", "calibration /home/me/.cache/uci/...", "profile ...". */
const char *uci_tuner_source(void);

/**
 * Make all plans anew after uci_settings has changed: for uci_tune, which compares what can be chosen. Plans that were given
 * out change in place, so no other thread may use one meanwhile.
 */
void uci_tuner_refresh(void);

/**
 * Where the profile of this machine belongs: $XDG_CACHE_HOME/uci/profile-KEY.json, with ~/.cache if the variable is not
 * set. Processes look there, then for /etc/uci/profile-KEY.json.
 * @return UCI_OK, or UCI_ERR_NO_ELEM (not logged) if there is neither variable nor home.
 */
uci_status_t uci_tuner_profile_path(const uci_profile_machine_t *machine, char *path, size_t size);

/**
 * The choices a profile leads to, without touching those of the process: for uci_tune, which tells how good they are.
 * @param plan_p  filled in; `transports` as in uci_tuner_plan().
 */
void uci_tuner_make_plan(const uci_profile_t *profile, const char *transports, uint32_t paths, uci_plan_t *plan_p);

/** Digests that UCI_DIGEST=auto chooses from, best first; UCI_DIGEST_NONE ends the list. They miss damage of any kind with
 *  odds of 2^-64 (docs/digests.md). */
extern const uci_digest_id_t uci_tuner_digests[];

/**
 * Is this form of copying worth considering? What the pipeline copies comes from or goes to a slot or a fragment that is in
 * the cache. So a form other than FUSED must be faster than the fastest FUSED one with data in cache; it is not enough that
 * it is with both ends in memory. (Measured, 4 MiB through slots: the copy out around the caches takes 1.28 times as long, though it is the faster
 * one from memory to memory.)
 */
bool uci_tuner_form_applies(const uci_profile_t *profile, uci_digest_id_t digest, uci_digest_isa_t isa, uci_form_t form,
                            uint64_t size);

/** The kernel that suits a digest best over all sizes measured. */
uci_digest_isa_t uci_tuner_best_isa(const uci_profile_t *profile, uci_digest_id_t digest);

#endif
