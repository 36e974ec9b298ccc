/**
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * RDMA ports of this host and their error counters, from sysfs: whatever has libibverbs or not. A message that arrived
 * damaged while its port counted errors points at the link; without any it points at memory or software.
 *
 * Only counters that say something about integrity are known here, of the InfiniBand standard and of the drivers
 * mlx5, bnxt_re, efa and rdma_rxe. A driver has some of them.
 */
#ifndef UCI_RDMA_H_
#define UCI_RDMA_H_

#include "util/types.h"

/** Where the kernel shows RDMA devices. */
#define UCI_RDMA_SYSFS "/sys/class/infiniband"

/** Ports looked at; a host with more is not known to us. */
#define UCI_RDMA_PORTS_MAX 32

/** What a counter's rise tells. */
typedef enum {
    UCI_RDMA_WIRE,  /**< signals or packets were damaged, and noticed */
    UCI_RDMA_RETRY, /**< packets were lost (or damaged: most adapters drop those and count no more), and sent again */
    UCI_RDMA_ACCESS /**< an adapter refused memory access: wrong key, address or length */
} uci_rdma_counter_kind_t;

typedef struct uci_rdma_counter {
    const char *name; /**< of the file in ports/N/counters or ports/N/hw_counters */
    uci_rdma_counter_kind_t kind;
    const char *text; /**< what it counts */
} uci_rdma_counter_t;

#define UCI_RDMA_COUNTERS 37

extern const uci_rdma_counter_t uci_rdma_counters[UCI_RDMA_COUNTERS];
extern const char *const uci_rdma_counter_kind_names[];

/** A port, and a value of each counter; UINT64_MAX where the port has no such counter. */
typedef struct uci_rdma_port {
    char device[64];
    unsigned number; /**< from 1 */
    uint64_t values[UCI_RDMA_COUNTERS];
} uci_rdma_port_t;

/** All ports of the host, by device name and number. About 10 KiB. */
typedef struct uci_rdma_sample {
    unsigned count;
    uci_rdma_port_t ports[UCI_RDMA_PORTS_MAX];
} uci_rdma_sample_t;

/**
 * Read the counters of all ports. Takes some 10 us a counter, more where the driver asks the adapter.
 * @param root  UCI_RDMA_SYSFS, or a folder of the same layout. If it is not there, the sample is empty.
 */
void uci_rdma_sample(const char *root, uci_rdma_sample_t *sample);

/**
 * How much counter @a index of @a port has risen since @a before; all of it if @a before has no such port, or was
 * greater: then it has been reset.
 * @return 0 if the port has no such counter.
 */
uint64_t uci_rdma_rise(const uci_rdma_port_t *port, unsigned index, const uci_rdma_sample_t *before);

/**
 * Read an attribute of a port: the first line of file ports/NUMBER/NAME, without its end.
 * @return UCI_OK, or UCI_ERR_IO and an empty text.
 */
uci_status_t uci_rdma_port_attribute(const char *root, const uci_rdma_port_t *port, const char *name, char *text,
                                     size_t size);

#endif
