/* SPDX-License-Identifier: BSD-3-Clause */
#include "verdict.h"

#include <stdio.h>

#define UCI_VERDICT_SMALL \
    64 /* bytes from the first wrong one to the last that a bad bit or bus makes; UCX's mistakes are larger */

const char *const uci_cause_names[UCI_CAUSE_LAST] = {"unknown", "source_changed", "transport", "memory",
                                                     "ucx",     "types"};

const char *const uci_way_paths[UCI_WAY_LAST]    = {NULL, "frame", "frame", "direct", "stream", "get", "bounce"};
const char *const uci_way_carriers[UCI_WAY_LAST] = {NULL, "mailbox", "am", NULL, "am", NULL, NULL};

const char *const uci_reason_texts[UCI_REASON_LAST] = {
        [UCI_REASON_NONE]            = "",
        [UCI_REASON_DETECT]          = "UCI_MODE=detect does not repair",
        [UCI_REASON_EXHAUSTED]       = "every way to fetch it again brought damaged bytes",
        [UCI_REASON_NO_COPY]         = "the sender has no copy of it any more (see UCI_LOG_SIZE)",
        [UCI_REASON_COPY_DAMAGED]    = "the sender's copy is damaged as well, in the memory of its host",
        [UCI_REASON_ANSWERS_DAMAGED] = "all answers of the sender arrive damaged",
        [UCI_REASON_CLOSED]          = "its sender has closed, and what it has left here is not all of it",
        [UCI_REASON_CLOSED_DAMAGED]  = "its sender has closed, and what it has left here is damaged",
        [UCI_REASON_ROOT]            = "the root of its tree does not match",
        [UCI_REASON_WAITED]          = "it was damaged in this process's memory, where it waited for its receive",
        [UCI_REASON_NO_MEMORY]       = "there is no memory to receive it",
        [UCI_REASON_REFUSED]         = "a content that no UCI sends"};

/* ---------------------------------------------------------- what is seen */

static bool uci_verdict_is_shared_memory(const uci_observation_t *seen)
{
    return (seen->way == UCI_WAY_MAILBOX) || (seen->way == UCI_WAY_DIRECT);
}

/* Has UCX read the program's buffer, after it was digested? */
static bool uci_verdict_is_from_program(const uci_observation_t *seen)
{
    return (seen->way == UCI_WAY_STREAM) || (seen->way == UCI_WAY_GET);
}

static bool uci_verdict_is_block(uci_damage_class_t damage)
{
    return (damage == UCI_DAMAGE_ZEROS) || (damage == UCI_DAMAGE_TRUNCATED) || (damage == UCI_DAMAGE_SHIFTED) ||
           (damage == UCI_DAMAGE_OTHER_CONTENT);
}

/* ", through tcp; RDMA ports: none" */
static const char *uci_verdict_lane(const uci_observation_t *seen, char *text, size_t size)
{
    bool named = (seen->transports != NULL) && (seen->transports[0] != '\0');
    bool ports = (seen->ports != NULL) && (seen->ports[0] != '\0');

    snprintf(text, size, "%s%s%s%s", named ? ", through " : "", named ? seen->transports : "",
             ports ? "; errors of this host's RDMA ports meanwhile: " : "", ports ? seen->ports : "");
    return text;
}

static const char *uci_verdict_class(const uci_observation_t *seen)
{
    return seen->compared ? uci_damage_class_names[seen->damage] : "not seen";
}

/* ----------------------------------------------------------------- rules */

static bool uci_verdict_has_waited(const uci_observation_t *seen)
{
    return seen->waited || (seen->reason == UCI_REASON_WAITED);
}

static void uci_verdict_say_waited(const uci_observation_t *seen, char *text, size_t size)
{
    snprintf(text, size, "it was verified when it came, and differs now: the memory of host %s, or a stray store there",
             seen->host);
}

static bool uci_verdict_copy_is_damaged(const uci_observation_t *seen)
{
    return seen->reason == UCI_REASON_COPY_DAMAGED;
}

static void uci_verdict_say_copy(const uci_observation_t *seen, char *text, size_t size)
{
    snprintf(
            text, size,
            "the copy that its sender keeps has not the digest any more that it was made with: the memory of host %s, or a stray "
            "store there",
            seen->peer_host);
}

static bool uci_verdict_is_no_damage(const uci_observation_t *seen)
{
    return (seen->reason == UCI_REASON_NO_MEMORY) || (seen->reason == UCI_REASON_REFUSED);
}

static void uci_verdict_say_no_damage(const uci_observation_t *seen, char *text, size_t size)
{
    snprintf(text, size, "%s",
             (seen->reason == UCI_REASON_NO_MEMORY)
                     ? "nothing was damaged: there was no memory for it"
                     : "it came intact, and is of a content that no UCI sends: a peer of another build, or an attack");
}

static bool uci_verdict_has_changed(const uci_observation_t *seen)
{
    return seen->changed > 0;
}

static void uci_verdict_say_changed(const uci_observation_t *seen, char *text, size_t size)
{
    char gets[96] = "";

    if (seen->gets_wrong > 0) {
        snprintf(gets, sizeof(gets), "; so %u gets brought other bytes than had just been digested", seen->gets_wrong);
    }
    snprintf(
            text, size,
            "its sender has digested %u of its chunks again, and they were not what they had been: its program wrote to the "
            "buffer while the send was pending%s",
            seen->changed, gets);
}

static bool uci_verdict_digest_is_wrong(const uci_observation_t *seen)
{
    return seen->compared && seen->equal;
}

static void uci_verdict_say_digest(const uci_observation_t *seen, char *text, size_t size)
{
    snprintf(
            text, size,
            "its bytes were right and their digest was not, though what brought the digest passed its own check: the memory of host %s",
            seen->peer_host);
}

static bool uci_verdict_length_is_wrong(const uci_observation_t *seen)
{
    return !uci_verdict_is_shared_memory(seen) && (seen->way != UCI_WAY_UNKNOWN) && (seen->arrived != seen->length);
}

static void uci_verdict_say_length(const uci_observation_t *seen, char *text, size_t size)
{
    char lane[256];

    snprintf(text, size, "UCX delivered %lu bytes of %lu, as if that were all%s", (unsigned long)seen->arrived,
             (unsigned long)seen->length, uci_verdict_lane(seen, lane, sizeof(lane)));
}

static bool uci_verdict_is_small(const uci_observation_t *seen)
{
    return uci_verdict_is_from_program(seen) && seen->compared && (seen->span <= UCI_VERDICT_SMALL);
}

static bool uci_verdict_is_overlapped(const uci_observation_t *seen)
{
    return (seen->overlap[0] != '\0') && (seen->way == UCI_WAY_GET) && !uci_verdict_length_is_wrong(seen) &&
           (seen->equal || !uci_verdict_is_small(seen));
}

static void uci_verdict_say_overlapped(const uci_observation_t *seen, char *text, size_t size)
{
    char lane[256];

    snprintf(
            text, size,
            "another receive, %s, was under way into the same memory, which is its program's mistake: the wrong bytes (%s) may be of "
            "that message, or damaged on the way%s",
            seen->overlap, uci_verdict_class(seen), uci_verdict_lane(seen, lane, sizeof(lane)));
}

static bool uci_verdict_is_caught_before(const uci_observation_t *seen)
{
    return (seen->caught > 0) && uci_verdict_is_from_program(seen) && !uci_verdict_is_small(seen);
}

static void uci_verdict_say_caught(const uci_observation_t *seen, char *text, size_t size)
{
    snprintf(
            text, size,
            "its sender's buffer is as it was digested, and path %s brought other bytes (%s); its program has changed the buffers "
            "of %u pending sends to here before, and may have put back what was there this time",
            uci_way_paths[seen->way], uci_verdict_class(seen), seen->caught);
}

static bool uci_verdict_is_shared(const uci_observation_t *seen)
{
    return uci_verdict_is_shared_memory(seen) && (seen->reason != UCI_REASON_EXHAUSTED) && !seen->get_same;
}

static void uci_verdict_say_shared(const uci_observation_t *seen, char *text, size_t size)
{
    char gets[96] = "";

    if (seen->gets_wrong > 0) {
        snprintf(gets, sizeof(gets), "; %u gets that should have repaired it brought wrong bytes as well (%s)",
                 seen->gets_wrong, seen->get_compared ? uci_damage_class_names[seen->get_damage] : "not compared");
    }
    snprintf(
            text, size,
            "it lay in memory that processes of host %s share, and where no transport of UCX's takes part: that memory, or a stray "
            "store%s",
            seen->host, gets);
}

static bool uci_verdict_get_is_wrong(const uci_observation_t *seen)
{
    return (seen->gets_wrong > 0) && (seen->get_same || (seen->get_compared && uci_verdict_is_block(seen->get_damage)));
}

static void uci_verdict_say_get(const uci_observation_t *seen, char *text, size_t size)
{
    char lane[256];

    snprintf(
            text, size,
            "%u gets ended well and brought other bytes (%s%s) than the sender had just digested: registration or key of another "
            "region, unless its program wrote there and put everything back; path %s had brought wrong ones first, and the right ones "
            "came by %s%s",
            seen->gets_wrong, seen->get_compared ? uci_damage_class_names[seen->get_damage] : "not compared",
            seen->get_same ? ", the same as came first" : "",
            (uci_way_paths[seen->way] != NULL) ? uci_way_paths[seen->way] : "unknown", seen->healed_by,
            uci_verdict_lane(seen, lane, sizeof(lane)));
}

static bool uci_verdict_is_elsewhere(const uci_observation_t *seen)
{
    return seen->elsewhere && (seen->way != UCI_WAY_UNKNOWN);
}

static void uci_verdict_say_elsewhere(const uci_observation_t *seen, char *text, size_t size)
{
    char lane[256];

    snprintf(text, size,
             "the first wrong bytes are the right ones of offset %lu of the same message: put in a wrong place%s",
             (unsigned long)seen->place, uci_verdict_lane(seen, lane, sizeof(lane)));
}

static bool uci_verdict_check_failed(const uci_observation_t *seen)
{
    return seen->header || (seen->reason == UCI_REASON_ANSWERS_DAMAGED);
}

static void uci_verdict_say_check(const uci_observation_t *seen, char *text, size_t size)
{
    char lane[256];

    snprintf(text, size, "%s of active messages did not pass their check%s", seen->header ? "headers" : "answers",
             uci_verdict_lane(seen, lane, sizeof(lane)));
}

static bool uci_verdict_is_between_own(const uci_observation_t *seen)
{
    return (seen->way == UCI_WAY_FRAME) || (seen->way == UCI_WAY_BOUNCE);
}

static void uci_verdict_say_between(const uci_observation_t *seen, char *text, size_t size)
{
    char lane[256];

    snprintf(text, size,
             "it left memory of UCI's at %s and came into memory of UCI's here, by %s, with other bytes (%s)%s",
             seen->peer_host, (seen->way == UCI_WAY_FRAME) ? "an active message" : "UCX's rendezvous",
             uci_verdict_class(seen), uci_verdict_lane(seen, lane, sizeof(lane)));
}

static bool uci_verdict_is_exhausted(const uci_observation_t *seen)
{
    return seen->reason == UCI_REASON_EXHAUSTED;
}

static void uci_verdict_say_exhausted(const uci_observation_t *seen, char *text, size_t size)
{
    char lane[256];

    snprintf(text, size, "its sender read it again for each copy, the same each time, and no copy came intact%s",
             uci_verdict_lane(seen, lane, sizeof(lane)));
}

static bool uci_verdict_was_not_asked(const uci_observation_t *seen)
{
    return uci_verdict_is_from_program(seen) && (seen->reason != UCI_REASON_NONE);
}

static void uci_verdict_say_not_asked(const uci_observation_t *seen, char *text, size_t size)
{
    char lane[256];

    snprintf(
            text, size,
            "nothing says whether its sender's buffer is still what it was: damaged on the way%s; or its program wrote there while "
            "the send was pending",
            uci_verdict_lane(seen, lane, sizeof(lane)));
}

static void uci_verdict_say_small(const uci_observation_t *seen, char *text, size_t size)
{
    char lane[256];

    snprintf(text, size, "its sender's buffer is as it was digested, and path %s brought other bytes (%s)%s",
             uci_way_paths[seen->way], uci_verdict_class(seen), uci_verdict_lane(seen, lane, sizeof(lane)));
}

static void uci_verdict_say_block(const uci_observation_t *seen, char *text, size_t size)
{
    char lane[256];

    snprintf(
            text, size,
            "its sender's buffer is as it was digested, and path %s brought other bytes (%s), %s the right ones: damaged on the way, "
            "or another region was read or written, or its program wrote there and put everything back%s",
            uci_way_paths[seen->way], uci_verdict_class(seen), seen->healed_by,
            uci_verdict_lane(seen, lane, sizeof(lane)));
}

static bool uci_verdict_is_root(const uci_observation_t *seen)
{
    return seen->reason == UCI_REASON_ROOT;
}

static void uci_verdict_say_root(const uci_observation_t *seen, char *text, size_t size)
{
    snprintf(text, size, "its chunks are right one by one, and the root over all of them differs");
}

static bool uci_verdict_is_anything(const uci_observation_t *seen)
{
    return true;
}

static void uci_verdict_say_nothing(const uci_observation_t *seen, char *text, size_t size)
{
    snprintf(text, size, "it was not seen what was wrong with it");
}

/* In this order; verdict.h has the reasons */
static const struct {
    bool (*holds)(const uci_observation_t *seen);
    void (*say)(const uci_observation_t *seen, char *text, size_t size);
    uci_cause_t cause;
} uci_verdict_rules[] = {{uci_verdict_has_waited, uci_verdict_say_waited, UCI_CAUSE_MEMORY},
                         {uci_verdict_copy_is_damaged, uci_verdict_say_copy, UCI_CAUSE_MEMORY},
                         {uci_verdict_is_no_damage, uci_verdict_say_no_damage, UCI_CAUSE_UNKNOWN},
                         {uci_verdict_has_changed, uci_verdict_say_changed, UCI_CAUSE_SOURCE_CHANGED},
                         {uci_verdict_is_overlapped, uci_verdict_say_overlapped, UCI_CAUSE_UNKNOWN},
                         {uci_verdict_digest_is_wrong, uci_verdict_say_digest, UCI_CAUSE_MEMORY},
                         {uci_verdict_length_is_wrong, uci_verdict_say_length, UCI_CAUSE_UCX},
                         {uci_verdict_is_caught_before, uci_verdict_say_caught, UCI_CAUSE_UNKNOWN},
                         {uci_verdict_is_shared, uci_verdict_say_shared, UCI_CAUSE_MEMORY},
                         {uci_verdict_get_is_wrong, uci_verdict_say_get, UCI_CAUSE_UCX},
                         {uci_verdict_is_elsewhere, uci_verdict_say_elsewhere, UCI_CAUSE_UCX},
                         {uci_verdict_check_failed, uci_verdict_say_check, UCI_CAUSE_TRANSPORT},
                         {uci_verdict_is_between_own, uci_verdict_say_between, UCI_CAUSE_TRANSPORT},
                         {uci_verdict_is_exhausted, uci_verdict_say_exhausted, UCI_CAUSE_TRANSPORT},
                         {uci_verdict_was_not_asked, uci_verdict_say_not_asked, UCI_CAUSE_UNKNOWN},
                         {uci_verdict_is_small, uci_verdict_say_small, UCI_CAUSE_TRANSPORT},
                         {uci_verdict_is_from_program, uci_verdict_say_block, UCI_CAUSE_UNKNOWN},
                         {uci_verdict_is_root, uci_verdict_say_root, UCI_CAUSE_UNKNOWN},
                         {uci_verdict_is_anything, uci_verdict_say_nothing, UCI_CAUSE_UNKNOWN}};

uci_cause_t uci_verdict_decide(const uci_observation_t *seen, char *evidence, size_t size)
{
    size_t i = 0;

    while (!uci_verdict_rules[i].holds(seen)) {
        ++i;
    }
    uci_verdict_rules[i].say(seen, evidence, size);
    return uci_verdict_rules[i].cause;
}
