/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include <string.h>

#include "base/damage.h"
#include "settings/settings.h"
#include "base/verdict.h"

/* What was seen, the cause that this proves, and a part of the evidence */
typedef struct verdict_case {
    const char *name;
    uci_observation_t seen;
    uci_cause_t cause;
    const char *says;
} verdict_case_t;

#define FLIP  .compared = true, .damage = UCI_DAMAGE_BIT_FLIP, .span = 1, .arrived = 8192, .length = 8192
#define BLOCK .compared = true, .damage = UCI_DAMAGE_OTHER_CONTENT, .span = 8192, .arrived = 8192, .length = 8192

static const verdict_case_t cases[] = {
        /* memory */
        {"mailbox",
         {.way = UCI_WAY_MAILBOX, FLIP},
         UCI_CAUSE_MEMORY,
         "it lay in memory that processes of host here share"},
        {"slot",
         {.way = UCI_WAY_DIRECT, BLOCK},
         UCI_CAUSE_MEMORY,
         "it lay in memory that processes of host here share"},
        {"slot, not asked",
         {.way = UCI_WAY_DIRECT, .reason = UCI_REASON_DETECT},
         UCI_CAUSE_MEMORY,
         "it lay in memory that processes of host here share"},
        {"waited", {.reason = UCI_REASON_WAITED}, UCI_CAUSE_MEMORY, "the memory of host here"},
        {"held", {.way = UCI_WAY_FRAME, .waited = true, FLIP}, UCI_CAUSE_MEMORY, "the memory of host here"},
        {"copy",
         {.way = UCI_WAY_FRAME, .reason = UCI_REASON_COPY_DAMAGED},
         UCI_CAUSE_MEMORY,
         "the memory of host there"},
        {"copy, though changed", {.reason = UCI_REASON_COPY_DAMAGED, .changed = 1}, UCI_CAUSE_MEMORY, "host there"},
        {"digest", {.way = UCI_WAY_GET, .compared = true, .equal = true}, UCI_CAUSE_MEMORY, "the memory of host there"},
        {"slot, and a get that came wrong",
         {.way = UCI_WAY_DIRECT, FLIP, .gets_wrong = 1, .get_compared = true, .get_damage = UCI_DAMAGE_ZEROS},
         UCI_CAUSE_MEMORY,
         "1 gets that should have repaired it brought wrong bytes as well (zeros)"},
        {"slot, and the same by a get",
         {.way = UCI_WAY_DIRECT, FLIP, .gets_wrong = 1, .get_compared = true, .get_same = true},
         UCI_CAUSE_UCX,
         "the same as came first"},
        /* the program */
        {"changed", {.way = UCI_WAY_GET, BLOCK, .changed = 3}, UCI_CAUSE_SOURCE_CHANGED, "3 of its chunks"},
        {"changed, gets wrong",
         {.way = UCI_WAY_GET, BLOCK, .changed = 1, .gets_wrong = 7, .get_same = true},
         UCI_CAUSE_SOURCE_CHANGED,
         "so 7 gets"},
        {"changed, never intact",
         {.way = UCI_WAY_STREAM, .changed = 1, .reason = UCI_REASON_EXHAUSTED},
         UCI_CAUSE_SOURCE_CHANGED,
         "its program wrote"},
        {"changed and equal",
         {.way = UCI_WAY_GET, .compared = true, .equal = true, .changed = 1},
         UCI_CAUSE_SOURCE_CHANGED,
         "its program wrote"},
        {"overlap",
         {.way = UCI_WAY_GET, BLOCK, .overlap = "tag 0x7", .elsewhere = true},
         UCI_CAUSE_UNKNOWN,
         "another receive, tag 0x7, was under way"},
        {"overlap, gets wrong",
         {.way = UCI_WAY_GET, BLOCK, .overlap = "tag 0x7", .gets_wrong = 3, .get_same = true},
         UCI_CAUSE_UNKNOWN,
         "another receive, tag 0x7, was under way"},
        {"overlap, over when it was looked at",
         {.way = UCI_WAY_GET, .compared = true, .equal = true, .overlap = "tag 0x7"},
         UCI_CAUSE_UNKNOWN,
         "another receive, tag 0x7, was under way"},
        {"overlap, and a bit",
         {.way = UCI_WAY_GET, FLIP, .overlap = "tag 0x7"},
         UCI_CAUSE_TRANSPORT,
         "path get brought"},
        {"overlap, and a short get",
         {.way = UCI_WAY_GET, .compared = true, .arrived = 0, .length = 8192, .overlap = "tag 0x7"},
         UCI_CAUSE_UCX,
         "0 bytes of 8192"},
        {"overlap, in slots",
         {.way = UCI_WAY_DIRECT, BLOCK, .overlap = "tag 0x7"},
         UCI_CAUSE_MEMORY,
         "processes of host"},
        {"overlap, changed",
         {.way = UCI_WAY_GET, BLOCK, .changed = 1, .overlap = "tag 0x7"},
         UCI_CAUSE_SOURCE_CHANGED,
         "1 of its chunks"},
        /* UCX */
        {"short frame",
         {.way = UCI_WAY_FRAME, .compared = true, .damage = UCI_DAMAGE_TRUNCATED, .arrived = 34464, .length = 100000},
         UCI_CAUSE_UCX,
         "34464 bytes of 100000"},
        {"short chunk",
         {.way = UCI_WAY_STREAM, .compared = true, .arrived = 0, .length = 8192},
         UCI_CAUSE_UCX,
         "0 bytes of 8192"},
        {"wrong region",
         {.way = UCI_WAY_GET, BLOCK, .gets_wrong = 1, .get_compared = true, .get_damage = UCI_DAMAGE_OTHER_CONTENT},
         UCI_CAUSE_UCX,
         "1 gets ended well"},
        {"wrong region twice",
         {.way = UCI_WAY_GET, FLIP, .gets_wrong = 2, .get_same = true},
         UCI_CAUSE_UCX,
         "the same as came first"},
        {"elsewhere", {.way = UCI_WAY_STREAM, BLOCK, .elsewhere = true, .place = 16384}, UCI_CAUSE_UCX, "offset 16384"},
        /* transport */
        {"frame", {.way = UCI_WAY_FRAME, FLIP}, UCI_CAUSE_TRANSPORT, "by an active message"},
        {"frame, a block", {.way = UCI_WAY_FRAME, BLOCK}, UCI_CAUSE_TRANSPORT, "through tcp"},
        {"frame in detect",
         {.way = UCI_WAY_FRAME, .reason = UCI_REASON_DETECT},
         UCI_CAUSE_TRANSPORT,
         "by an active message"},
        {"bounce", {.way = UCI_WAY_BOUNCE, BLOCK}, UCI_CAUSE_TRANSPORT, "UCX's rendezvous"},
        {"a bit of a stream", {.way = UCI_WAY_STREAM, FLIP}, UCI_CAUSE_TRANSPORT, "path stream brought"},
        {"a bit of a get", {.way = UCI_WAY_GET, FLIP}, UCI_CAUSE_TRANSPORT, "path get brought"},
        {"a bit, twice",
         {.way = UCI_WAY_GET, FLIP, .gets_wrong = 1, .get_compared = true, .get_damage = UCI_DAMAGE_BIT_FLIP},
         UCI_CAUSE_TRANSPORT,
         "path get brought"},
        {"header", {.header = true}, UCI_CAUSE_TRANSPORT, "headers of active messages"},
        {"answers", {.reason = UCI_REASON_ANSWERS_DAMAGED}, UCI_CAUSE_TRANSPORT, "answers of active messages"},
        {"exhausted",
         {.way = UCI_WAY_STREAM, .reason = UCI_REASON_EXHAUSTED},
         UCI_CAUSE_TRANSPORT,
         "no copy came intact"},
        {"mailbox, exhausted",
         {.way = UCI_WAY_MAILBOX, .reason = UCI_REASON_EXHAUSTED},
         UCI_CAUSE_TRANSPORT,
         "no copy came intact"},
        /* unknown */
        {"a block of a get", {.way = UCI_WAY_GET, BLOCK}, UCI_CAUSE_UNKNOWN, "put everything back"},
        {"a block of a stream", {.way = UCI_WAY_STREAM, BLOCK}, UCI_CAUSE_UNKNOWN, "another region"},
        {"undone once more",
         {.way = UCI_WAY_GET, BLOCK, .caught = 2, .gets_wrong = 1, .get_same = true},
         UCI_CAUSE_UNKNOWN,
         "of 2 pending sends"},
        {"undone, but a bit", {.way = UCI_WAY_GET, FLIP, .caught = 2}, UCI_CAUSE_TRANSPORT, "path get brought"},
        {"not seen", {.way = UCI_WAY_STREAM}, UCI_CAUSE_UNKNOWN, "not seen"},
        {"not asked", {.way = UCI_WAY_GET, .reason = UCI_REASON_DETECT}, UCI_CAUSE_UNKNOWN, "nothing says whether"},
        {"gone", {.way = UCI_WAY_STREAM, .reason = UCI_REASON_CLOSED}, UCI_CAUSE_UNKNOWN, "nothing says whether"},
        {"nothing seen", {.reason = UCI_REASON_CLOSED}, UCI_CAUSE_UNKNOWN, "not seen what was wrong"},
        {"root", {.reason = UCI_REASON_ROOT}, UCI_CAUSE_UNKNOWN, "the root"},
        {"no memory", {.reason = UCI_REASON_NO_MEMORY}, UCI_CAUSE_UNKNOWN, "nothing was damaged"},
        {"refused", {.reason = UCI_REASON_REFUSED}, UCI_CAUSE_UNKNOWN, "no UCI sends"},
};

Test(verdict, each_observation_has_its_cause)
{
    const verdict_case_t *one;
    uci_observation_t seen;
    char evidence[512];
    uci_cause_t cause;

    for (one = cases; one < cases + uci_array_size(cases); ++one) {
        seen            = one->seen;
        seen.host       = "here";
        seen.peer_host  = "there";
        seen.transports = "tcp";
        seen.healed_by  = "copy";
        seen.ports      = "";
        cause           = uci_verdict_decide(&seen, evidence, sizeof(evidence));
        cr_expect(cause == one->cause, "%s: %s (%s)", one->name, uci_cause_names[cause], evidence);
        cr_expect(strstr(evidence, one->says) != NULL, "%s: %s", one->name, evidence);
    }
}

/* Whatever is seen: a cause, a sentence that ends in the room there is */
Test(verdict, is_reached_for_anything)
{
    uci_observation_t seen = {.host       = "here",
                              .peer_host  = "there",
                              .transports = "tcp",
                              .healed_by  = "get",
                              .ports      = "mlx5_0:1 symbol_error 3"};
    char evidence[64];
    unsigned i;

    for (i = 0; i < UCI_WAY_LAST * UCI_REASON_LAST * 64; ++i) {
        seen.way        = (uci_way_t)(i % UCI_WAY_LAST);
        seen.reason     = (uci_reason_t)((i / UCI_WAY_LAST) % UCI_REASON_LAST);
        seen.changed    = (i / (UCI_WAY_LAST * UCI_REASON_LAST)) & 1;
        seen.compared   = ((i / (UCI_WAY_LAST * UCI_REASON_LAST)) & 2) != 0;
        seen.equal      = ((i / (UCI_WAY_LAST * UCI_REASON_LAST)) & 4) != 0;
        seen.gets_wrong = ((i / (UCI_WAY_LAST * UCI_REASON_LAST)) & 8) != 0;
        seen.get_same   = ((i / (UCI_WAY_LAST * UCI_REASON_LAST)) & 16) != 0;
        seen.header     = ((i / (UCI_WAY_LAST * UCI_REASON_LAST)) & 32) != 0;
        cr_assert(uci_verdict_decide(&seen, evidence, sizeof(evidence)) < UCI_CAUSE_LAST);
        cr_assert(strlen(evidence) > 8);
    }
}

/* ---------------------------------------------------------------- damage */

static void make_chunk(char *data, size_t length, unsigned seed)
{
    size_t i;

    for (i = 0; i < length; ++i) {
        data[i] = (char)(seed + (i * 7) + (i >> 8));
    }
}

Test(damage, is_compared_when_the_right_bytes_are_here)
{
    uci_damages_t damages = {0};
    char bad[4096], good[4096];
    uci_damage_t *damage;

    make_chunk(good, sizeof(good), 1);
    make_chunk(bad, sizeof(bad), 1);
    bad[1000] ^= 1;
    uci_damages_keep(&damages, 5, UCI_WAY_GET, bad, sizeof(bad));
    uci_damages_keep(&damages, 7, UCI_WAY_GET, NULL, 0);
    cr_expect(uci_damages_find(&damages, 6) == NULL);
    cr_expect(uci_damages_find(&damages, 7) == NULL, "nobody has seen its bytes");
    damage = uci_damages_find(&damages, 5);
    cr_assert(damage != NULL);
    uci_damage_compare(damage, good, sizeof(good));
    cr_expect((damage->diff.damage == UCI_DAMAGE_BIT_FLIP) && (damage->diff.first == 1000) && !damage->equal);
    cr_expect((damage->shown_from == 984) && (damage->shown == UCI_DAMAGE_SHOWN));
    cr_expect((memcmp(damage->bad, bad + 984, 64) == 0) && (memcmp(damage->good, good + 984, 64) == 0));
    cr_expect(uci_damages_find(&damages, 5) == NULL, "once is enough");
    uci_damages_drop(&damages);
    cr_expect((damages.first == NULL) && (damages.count == 0));
}

Test(damage, at_the_ends_of_a_chunk)
{
    static const size_t places[] = {0, 1, 15, 16, 99};
    uci_damages_t damages        = {0};
    char bad[100], good[100];
    uci_damage_t *damage;
    size_t i;

    for (i = 0; i < uci_array_size(places); ++i) {
        make_chunk(good, sizeof(good), 3);
        make_chunk(bad, sizeof(bad), 3);
        bad[places[i]] ^= 4;
        uci_damages_keep(&damages, 0, UCI_WAY_STREAM, bad, sizeof(bad));
        damage = uci_damages_find(&damages, 0);
        uci_damage_compare(damage, good, sizeof(good));
        cr_expect(damage->diff.first == places[i]);
        cr_expect((damage->shown_from <= places[i]) && (places[i] < damage->shown_from + damage->shown));
        cr_expect(damage->shown_from + damage->shown <= sizeof(bad));
        uci_damages_drop(&damages);
    }
}

/* Fewer bytes than were sent are damage, and so are none */
Test(damage, of_a_wrong_length)
{
    static const size_t lengths[] = {0, 1, 60, 99};
    uci_damages_t damages         = {0};
    char good[100];
    size_t i;

    make_chunk(good, sizeof(good), 9);
    for (i = 0; i < uci_array_size(lengths); ++i) {
        uci_damages_keep(&damages, 0, UCI_WAY_FRAME, good, lengths[i]);
        uci_damage_compare(damages.first, good, sizeof(good));
        cr_expect(damages.first->diff.damage == UCI_DAMAGE_TRUNCATED, "%zu", lengths[i]);
        cr_expect((damages.first->length == lengths[i]) && (damages.first->right == sizeof(good)));
        uci_damages_drop(&damages);
    }
}

Test(damage, is_bounded)
{
    static char chunk[UCI_DAMAGE_KEEP + 1000];
    uci_damages_t damages = {0};
    unsigned i;

    make_chunk(chunk, sizeof(chunk), 1);
    for (i = 0; i < UCI_DAMAGE_CHUNKS + 9; ++i) {
        uci_damages_keep(&damages, i, UCI_WAY_GET, chunk, sizeof(chunk));
    }
    cr_expect((damages.count == UCI_DAMAGE_CHUNKS) && (damages.left_out == 9));
    cr_expect(damages.bytes == UCI_DAMAGE_BYTES, "%zu", damages.bytes);
    cr_expect((damages.first->kept == UCI_DAMAGE_KEEP) && (damages.first->length == sizeof(chunk)));
    chunk[UCI_DAMAGE_KEEP + 1] ^= 1; /* behind what was kept: it was not seen */
    uci_damage_compare(damages.first, chunk, sizeof(chunk));
    cr_expect(!damages.first->equal && (damages.first->diff.damage == UCI_DAMAGE_UNKNOWN));
    uci_damages_drop(&damages);
}
