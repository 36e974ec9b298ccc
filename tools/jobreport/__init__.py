# SPDX-License-Identifier: BSD-3-Clause
"""What uci_report is made of, in the order data takes: reading -> tally and counters -> model -> text or page; of many jobs: these -> node_entries (and
ledger) -> gather -> traffic, blame (by topology) -> history, drain and history_tables -> history_text or page."""
