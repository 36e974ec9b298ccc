# SPDX-License-Identifier: BSD-3-Clause
"""What uci_report is made of, in the order data takes: reading -> tally and counters -> model -> text or page."""
