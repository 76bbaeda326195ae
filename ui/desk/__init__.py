"""The operator desk: pages, what stands on them, and the accounts behind them."""
