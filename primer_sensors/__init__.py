"""What makes runs happen: sensors and the batching behind them."""
