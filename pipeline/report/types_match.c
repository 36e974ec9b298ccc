/* SPDX-License-Identifier: BSD-3-Clause */
#include "types_match.h"

#include "record.h"
#include "report.h"
#include "signature/signature.h"
#include "live/stats.h"

/* Those of one basic type on both sides are told apart by a word; how many they are the length tells */
static bool uci_types_are_same(const uci_signature_t *sent, const uci_signature_t *posted)
{
    unsigned code = uci_signature_code(sent->word);

    if (uci_likely((code == uci_signature_code(posted->word)) && (code != UCI_SIGNATURE_MIXED))) {
        return true;
    }
    return ((sent->word == posted->word) && (sent->hash == posted->hash)) || uci_signed_ops->matches(sent, posted);
}

void uci_types_compare(uci_request_t *req, uci_peer_t *peer, uint64_t seq, ucp_tag_t tag, uint64_t length,
                       const uci_sent_types_t *sent)
{
    uci_signature_t theirs = {.word = sent->word};
    char theirs_text[UCI_SIGNATURE_DESCRIPTION_MAX], ours_text[UCI_SIGNATURE_DESCRIPTION_MAX];

    if (!(req->flags & UCI_REQUEST_SIGNED)) {
        return;
    }
    if (length > req->buffer.length) { /* cut off, which MPI tells */
        uci_signed_drop(req);
        return;
    }
    if (uci_signature_code(sent->word) == UCI_SIGNATURE_MIXED) {
        theirs.hash = sent->mixed.hash;
        theirs.unit = sent->mixed.unit;
        theirs.text = sent->mixed.text;
    }
    UCI_STATS_INC(signatures_compared);
    if (uci_unlikely(!uci_types_are_same(&theirs, &req->signature))) {
        uci_types_differ_t differ = {.peer   = peer,
                                     .seq    = seq,
                                     .tag    = tag,
                                     .length = length,
                                     .sent   = theirs_text,
                                     .posted = ours_text,
                                     .call   = req->signature.call,
                                     .group  = req->signature.group};

        UCI_STATS_INC(signatures_differ);
        uci_signature_describe(&theirs, uci_signed_ops->code_name, theirs_text, sizeof(theirs_text));
        uci_signature_describe(&req->signature, uci_signed_ops->code_name, ours_text, sizeof(ours_text));
        uci_report_types_differ(&differ);
    }
    uci_signed_drop(req);
}
