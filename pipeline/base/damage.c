/* SPDX-License-Identifier: BSD-3-Clause */
#include "damage.h"

#include <stdlib.h>
#include <string.h>

#include "capture_file.h"
#include "settings/settings.h"

static uci_damage_t *uci_damage_create(uint32_t index, uci_way_t way, const void *data, size_t length, size_t keep)
{
    size_t kept          = (data == NULL) ? 0 : uci_min(length, keep);
    uci_damage_t *damage = calloc(1, sizeof(*damage) + kept);

    if (damage != NULL) {
        damage->index  = index;
        damage->way    = way;
        damage->length = length;
        damage->kept   = kept;
        memcpy(damage->data, (data == NULL) ? "" : data, kept);
    }
    return damage;
}

void uci_damages_keep(uci_damages_t *damages, uint32_t index, uci_way_t way, const void *data, size_t length)
{
    bool capture = uci_capture_is_on();
    size_t room  = (capture ? UCI_DAMAGE_BYTES_CAPTURE : UCI_DAMAGE_BYTES) - damages->bytes;
    uci_damage_t *damage;

    damage = (damages->count < UCI_DAMAGE_CHUNKS)
                     ? uci_damage_create(index, way, data, length, capture ? room : uci_min(room, UCI_DAMAGE_KEEP))
                     : NULL;
    if (damage == NULL) {
        ++damages->left_out;
        return;
    }
    *((damages->last != NULL) ? damages->last : &damages->first) = damage;
    damages->last                                                = &damage->next;
    damages->bytes += damage->kept;
    ++damages->count;
}

uci_damage_t *uci_damages_find(const uci_damages_t *damages, uint32_t index)
{
    uci_damage_t *damage = damages->first;

    while ((damage != NULL) && ((damage->index != index) || damage->compared || (damage->kept == 0))) {
        damage = damage->next;
    }
    return damage;
}

/* Some bytes before the first wrong one, and as many behind it as there is room for */
static void uci_damage_show_from(uci_damage_t *damage, size_t first, const char *good, size_t good_length)
{
    size_t length = uci_min(damage->kept, good_length);

    damage->shown_from = uci_min(first - uci_min(first, (size_t)UCI_DAMAGE_BEFORE), length);
    damage->shown      = uci_min(sizeof(damage->bad), length - damage->shown_from);
    memcpy(damage->bad, damage->data + damage->shown_from, damage->shown);
    memcpy(damage->good, good + damage->shown_from, damage->shown);
}

void uci_damage_compare(uci_damage_t *damage, const void *good, size_t length)
{
    /* what was not kept is not known to be wrong; what did not arrive is */
    size_t known = (damage->kept < damage->length) ? uci_min(damage->kept, length) : length;
    bool differs;

    damage->compared = true;
    damage->right    = length;
    differs          = uci_forensics_compare(damage->data, damage->kept, good, known, &damage->diff);
    damage->equal    = !differs && (damage->kept == damage->length);
    uci_damage_show_from(damage, damage->diff.first, good, known);
    uci_capture_chunk(damage->capture, sizeof(damage->capture), damage->data, damage->kept, good, length);
}

void uci_damage_show(uci_damage_t *damage)
{
    damage->shown = uci_min(sizeof(damage->bad), damage->kept);
    memcpy(damage->bad, damage->data, damage->shown);
    uci_capture_chunk(damage->capture, sizeof(damage->capture), damage->data, damage->kept, NULL, 0);
}

void uci_damages_drop(uci_damages_t *damages)
{
    uci_damage_t *damage;

    while (damages->first != NULL) {
        damage         = damages->first;
        damages->first = damage->next;
        free(damage);
    }
    memset(damages, 0, sizeof(*damages));
}
